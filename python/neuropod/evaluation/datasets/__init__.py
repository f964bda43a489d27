"""Data of each kind as named columns. A kind per file; `open_dataset` chooses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuropod.evaluation.datasets.csv_file import CsvDataset
from neuropod.evaluation.datasets.dataset import Dataset
from neuropod.evaluation.datasets.image_file import ImageSettings
from neuropod.evaluation.datasets.images import ImagesDataset
from neuropod.evaluation.datasets.npz import ArraysDataset, open_npz
from neuropod.evaluation.datasets.parquet import ParquetDataset
from neuropod.evaluation.errors import DataError

__all__ = ["DataSettings", "Dataset", "ImageSettings", "open_dataset"]

_KINDS = ".npz, .csv, .tsv, .parquet or a folder of images"


@dataclass(frozen=True)
class DataSettings:
    """How data are read. `label_file`, `resize` and `pixel_range` are about folders of images."""

    label_file: Path | None = None
    images: ImageSettings = field(default_factory=ImageSettings)


def open_dataset(
    data: str | Path | Mapping[str, Any],
    inputs: Sequence[Mapping[str, Any]],
    settings: DataSettings | None = None,
) -> Dataset:
    """Opens a file, a folder of images, or arrays by name. DataError if it can't be read, or is known to
    hold no rows."""
    dataset = _open(data, inputs, settings or DataSettings())
    if dataset.count == 0:
        raise DataError(f"{dataset.source} holds no rows")
    return dataset


def _open(
    data: str | Path | Mapping[str, Any],
    inputs: Sequence[Mapping[str, Any]],
    settings: DataSettings,
) -> Dataset:
    if isinstance(data, Mapping):
        return ArraysDataset(data, "data")
    path = Path(data)
    if path.is_dir():
        return ImagesDataset(path, inputs, settings.label_file, settings.images)
    if not path.exists():
        raise DataError(f"{path} does not exist; data are {_KINDS}")
    if settings.label_file is not None:
        raise DataError(f"{path} is no folder of images; --labels goes with one")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return open_npz(path, {spec["name"]: spec["dtype"] for spec in inputs})
    if suffix in (".csv", ".tsv"):
        return CsvDataset(path, inputs)
    if suffix in (".parquet", ".pq"):
        return ParquetDataset(path, inputs)
    raise DataError(f"{path}: unknown kind of data; expected {_KINDS}")
