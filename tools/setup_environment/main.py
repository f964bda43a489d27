"""Sets up a checkout: system packages, `.venv/`, Python packages, build, TorchScript plug-in.

`make setup` runs it. It is idempotent: what a stamp under `.venv/setup-stamps/` says is done, and
whose inputs are unchanged, is skipped.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

from setup_environment import (
    build,
    disk,
    python_packages,
    system_packages,
    virtual_environment,
)
from setup_environment.offline_bundle import open_bundle
from setup_environment.progress import SetupError, Steps, say


def main() -> int:
    parser = argparse.ArgumentParser(prog="make setup", description=__doc__)
    parser.add_argument(
        "--python-chosen",
        action="store_true",
        help="the interpreter was asked for: a .venv of another version is rebuilt, not kept",
    )
    parser.add_argument(
        "--until",
        choices=("packages", "build"),
        default="build",
        help="'packages' stops before anything is compiled (enough for formatting)",
    )
    parser.add_argument(
        "--offline",
        type=Path,
        metavar="DIR",
        help="a folder that `make offline-bundle` made: no registry is asked for anything",
    )
    arguments = parser.parse_args()
    started = time.monotonic()
    # A terminated set-up ends what it started, as an interrupted one does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    steps = Steps(total=6 if arguments.until == "build" else 4)
    try:
        virtual_environment.check_interpreter()
        bundle = open_bundle(arguments.offline.absolute()) if arguments.offline else None
        missing = system_packages.missing_packages()
        rebuild = virtual_environment.rebuild_reason(arguments.python_chosen)
        packages_due = rebuild is not None or python_packages.is_due()
        build_due = arguments.until == "build" and (packages_due or build.is_due())

        steps.begin("disk and time")
        if missing or packages_due or build_due:
            disk.announce(missing, packages_due, build_due)
        else:
            say("nothing to install or build")

        steps.begin("system packages")
        system_packages.install(missing, bundle.debian if bundle else None)

        steps.begin("virtual environment")
        virtual_environment.create(rebuild)

        steps.begin("Python packages")
        if packages_due:
            python_packages.install(bundle.wheels if bundle else None)
        else:
            say("unchanged since the last set-up")

        if arguments.until == "build":
            steps.begin("build")
            if build_due:
                build.build_and_install(environment_is_new=rebuild is not None)
            else:
                say("sources unchanged since the last build")
            steps.begin("TorchScript plug-in")
            build.install_torchscript_plugin()
    except SetupError as error:
        print(f"make setup: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nmake setup: stopped; run it again to go on", file=sys.stderr, flush=True)
        return 130
    say(f"set-up complete, {time.monotonic() - started:.0f} s")
    return 0
