"""A folder of images, with their labels: a subfolder per class, a table, or COCO annotations."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from neuropod.evaluation.columns import Rows
from neuropod.evaluation.datasets.coco_annotations import read_coco_annotations
from neuropod.evaluation.datasets.csv_file import CsvDataset
from neuropod.evaluation.datasets.image_file import ImageReader, ImageSettings
from neuropod.evaluation.datasets.text_values import typed
from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import Array
from neuropod.packaging.nearest_name import did_you_mean

IMAGE_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
LABEL_FILES: Final = ("labels.csv", "annotations.json")
LABEL: Final = "label"
_CHUNK_IMAGES = 8


@dataclass
class Labels:
    """Files in order, relative to the folder, and the columns that go with them.

    `places`: where each row's labels stand, if that isn't the image itself.
    """

    files: list[str]
    columns: dict[str, Rows] = field(default_factory=dict)
    classes: list[str] | None = None
    places: list[str] | None = None


class ImagesDataset:
    """Decodes one image after another into the model's image input."""

    untyped = False

    def __init__(
        self,
        folder: Path,
        inputs: Sequence[Mapping[str, Any]],
        label_file: Path | None,
        settings: ImageSettings,
    ) -> None:
        self.source = str(folder)
        self._folder = folder
        self._input = _image_input(inputs, folder)
        self._reader = ImageReader(self._input, settings)
        self._labels = _find_labels(folder, label_file)
        self.count: int | None = len(self._labels.files)
        self.names = [self._input["name"], *self._labels.columns]
        self.classes: Sequence[str] | None = self._labels.classes

    def where(self, row: int) -> str:
        place = self._labels.places[row] if self._labels.places else ""
        path = str(self._folder / self._labels.files[row])
        return f"{path} ({place})" if place else path

    def chunks(self, wanted: Collection[str]) -> Iterator[dict[str, Rows]]:
        files = self._labels.files
        for start in range(0, len(files), _CHUNK_IMAGES):
            stop = start + _CHUNK_IMAGES
            chunk: dict[str, Rows] = {}
            for name in wanted:
                if name == self._input["name"]:
                    chunk[name] = [self._reader.read(self._folder / f) for f in files[start:stop]]
                else:
                    chunk[name] = self._labels.columns[name][start:stop]
            yield chunk


def _image_input(inputs: Sequence[Mapping[str, Any]], folder: Path) -> Mapping[str, Any]:
    needed = [spec for spec in inputs if not spec.get("optional")]
    if len(needed) != 1:
        names = ", ".join(repr(spec["name"]) for spec in needed) or "none"
        raise DataError(
            f"{folder}: a folder of images feeds a model with one input, the inputs are {names}; "
            "use .npz or .parquet"
        )
    return needed[0]


def _find_labels(folder: Path, label_file: Path | None) -> Labels:
    if label_file is None:
        label_file = next((folder / n for n in LABEL_FILES if (folder / n).is_file()), None)
    if label_file is None:
        return _subfolders(folder)
    if label_file.suffix.lower() == ".json":
        files, columns, classes = read_coco_annotations(label_file, folder)
        return Labels(files, columns, classes)
    return _table(folder, label_file)


def _subfolders(folder: Path) -> Labels:
    """A class per subfolder; images without any are rows without labels."""
    names = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    by_class = {name: _images(folder / name, folder) for name in names}
    found = _images(folder, folder)
    beside = sorted(set(found) - {file for files in by_class.values() for file in files})
    if len(beside) == len(found):
        return Labels(found)
    if beside:
        raise DataError(
            f"{folder}: subfolders are classes, but {beside[0]} lies beside them; move it into one, or "
            f"give every image a label in {LABEL_FILES[0]}"
        )
    labels = np.repeat(names, [len(by_class[name]) for name in names])
    files = [file for name in names for file in by_class[name]]
    if all(name.isdecimal() for name in names):
        order = np.argsort(labels.astype(np.int64), kind="stable")
        return Labels([files[i] for i in order], {LABEL: labels[order].astype(np.int64)})
    return Labels(files, {LABEL: labels}, names)


def _images(folder: Path, root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root))
        for path in folder.rglob("*")
        if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")
    )


def _table(folder: Path, path: Path) -> Labels:
    table = CsvDataset(path, [])
    if "file" not in table.names:
        raise DataError(
            f"{path} has the columns {', '.join(map(repr, table.names))}, expected 'file' and "
            f"'label' (or others){did_you_mean('file', table.names)}"
        )
    parts: dict[str, list[Array]] = {name: [] for name in table.names}
    for chunk in table.chunks(table.names):
        for name, rows in chunk.items():
            parts[name].append(np.asarray(rows))
    if not parts["file"]:
        return Labels([])
    columns = {name: np.concatenate(blocks) for name, blocks in parts.items()}
    files = [str(name) for name in columns.pop("file").tolist()]
    places = [table.where(row) for row in range(len(files))]
    for file, place in zip(files, places, strict=True):
        if not (folder / file).is_file():
            raise DataError(f"{place}: there is no image {folder / file}")
    return Labels(files, {name: typed(rows) for name, rows in columns.items()}, None, places)
