import sys
from pathlib import Path

# The packager of the framework-free platform is shared with the packaging tests.
sys.path.append(str(Path(__file__).parent.parent / "packaging"))
