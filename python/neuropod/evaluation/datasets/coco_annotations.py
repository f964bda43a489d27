"""Boxes in COCO's JSON: `images`, `annotations` and `categories`."""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from neuropod.evaluation.columns import Rows
from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import string_array

BOXES: Final = "boxes"
CLASSES: Final = "classes"
CLASS_NAMES: Final = "class_names"
CROWD: Final = "crowd"


def read_coco_annotations(path: Path, folder: Path) -> tuple[list[str], dict[str, Rows], list[str]]:
    """The images in the file's order, their boxes, and the categories' names in the order of their ids.

    Columns, a row per image: `boxes` float64 (n, 4) as left, top, right, bottom; `classes` int64 (n,),
    category ids; `class_names` (n,); `crowd` bool (n,). Raises DataError that names the entry.
    """
    content = _load(path)
    images = {_key(image, "id", path, "image"): image for image in content["images"]}
    names = {
        _key(category, "id", path, "category"): str(_key(category, "name", path, "category"))
        for category in content["categories"]
    }
    found: dict[Any, list[dict[str, Any]]] = {key: [] for key in images}
    for number, annotation in enumerate(content["annotations"]):
        what = f"annotation {number}"
        image, category = (_key(annotation, k, path, what) for k in ("image_id", "category_id"))
        if image not in found:
            raise DataError(f"{path}: {what} is of image {image!r}, which the file doesn't have")
        if category not in names:
            known = ", ".join(f"{key} ({name})" for key, name in list(names.items())[:10])
            raise DataError(f"{path}: {what} has the unknown category {category!r}; known: {known}")
        found[image].append(annotation)
    files = [str(_key(image, "file_name", path, "image")) for image in images.values()]
    for file in files:
        if not (folder / file).is_file():
            raise DataError(f"{path}: there is no image {folder / file}")
    rows = [_row(entries, names, path) for entries in found.values()]
    columns: dict[str, Rows] = {key: [row[key] for row in rows] for key in rows[0]} if rows else {}
    return files, columns, [names[key] for key in sorted(names)]


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}") from error
    for key in ("images", "annotations", "categories"):
        if not isinstance(content, dict) or not isinstance(content.get(key), list):
            raise DataError(f"{path} has no list {key!r}, as COCO's annotations have")
    return dict(content)


def _key(entry: Any, key: str, path: Path, what: str) -> Any:
    if not isinstance(entry, dict) or key not in entry:
        raise DataError(f"{path}: {what} {json.dumps(entry)[:80]} has no {key!r}")
    return entry[key]


def _row(entries: list[dict[str, Any]], names: dict[Any, str], path: Path) -> dict[str, Any]:
    boxes = np.empty((len(entries), 4))
    for index, entry in enumerate(entries):
        box = _key(entry, "bbox", path, "annotation")
        if len(box) != 4:
            raise DataError(f"{path}: bbox {box} is expected to be [left, top, width, height]")
        boxes[index] = box[0], box[1], box[0] + box[2], box[1] + box[3]
    ids = [entry["category_id"] for entry in entries]
    return {
        BOXES: boxes,
        CLASSES: np.asarray(ids, np.int64),
        CLASS_NAMES: string_array([names[key] for key in ids], (len(ids),)),
        CROWD: np.asarray([bool(entry.get("iscrowd")) for entry in entries], bool),
    }
