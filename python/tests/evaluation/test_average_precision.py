import contextlib
import io

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from scoring import value_of

from neuropod.evaluation import DataError, MetricError

SPECS = [
    {"name": "boxes", "dtype": "float64", "shape": ["n", 4]},
    {"name": "scores", "dtype": "float64", "shape": ["n"]},
    {"name": "classes", "dtype": "int64", "shape": ["n"]},
]


def random_boxes(rng, count):
    corner = rng.uniform(0, 80, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(5, 40, (count, 2))], axis=1)


def random_images(seed, images=30, crowd_share=0.15, most=12):
    """Boxes, classes and crowds of images, and detections around them, some of them wrong."""
    rng = np.random.default_rng(seed)
    truth = {"boxes": [], "classes": [], "crowd": []}
    found = {"boxes": [], "scores": [], "classes": []}
    for _ in range(images):
        count = int(rng.integers(0, most))
        boxes, classes = random_boxes(rng, count), rng.integers(1, 5, count)
        truth["boxes"].append(boxes)
        truth["classes"].append(classes)
        truth["crowd"].append(rng.random(count) < crowd_share)
        near = rng.random(count) < 0.8
        extra = int(rng.integers(0, most))
        moved = boxes[near] + rng.normal(0, 2, (near.sum(), 4))
        moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)
        found["boxes"].append(np.concatenate([moved, random_boxes(rng, extra)]))
        found["classes"].append(np.concatenate([classes[near], rng.integers(1, 6, extra)]))
        # Rounded, so that scores are equal now and then.
        found["scores"].append(np.round(rng.random(near.sum() + extra), 2))
    return found, truth


def reference(found, truth):
    """pycocotools' AP at IoU 0.5:0.95 and at 0.5."""

    def entries(columns, image, **more):
        left_top_size = np.concatenate(
            [
                columns["boxes"][image][:, :2],
                columns["boxes"][image][:, 2:] - columns["boxes"][image][:, :2],
            ],
            axis=1,
        )
        return [
            {
                "image_id": image,
                "category_id": int(columns["classes"][image][i]),
                "bbox": box.tolist(),
                "area": float(box[2] * box[3]),
                **{key: column[image][i].item() for key, column in more.items()},
            }
            for i, box in enumerate(left_top_size)
        ]

    images = range(len(truth["boxes"]))
    annotations = [a for i in images for a in entries(truth, i, iscrowd=truth["crowd"])]
    for number, annotation in enumerate(annotations, 1):
        annotation.update(id=number, iscrowd=int(annotation["iscrowd"]))
    detections = [d for i in images for d in entries(found, i, score=found["scores"])]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": i} for i in images],
            "annotations": annotations,
            "categories": [{"id": c, "name": str(c)} for c in range(1, 6)],
        }
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(detections), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats[0], evaluation.stats[1]


@pytest.mark.parametrize("seed", range(4))
def test_average_precision_is_pycocotools(seed):
    found, truth = random_images(seed)
    mean, at_half = reference(found, truth)
    assert value_of("coco_ap", found, truth, specs=SPECS) == pytest.approx(mean, abs=1e-12)
    assert value_of("coco_ap50", found, truth, specs=SPECS) == pytest.approx(at_half, abs=1e-12)
    assert 0.1 < mean < at_half < 1


def test_at_most_100_detections_of_a_class_count_per_image():
    found, truth = random_images(7, images=3, most=400)
    mean, _ = reference(found, truth)
    assert value_of("coco_ap", found, truth, specs=SPECS) == pytest.approx(mean, abs=1e-12)


def test_padding_and_the_size_format_give_the_same():
    found, truth = random_images(1, images=8, crowd_share=0)
    wanted = value_of("coco_ap", found, truth, specs=SPECS)
    most = max(map(len, truth["boxes"]))
    padded = {
        "boxes": np.stack([np.pad(b, ((0, most - len(b)), (0, 0))) for b in truth["boxes"]]),
        "classes": np.stack(
            [np.pad(c, (0, most - len(c)), constant_values=-1) for c in truth["classes"]]
        ),
    }
    assert value_of("coco_ap", found, padded, specs=SPECS) == pytest.approx(wanted)
    sized = [np.concatenate([b[:, :2], b[:, 2:] - b[:, :2]], axis=1) for b in found["boxes"]]
    value = value_of("coco_ap:format=xywh", {**found, "boxes": sized}, truth, specs=SPECS)
    assert value == pytest.approx(wanted)


def test_scores_of_each_class_and_names_of_classes_are_understood():
    specs = [SPECS[0], {"name": "probability", "dtype": "float64", "shape": ["n", "classes"]}]
    box = np.asarray([[0.0, 0, 10, 10], [50, 50, 60, 60]])
    outputs = {"boxes": [box], "probability": [np.asarray([[0.9, 0.1], [0.2, 0.8]])]}
    truth = {"boxes": [box], "classes": [np.asarray([0, 1])]}
    assert value_of("coco_ap", outputs, truth, specs=specs) == pytest.approx(1)
    named = {"boxes": [box], "classes": [np.asarray(["cat", "dog"])]}
    assert value_of(
        "coco_ap", outputs, named, specs=specs, classes=["cat", "dog"]
    ) == pytest.approx(1)
    texts = [SPECS[0], SPECS[1], {"name": "classes", "dtype": "string", "shape": ["n"]}]
    outputs = {
        "boxes": [box],
        "scores": [np.asarray([0.9, 0.8])],
        "classes": [np.asarray(["cat", "dog"])],
    }
    assert value_of("coco_ap", outputs, named, specs=texts) == pytest.approx(1)
    value = value_of("coco_ap", outputs, truth, specs=texts, classes=["dog", "cat"])
    assert value == pytest.approx(0)


def test_what_does_not_fit_is_refused():
    box, one = np.asarray([[0.0, 0, 10, 10]]), np.asarray([1])
    found = {"boxes": [box], "scores": [np.asarray([0.5])], "classes": [one]}
    truth = {"boxes": [box], "classes": [one]}
    with pytest.raises(
        MetricError, match=r"needs an output with boxes \(n, 4\); the model has: 'y'"
    ):
        value_of("coco_ap", {"y": np.ones(1)}, truth)
    with pytest.raises(MetricError, match="no column 'boxes'"):
        value_of("coco_ap", found, {"label": one}, specs=SPECS)
    with pytest.raises(DataError, match="line 2: 1 boxes in 'boxes' but 2 classes in 'classes'"):
        value_of("coco_ap", found, {**truth, "classes": [np.asarray([1, 2])]}, specs=SPECS)
    with pytest.raises(MetricError, match="holds no boxes"):
        value_of("coco_ap", found, {"boxes": [box], "classes": [-one]}, specs=SPECS)
    with pytest.raises(MetricError, match=r"line 2: 1 boxes, 2 scores and 1 classes"):
        value_of("coco_ap", {**found, "scores": [np.asarray([0.5, 0.4])]}, truth, specs=SPECS)
