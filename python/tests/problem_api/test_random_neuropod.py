"""`create_random_neuropod`: a stand-in for a model that doesn't exist yet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neuropod.packagers
from neuropod import InvalidArgumentError, ProblemAPI, create_random_neuropod, load_neuropod
from neuropod.packaging.dtypes import ALLOWED_DTYPES, numpy_dtype

DETECTION = ProblemAPI(
    inputs=[{"name": "image", "dtype": "uint8", "shape": (1200, 1920, 3)}],
    outputs=[
        {"name": "boxes", "dtype": "float32", "shape": ("num_detections", 4)},
        {"name": "supported_object_classes", "dtype": "string", "shape": ("num_classes",)},
        {
            "name": "object_class_probability",
            "dtype": "float32",
            "shape": ("num_detections", "num_classes"),
        },
    ],
)


def test_stands_in_for_an_object_detector(tmp_path):
    create_random_neuropod(tmp_path / "detector.neuropod", DETECTION)
    with load_neuropod(tmp_path / "detector.neuropod") as model:
        assert model.name == "random"
        for _ in range(5):
            outputs = model.infer({"image": np.zeros((1200, 1920, 3), "uint8")})
            boxes, classes, probability = outputs.values()
            assert boxes.shape[1:] == (4,)
            assert probability.shape == (*boxes.shape[:1], *classes.shape)
            assert ((probability >= 0) & (probability <= 1)).all()
            assert all(isinstance(name, str) and name for name in classes.tolist())
    assert DETECTION.is_fulfilled_by(ProblemAPI.from_package(tmp_path / "detector.neuropod"))


def test_takes_the_path_of_a_file_and_a_packagers_arguments(tmp_path):
    DETECTION.to_file(tmp_path / "detection.json")
    for _ in range(2):
        create_random_neuropod(
            neuropod_path=tmp_path / "p",
            problem_api=tmp_path / "detection.json",
            model_name="detector",
            package_as_zip=False,
            overwrite=True,
        )
    assert (tmp_path / "p" / "config.json").exists()


def test_takes_specs(tmp_path):
    spec = [{"name": "y", "dtype": "int8", "shape": (2,)}]
    create_random_neuropod(tmp_path / "p", input_spec=[], output_spec=spec)
    with load_neuropod(tmp_path / "p") as model:
        assert model.infer({})["y"].shape == (2,)


def test_a_seed_gives_the_same_sequence_each_time(tmp_path):
    api = ProblemAPI(outputs=[{"name": "y", "dtype": "float64", "shape": ("n", 3)}])
    create_random_neuropod(tmp_path / "p", api, seed=3)

    def three():
        with load_neuropod(tmp_path / "p") as model:
            return [model.infer({})["y"] for _ in range(3)]

    first, again = three(), three()
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True])
def test_refuses_what_is_no_seed(seed, tmp_path):
    with pytest.raises(InvalidArgumentError, match="seed"):
        create_random_neuropod(tmp_path / "p", DETECTION, seed=seed)
    assert not (tmp_path / "p").exists()


def test_refuses_arguments_that_no_packager_has(tmp_path):
    with pytest.raises(
        InvalidArgumentError, match="create_random_neuropod has no argument 'overwrit'"
    ):
        create_random_neuropod(tmp_path / "p", DETECTION, overwrit=True)
    with pytest.raises(InvalidArgumentError, match="problem_api"):
        create_random_neuropod(tmp_path / "p")


def test_is_a_packager_like_the_others():
    assert neuropod.packagers.create_random_neuropod is create_random_neuropod


_SHAPES = st.lists(st.sampled_from([1, 4, None, "a", "b"]), max_size=3)


def _specs(names):
    return st.lists(
        st.fixed_dictionaries({"dtype": st.sampled_from(ALLOWED_DTYPES), "shape": _SHAPES}),
        max_size=3,
    ).map(lambda specs: [{"name": n, **s} for n, s in zip(names, specs, strict=False)])


def size_of(dimension):
    """What the inputs below give a dimension."""
    return dimension if isinstance(dimension, int) else 5


@settings(max_examples=12, deadline=None)
@given(inputs=_specs("xyz"), outputs=_specs("uvw"))
def test_obeys_any_api(tmp_path_factory, inputs, outputs):
    path = tmp_path_factory.mktemp("random") / "p"
    create_random_neuropod(path, ProblemAPI(inputs=inputs, outputs=outputs))
    with load_neuropod(path) as model:
        result = model.infer(
            {
                spec["name"]: np.zeros(
                    [size_of(d) for d in spec["shape"]], numpy_dtype(spec["dtype"])
                )
                for spec in inputs
            }
        )
    assert list(result) == [spec["name"] for spec in outputs]
    bound = {symbol for spec in inputs for symbol in spec["shape"] if isinstance(symbol, str)}
    for spec in outputs:
        for size, written in zip(result[spec["name"]].shape, spec["shape"], strict=True):
            if isinstance(written, int) or written in bound:
                assert size == size_of(written)
            else:
                assert 1 <= size <= 8
