import numpy as np
import pytest
from scoring import value_of
from sklearn import metrics as reference

from neuropod.evaluation import DataError, MetricError


@pytest.fixture
def classes():
    """Probabilities of 6 classes, float32, with ties, and labels that they half predict."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 400)
    scores = rng.random((400, 6)) + 0.8 * np.eye(6)[labels]
    scores = np.round(scores / scores.sum(axis=1, keepdims=True), 2) + 1e-3
    return (scores / scores.sum(axis=1, keepdims=True)).astype("float32"), labels


@pytest.fixture
def binary():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 300)
    return np.clip(np.round(rng.normal(0.4 + 0.2 * labels, 0.2), 2), 0, 1), labels


def test_accuracy_is_scikit_learns(classes):
    scores, labels = classes
    wanted = reference.accuracy_score(labels, scores.argmax(axis=1))
    assert value_of("accuracy", {"p": scores}, {"label": labels}) == wanted
    assert value_of("accuracy", {"c": scores.argmax(axis=1)}, {"label": labels}) == wanted


def test_top_k_is_scikit_learns(classes):
    scores, labels = classes
    for k in (1, 2, 5):
        wanted = reference.top_k_accuracy_score(labels, scores, k=k)
        assert value_of(f"top{k}", {"p": scores}, {"label": labels}) == pytest.approx(wanted)


def test_log_loss_is_scikit_learns(classes, binary):
    scores, labels = classes
    wanted = reference.log_loss(labels, scores)
    assert value_of("log_loss", {"p": scores}, {"label": labels}) == pytest.approx(wanted, 1e-6)
    scores, labels = binary
    wanted = reference.log_loss(labels, scores)
    assert value_of("log_loss", {"p": scores}, {"label": labels}) == pytest.approx(wanted)


def test_roc_auc_of_two_classes_is_scikit_learns(binary):
    scores, labels = binary
    wanted = reference.roc_auc_score(labels, scores)
    both = np.stack([1 - scores, scores], axis=1)
    assert value_of("roc_auc", {"p": scores}, {"label": labels}) == pytest.approx(wanted)
    assert value_of("roc_auc", {"p": both}, {"label": labels}) == pytest.approx(wanted)


def test_roc_auc_of_many_classes_is_scikit_learns_one_against_the_rest(classes):
    scores, labels = classes
    wanted = reference.roc_auc_score(labels, scores.astype("float64"), multi_class="ovr")
    assert value_of("roc_auc", {"p": scores}, {"label": labels}) == pytest.approx(wanted)


def test_one_probability_means_class_1_from_one_half_on():
    outputs = {"p": np.asarray([0.2, 0.5, 0.7, 0.49])}
    assert value_of("accuracy", outputs, {"label": np.asarray([0, 1, 0, 0])}) == 0.75


def test_the_models_own_choice_of_class_goes_before_its_scores():
    outputs = {"scores": np.asarray([[0.1, 0.9]]), "chosen": np.asarray([0])}
    assert value_of("accuracy", outputs, {"label": np.asarray([0])}) == 1
    assert value_of("accuracy:scores", outputs, {"label": np.asarray([0])}) == 0


def test_labels_as_text_are_compared_as_text_or_looked_up_in_the_classes():
    labels = np.asarray(["cat", "dog", "dog"])
    named = {"name": np.asarray(["cat", "cat", "dog"])}
    assert value_of("accuracy", named, {"label": labels}) == pytest.approx(2 / 3)
    scores = {"p": np.asarray([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])}
    found = value_of("accuracy", scores, {"label": labels}, classes=["cat", "dog"])
    assert found == pytest.approx(2 / 3)


def test_a_row_with_nan_is_wrong():
    outputs = {"p": np.asarray([[np.nan, 0.1], [0.1, 0.9]])}
    assert value_of("accuracy", outputs, {"label": np.asarray([0, 1])}) == 0.5
    assert value_of("accuracy", {"p": np.asarray([np.nan, 0.1])}, {"l": np.asarray([0, 0])}) == 0.5
    assert np.isnan(value_of("roc_auc", {"p": outputs["p"]}, {"label": np.asarray([0, 1])}))


def test_unknown_labels_are_named_with_their_line():
    outputs = {"p": np.asarray([[0.9, 0.1], [0.2, 0.8]])}
    with pytest.raises(
        DataError, match=r"data.csv line 3: unknown label 'dgo'.*did you mean 'dog'"
    ):
        value_of("accuracy", outputs, {"label": np.asarray(["cat", "dgo"])}, classes=["cat", "dog"])
    with pytest.raises(
        DataError, match=r"line 2: 'label' is 7, class 7; the model's classes are 0 to 1"
    ):
        value_of("accuracy", outputs, {"label": np.asarray([7, 0])})
    with pytest.raises(MetricError, match=r"holds names such as 'cat'; --classes says"):
        value_of("accuracy", outputs, {"label": np.asarray(["cat", "dog"])})


def test_metrics_that_fit_no_output_say_what_they_need():
    label = {"label": np.asarray([0, 1])}
    with pytest.raises(
        MetricError, match=r"accuracy needs an output.*outputs are 'y' float32 \(batch, 2"
    ):
        value_of("accuracy", {"y": np.zeros((2, 2, 2), "float32")}, label)
    with pytest.raises(
        MetricError, match=r"top2.*'y' float32 \(batch, 2\) has 2 classes.*smaller k"
    ):
        value_of("top2", {"y": np.zeros((2, 2), "float32")}, label)
    with pytest.raises(
        MetricError, match=r"several outputs fit: 'a', 'b'; choose with roc_auc:OUTPUT"
    ):
        value_of("roc_auc", {"a": np.zeros(2), "b": np.zeros(2)}, label)
    with pytest.raises(MetricError, match=r"no output 'skores'; did you mean 'scores'"):
        value_of("accuracy:skores", {"scores": np.zeros((2, 2))}, label)
    with pytest.raises(
        MetricError, match=r"roc_auc.*two classes; 'label' in data.csv is 1 in every row"
    ):
        value_of("roc_auc", {"y": np.zeros(2)}, {"label": np.asarray([1, 1])})


def test_log_loss_of_logits_is_refused():
    with pytest.raises(MetricError, match=r"'y' for data.csv line 3 sums to 5 .*are they logits\?"):
        value_of("log_loss", {"y": np.asarray([[0.5, 0.5], [2.0, 3.0]])}, {"l": np.asarray([0, 1])})


def test_the_target_is_chosen_or_asked_for():
    outputs = {"p": np.asarray([0.2, 0.7])}
    two = {"a": np.asarray([0, 1]), "b": np.asarray([1, 1])}
    assert value_of("accuracy:target=b", outputs, two) == 0.5
    assert value_of("accuracy", outputs, two, target="a") == 1
    with pytest.raises(
        MetricError, match=r"may be the target: 'a', 'b'; choose with --target NAME"
    ):
        value_of("accuracy", outputs, two)
    with pytest.raises(MetricError, match=r"no column 'c'; known: 'x', 'a', 'b'"):
        value_of("accuracy:target=c", outputs, two)
    with pytest.raises(MetricError, match="no column but inputs"):
        value_of("accuracy", outputs, {})


def test_metrics_written_wrong_are_refused():
    outputs, label = {"p": np.asarray([0.2])}, {"l": np.asarray([0])}
    with pytest.raises(MetricError, match=r"unknown metric 'acuracy'; did you mean 'accuracy'\?"):
        value_of("acuracy", outputs, label)
    with pytest.raises(MetricError, match=r"unknown metric 'f17'; known: accuracy, top5"):
        value_of("f17", outputs, label)
    with pytest.raises(MetricError, match=r"unknown option 'ouput'; did you mean 'output'"):
        value_of("accuracy:ouput=p", outputs, label)
    with pytest.raises(MetricError, match="expected as NAME, NAME:OUTPUT"):
        value_of("accuracy:", outputs, label)


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
def test_one_score_that_is_no_probability_is_refused(metric):
    """From 0.5 on it would mean class 1; of a logit that would be wrong, and nobody would see it."""
    with pytest.raises(MetricError, match=r"line 3 is -1\.5 \(is it a logit\?\)"):
        value_of(metric, {"p": np.array([0.5, -1.5, 7])}, {"label": np.array([0, 0, 1])})
