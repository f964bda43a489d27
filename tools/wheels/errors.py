"""What stops the making of wheels."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class WheelError(Exception):
    """Ends `make wheels` with one readable message."""


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    """Standard output of a command; WheelError with all its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WheelError(
            f"`{' '.join(words)}` failed (exit code {done.returncode}):\n{done.stdout}{done.stderr}"
        )
    return done.stdout
