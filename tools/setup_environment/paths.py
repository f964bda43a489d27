"""Where things lie in a checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
VENV_BIN = VENV / "bin"
VENV_PYTHON = VENV_BIN / "python"
STAMPS = VENV / "setup-stamps"
BUILD = ROOT / "build" / "release"
LOGS = ROOT / "build" / "logs"
