"""The main job on real data: train, package, load and run, from Python and from C++.

`make demo` runs this. It leaves its files under `build/demo/` and ends with a page to look at.
Exits with 1 when the ways of calling a model disagree or the detector is wrong.
"""

import argparse
import importlib.util
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import digits
import latency
import numpy as np
import numpy.typing as npt
import page
import torch
from letterbox import letterbox
from packages import Package, package_digits, package_face_detector
from photographs import Photograph, load_photographs

from neuropod import load_neuropod

DEMO = Path(__file__).resolve().parent
ROOT = DEMO.parents[1]
CPP_PROGRAM = "neuropod_digits"

# Of the framework. A second one gains a quarter on an idle machine, and loses far more than that on
# a busy one, where each waits for the other.
THREADS = 1

START = time.monotonic()


class DemoError(Exception):
    """The demo can't go on, or didn't show what it should; the text says why."""


def say(line: str) -> None:
    """Prints a progress line with the seconds since the start."""
    print(f"[{time.monotonic() - START:5.1f} s] {line}", flush=True)


def score(way: str, found: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> page.Score:
    """Counts the answers, int64 (n,), that match the labels, int64 (n,)."""
    return page.Score(way, int((found == labels).sum()), len(labels))


def find_cpp_program(build_folder: Path, folder: Path) -> Path:
    """The demo's C++ program, from the checkout's build.

    Where that lacks it, the program is built in `folder`, as a project of its own against the
    installed Neuropod (15 s; nothing to do the next time).
    """
    program = build_folder / "examples" / "demo" / CPP_PROGRAM
    if program.exists():
        return program
    say(f"building {CPP_PROGRAM} against the installed Neuropod")
    native_module = importlib.util.find_spec("neuropod._native")
    if native_module is None or native_module.origin is None:
        raise DemoError("neuropod is not installed: run `make setup`")
    prefix = Path(native_module.origin).parent
    own_build = folder / "cpp"
    run_quietly("cmake", "-S", str(DEMO), "-B", str(own_build), f"-DCMAKE_PREFIX_PATH={prefix}")
    run_quietly("cmake", "--build", str(own_build))
    return own_build / CPP_PROGRAM


def run_quietly(*command: str) -> None:
    """Runs a command; raises DemoError with what it printed if it fails."""
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise DemoError(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")


def score_cpp_program(program: Path, package: Package, split: digits.Split) -> page.Score:
    """Runs the held-out scans through the package from C++."""
    images = package.path.with_name("held_out_images.npy")
    labels = package.path.with_name("held_out_labels.npy")
    np.save(images, split.held_out_images)
    np.save(labels, split.held_out_labels)
    finished = subprocess.run(
        [program, package.path, images, labels], capture_output=True, text=True, check=False
    )
    counts = re.search(r"(\d+) of (\d+) right", finished.stdout)
    if finished.returncode != 0 or counts is None:
        raise DemoError(f"{CPP_PROGRAM} failed: {finished.stderr.strip() or finished.stdout}")
    return page.Score("Neuropod from C++", int(counts[1]), int(counts[2]))


def run_digits(
    package: Package, split: digits.Split, cpp_program: Path
) -> tuple[page.DigitReadings, list[page.Score], latency.Latency]:
    """Reads the held-out scans in all three ways, and times single scans."""
    images, labels = split.held_out_images, split.held_out_labels
    module = torch.jit.load(str(package.module))
    one = np.ascontiguousarray(images[:1])

    def call_directly(scans: npt.NDArray[np.float32]) -> dict[str, npt.NDArray]:
        with torch.inference_mode():
            outputs = module(torch.from_numpy(scans))
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    with load_neuropod(str(package.path)) as model:
        outputs = model.infer({"image": images})
        times = latency.measure(
            lambda: call_directly(one),
            lambda: model.infer({"image": one}),
            rounds=2000,
            warm_up=100,
            budget_s=4,
        )
    readings = page.DigitReadings(images, labels, outputs["digit"], outputs["probabilities"])
    scores = [
        score("Called directly, in PyTorch", call_directly(images)["digit"], labels),
        score("Neuropod from Python", outputs["digit"], labels),
        score_cpp_program(cpp_program, package, split),
    ]
    for each in scores:
        say(f"  {each.way:<27} {each.right} of {each.total} right, {each.right / each.total:.4f}")
    return readings, scores, times


def run_detector(
    package: Package, photographs: list[Photograph]
) -> tuple[list[page.PhotographResult], latency.Latency]:
    """Looks for faces in the photographs, and times the first one."""
    module = torch.jit.load(str(package.module))
    results = []
    with load_neuropod(str(package.path)) as model:
        for photograph in photographs:
            frame, placement = letterbox(photograph.picture)
            outputs = model.infer({"image": frame})
            boxes = placement.to_picture(outputs["boxes"])
            probabilities = outputs["object_class_probability"][:, 0]
            results.append(page.PhotographResult(photograph, boxes, probabilities))
            sure = "".join(f", probability {p:.4f}" for p in probabilities)
            say(f"  {photograph.title}: {len(boxes)} of {photograph.faces} faces{sure}")
        frame, _ = letterbox(photographs[0].picture)

        def call_directly() -> object:
            with torch.inference_mode():
                found = module(torch.from_numpy(frame))
            return found[0].numpy(), np.array(found[1]), found[2].numpy()

        times = latency.measure(
            call_directly, lambda: model.infer({"image": frame}), rounds=10, warm_up=1, budget_s=4
        )
    return results, times


def check(scores: list[page.Score], photographs: list[page.PhotographResult]) -> None:
    """Raises DemoError if the three scores differ or a photograph's faces were miscounted."""
    if len({(each.right, each.total) for each in scores}) != 1:
        raise DemoError("the ways of calling the digit network disagree")
    for result in photographs:
        if len(result.boxes) != result.photograph.faces:
            raise DemoError(
                f"{result.photograph.title}: found {len(result.boxes)} faces, "
                f"expected {result.photograph.faces}"
            )


def run(folder: Path, build_folder: Path) -> Path:
    """Runs the whole demo; returns the page. Files go to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(THREADS)
    cpp_program = find_cpp_program(build_folder, folder)
    split = digits.load_split()

    say(f"digits: train on {len(split.train_images)} scans, package")
    digits_package = package_digits(folder, split)
    say(f"  {digits_package.path}{' (from last time)' if digits_package.reused else ''}")
    say(f"digits: read {len(split.held_out_images)} held-out scans in three ways")
    readings, scores, digits_times = run_digits(digits_package, split, cpp_program)

    say("faces: package the detector")
    faces_package = package_face_detector(folder)
    say(f"  {faces_package.path}{' (from last time)' if faces_package.reused else ''}")
    say("faces: look at three photographs")
    photographs, detector_times = run_detector(faces_package, load_photographs())

    for name, times in (("digits", digits_times), ("faces", detector_times)):
        direct = page.duration(times.direct_median_us)
        through = page.duration(times.neuropod_median_us)
        say(f"{name}: median {direct} directly, {through} through Neuropod")
    results = page.Results(
        readings,
        scores,
        photographs,
        digits_times,
        detector_times,
        {"Python": platform.python_version(), "torch": str(torch.__version__)},
    )
    target = folder / "index.html"
    target.write_text(page.render(results), encoding="utf-8")
    check(scores, photographs)
    return target


def main() -> int:
    """Parses the command line and runs the demo."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "demo", help="folder for what the demo makes"
    )
    parser.add_argument(
        "--build",
        type=Path,
        default=ROOT / "build" / "release",
        help="CMake build folder that holds the C++ program",
    )
    arguments = parser.parse_args()
    try:
        target = run(arguments.out.resolve(), arguments.build.resolve())
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    say("done: open this page in a browser")
    print(target.as_uri())
    return 0


if __name__ == "__main__":
    sys.exit(main())
