"""Trains, scripts and packages the demo's two models; keeps what is still good from last time."""

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import digits
import mtcnn
import numpy as np
import torch
from letterbox import letterbox
from photographs import load_photographs

from neuropod.packagers import create_torchscript_neuropod


@dataclass(frozen=True)
class Package:
    """A packaged model. `module` is the TorchScript file it was made from."""

    path: Path
    module: Path
    reused: bool


def _key(files: Iterable[Path]) -> str:
    """Changes when one of the files or a version that made the package changes."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    digest.update(f"torch {torch.__version__} neuropod {metadata.version('neuropod')}".encode())
    return digest.hexdigest()


def _is_current(package: Package, key: str) -> bool:
    stamp = package.path.with_suffix(".key")
    made = package.path.exists() and package.module.exists() and stamp.exists()
    return made and stamp.read_text() == key


def _forget(package: Package) -> None:
    package.path.with_suffix(".key").unlink(missing_ok=True)
    if package.path.is_dir():
        shutil.rmtree(package.path)
    else:
        package.path.unlink(missing_ok=True)


def package_digits(folder: Path, split: digits.Split) -> Package:
    """Trains the digit network and packages it as `digits.neuropod` in the folder."""
    package = Package(folder / "digits.neuropod", folder / "digits.pt", reused=False)
    key = _key([Path(digits.__file__), Path(__file__)])
    if _is_current(package, key):
        return Package(package.path, package.module, reused=True)

    _forget(package)
    module = torch.jit.script(digits.train(split))
    module.save(str(package.module))
    examples = split.train_images[:4]
    with torch.no_grad():
        expected = module(torch.from_numpy(examples))
    create_torchscript_neuropod(
        neuropod_path=str(package.path),
        model_name="digits",
        module=module,
        input_spec=digits.INPUT_SPEC,
        output_spec=digits.OUTPUT_SPEC,
        test_input_data={"image": examples},
        test_expected_out={name: tensor.numpy() for name, tensor in expected.items()},
    )
    package.path.with_suffix(".key").write_text(key)
    return package


def package_face_detector(folder: Path) -> Package:
    """Packages the face detector as `faces.neuropod` in the folder.

    Its test input is the photograph with a face, so that no package of a blind detector is made.
    """
    package = Package(folder / "faces.neuropod", folder / "faces.pt", reused=False)
    weights = [mtcnn.weight_file(network) for network in ("pnet", "rnet", "onet")]
    key = _key([Path(mtcnn.__file__), Path(__file__), *weights])
    if _is_current(package, key):
        return Package(package.path, package.module, reused=True)

    _forget(package)
    module = torch.jit.script(mtcnn.load_face_detector())
    module.save(str(package.module))
    frame, _ = letterbox(next(photo.picture for photo in load_photographs() if photo.faces == 1))
    with torch.no_grad():
        expected = module(torch.from_numpy(frame))
    create_torchscript_neuropod(
        neuropod_path=str(package.path),
        model_name="faces",
        module=module,
        input_spec=mtcnn.INPUT_SPEC,
        output_spec=mtcnn.OUTPUT_SPEC,
        test_input_data={"image": frame},
        test_expected_out={
            "boxes": expected.boxes.numpy(),
            "supported_object_classes": np.array(expected.supported_object_classes),
            "object_class_probability": expected.object_class_probability.numpy(),
        },
    )
    package.path.with_suffix(".key").write_text(key)
    return package
