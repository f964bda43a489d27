"""Real models on real data: two networks that read handwritten digits."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn import metrics as reference

sys.path.append(str(Path(__file__).resolve().parents[3] / "examples" / "demo"))

from neuropod.evaluation import compare, evaluate


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder with `short.neuropod` and `long.neuropod`, trained for 2 and 12 epochs; the held-out
    part of the data; what PyTorch itself says of it, by package."""
    import digits
    import torch

    from neuropod.packagers import create_torchscript_neuropod

    folder = tmp_path_factory.mktemp("digits")
    split = digits.load_split()
    probabilities = {}
    for name, epochs in (("short", 2), ("long", 12)):
        network = digits.train(split, epochs=epochs)
        with torch.no_grad():
            outputs = network(torch.from_numpy(split.held_out_images))
        probabilities[f"{name}.neuropod"] = outputs["probabilities"].numpy()
        create_torchscript_neuropod(
            neuropod_path=str(folder / f"{name}.neuropod"),
            model_name=name,
            module=torch.jit.script(network),
            input_spec=digits.INPUT_SPEC,
            output_spec=digits.OUTPUT_SPEC,
        )
    return folder, split, probabilities


def test_figures_are_scikit_learns_of_what_pytorch_returns(models):
    folder, split, probabilities = models
    data = {"image": split.held_out_images, "digit": split.held_out_labels}
    packages = [folder / "short.neuropod", folder / "long.neuropod"]
    result = evaluate(packages, data, ["accuracy", "top2", "log_loss", "roc_auc"], resamples=100)
    assert [package.name for package in result.ranked()] == ["long.neuropod", "short.neuropod"]
    labels = split.held_out_labels
    for package in result.packages:
        scores = probabilities[package.name].astype("float64")
        scores /= scores.sum(axis=1, keepdims=True)
        found = {label: metric.value for label, metric in package.metrics.items()}
        assert found == {
            "accuracy": pytest.approx((scores.argmax(axis=1) == labels).mean()),
            "top2": pytest.approx(reference.top_k_accuracy_score(labels, scores, k=2)),
            "log_loss": pytest.approx(reference.log_loss(labels, scores), rel=1e-4),
            "roc_auc": pytest.approx(
                reference.roc_auc_score(labels, scores, multi_class="ovr"), abs=1e-6
            ),
        }
        assert package.batch_symbol == "batch"
    assert result.ranked()[0].metrics["accuracy"].value > 0.95


def test_scans_as_image_files_give_the_same_as_their_arrays(models, tmp_path):
    folder, split, probabilities = models
    for index in range(60):
        label, image = split.held_out_labels[index], split.held_out_images[index]
        (tmp_path / "scans" / str(label)).mkdir(parents=True, exist_ok=True)
        ink = np.round(image * (255 / 16)).astype("uint8")
        Image.fromarray(ink).save(tmp_path / "scans" / str(label) / f"{index}.png")
    result = evaluate(
        [folder / "long.neuropod"],
        tmp_path / "scans",
        ["accuracy"],
        pixel_range=(0, 16),
        resamples=0,
    )
    right = probabilities["long.neuropod"][:60].argmax(axis=1) == split.held_out_labels[:60]
    assert result.packages[0].metrics["accuracy"].value == pytest.approx(right.mean(), abs=0.02)


def test_two_models_agree_as_often_as_in_pytorch(models):
    folder, split, probabilities = models
    data = {"image": split.held_out_images[:100]}
    result = compare(folder / "short.neuropod", folder / "long.neuropod", data)
    scores, digit = result.outputs
    assert not result.agrees
    same = [p[:100].argmax(axis=1) for p in probabilities.values()]
    assert scores.argmax_agreement == (same[0] == same[1]).mean()
    assert digit.disagreeing_rows == (same[0] != same[1]).sum()
    assert result.a.resources.peak_memory > 100 << 20
