"""Detectors, whose outputs differ in length from image to image."""

import json

import numpy as np
import pytest
from echo_packages import write_package
from PIL import Image
from test_average_precision import random_images, reference

from neuropod.evaluation import compare, evaluate

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def detector(tmp_path):
    """Its outputs are its inputs: (num_detections, 4), (num_detections,) and (num_detections,)."""
    specs = {
        "boxes": ("float64", ["num_detections", 4]),
        "scores": ("float64", ["num_detections"]),
        "classes": ("int64", ["num_detections"]),
    }

    def make(name):
        return write_package(
            tmp_path / f"{name}.neuropod",
            name=name,
            inputs=[(f"in_{key}", *spec) for key, spec in specs.items()],
            # A constant output keeps the symbol from being one of the batch.
            outputs=[*((key, *spec) for key, spec in specs.items()), ("names", "string", [1])],
            model={
                "outputs": {
                    **{key: {"op": "identity", "input": f"in_{key}"} for key in specs},
                    "names": {"op": "constant", "dtype": "string", "shape": [1], "values": ["x"]},
                }
            },
        )

    return make


@pytest.fixture
def table(tmp_path):
    """Detections as inputs, true boxes as targets; what pycocotools says of them."""
    found, truth = random_images(3)
    columns = {f"in_{name}": rows for name, rows in found.items()} | truth
    # Arrow has no rows (0, 4): an image without boxes has one that is padding.
    table = {name: [np.asarray(row).tolist() for row in rows] for name, rows in columns.items()}
    kept = [i for i, boxes in enumerate(table["in_boxes"]) if boxes]
    pq.write_table(
        pa.table({name: [rows[i] for i in kept] for name, rows in table.items()}),
        tmp_path / "d.parquet",
    )
    sides = [
        {name: [rows[i] for i in kept] for name, rows in side.items()} for side in (found, truth)
    ]
    return tmp_path / "d.parquet", reference(*sides)


def test_average_precision_of_a_package_is_pycocotools(detector, table):
    path, (mean, at_half) = table
    result = evaluate([detector("a")], path, ["coco_ap", "coco_ap50"], resamples=50)
    (package,) = result.packages
    assert package.error is None and package.batch_symbol is None
    assert package.metrics["coco_ap"].value == pytest.approx(mean, abs=1e-12)
    assert package.metrics["coco_ap50"].value == pytest.approx(at_half, abs=1e-12)
    low, high = package.metrics["coco_ap"].interval
    assert low < mean < high


def test_detectors_are_compared_image_by_image(detector, table):
    path, _ = table
    result = compare(detector("a"), detector("b"), path)
    assert result.agrees
    assert [output.name for output in result.outputs] == ["boxes", "scores", "classes", "names"]


def test_a_detector_runs_on_a_folder_of_images_with_coco_annotations(tmp_path):
    package = write_package(
        tmp_path / "constant.neuropod",
        inputs=[("image", "uint8", [4, 6, 3])],
        outputs=[
            ("boxes", "float32", ["n", 4]),
            ("scores", "float32", ["n"]),
            ("classes", "string", ["n"]),
        ],
        model={
            "outputs": {
                "boxes": {
                    "op": "constant",
                    "dtype": "float32",
                    "shape": [1, 4],
                    "values": [1, 1, 3, 3],
                },
                "scores": {"op": "constant", "dtype": "float32", "shape": [1], "values": [0.9]},
                "classes": {"op": "constant", "dtype": "string", "shape": [1], "values": ["dog"]},
            }
        },
    )
    folder = tmp_path / "images"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (6, 4)).save(folder / name)
    annotations = {
        "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"image_id": 1, "category_id": 2, "bbox": [1, 1, 2, 2]},
            {"image_id": 2, "category_id": 2, "bbox": [1, 1, 2, 2]},
        ],
    }
    (folder / "annotations.json").write_text(json.dumps(annotations))
    result = evaluate([package], folder, ["coco_ap"])
    assert result.packages[0].error is None
    assert result.packages[0].metrics["coco_ap"].value == pytest.approx(1)
    annotations["annotations"][1]["category_id"] = 1
    (folder / "other.json").write_text(json.dumps(annotations))
    result = evaluate([package], folder, ["coco_ap"], labels=folder / "other.json")
    assert result.packages[0].metrics["coco_ap"].value == pytest.approx(0.5)  # cats none, dogs all
