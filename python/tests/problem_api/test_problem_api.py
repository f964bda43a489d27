"""`neuropod.ProblemAPI`, and packagers that take one."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from echo_packager import create_echo_neuropod

import neuropod
from neuropod import InvalidArgumentError, InvalidPackageError, NotFoundError, ProblemAPI

INPUTS = [{"name": "x", "dtype": "float32", "shape": ("n", 3)}]
OUTPUTS = [{"name": "y", "dtype": "float32", "shape": ("n", 3)}]


@pytest.fixture
def api():
    return ProblemAPI(inputs=INPUTS, outputs=OUTPUTS)


def test_holds_specs_as_a_models_are(api):
    assert api.inputs == [{"name": "x", "dtype": "float32", "shape": ["n", 3]}]
    assert api.outputs == [{"name": "y", "dtype": "float32", "shape": ["n", 3]}]


def test_takes_dtypes_as_numpy_has_them():
    api = ProblemAPI(inputs=[{"name": "x", "dtype": np.int64, "shape": [np.int32(2), None]}])
    assert api.inputs == [{"name": "x", "dtype": "int64", "shape": [2, None]}]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([{"name": "y", "dtype": "float31", "shape": ()}], "float31"),
        ([{"name": "y", "dtype": "float32", "shape": (0,)}], "at least 1"),
        ([{"name": "y", "dtype": "float32", "shape": ("",)}], "empty"),
        ([{"name": "y", "dtype": "float32"}], "shape"),
        ([{"name": "y", "dtype": "float32", "shape": (), "optional": True}], "only inputs"),
        (OUTPUTS * 2, "twice"),
        ([{"name": "y", "dtype": "float32", "shap": ()}], "shape"),
    ],
)
def test_refuses_specs_that_no_package_could_have(outputs, message):
    with pytest.raises(InvalidArgumentError, match=message):
        ProblemAPI(inputs=INPUTS, outputs=outputs)


def test_survives_its_file_and_pickle(api, tmp_path):
    api.to_file(tmp_path / "api.json")
    assert ProblemAPI.from_file(tmp_path / "api.json") == api
    assert pickle.loads(pickle.dumps(api)) == api
    assert len({api, ProblemAPI.from_file(tmp_path / "api.json")}) == 1
    assert api != ProblemAPI(inputs=INPUTS)


def test_its_repr_shows_both_sides(api):
    assert repr(api) == "<ProblemAPI x float32 (n, 3) -> y float32 (n, 3)>"
    strange = ProblemAPI(inputs=[{"name": "a\nb\x1b", "dtype": "int8", "shape": ()}])
    assert repr(strange) == r"<ProblemAPI a\nb\x1b int8 () -> nothing>"


def test_a_files_mistake_has_line_and_key(api, tmp_path):
    path = tmp_path / "api.json"
    path.write_text(str(api).replace("float32", "flaot32", 1))
    with pytest.raises(InvalidArgumentError) as caught:
        ProblemAPI.from_file(path)
    assert f"{path}:4: 'input_spec[0].dtype'" in str(caught.value)
    assert "did you mean 'float32'?" in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"nothing\.json"):
        ProblemAPI.from_file(tmp_path / "nothing.json")


def test_says_how_another_differs(api):
    wider = ProblemAPI(
        inputs=[{"name": "x", "dtype": "float32", "shape": ("n", None)}],
        outputs=[*OUTPUTS, {"name": "z", "dtype": "string", "shape": ()}],
    )
    assert [(d.side, d.tensor, d.breaking) for d in api.differences(wider)] == [
        ("input", "x", False),
        ("output", "z", False),
    ]
    assert api.is_fulfilled_by(wider)
    assert not wider.is_fulfilled_by(api)
    breaking = [str(d) for d in wider.differences(api) if d.breaking]
    assert breaking == [
        "input 'x' dimension 1 takes 3 only instead of any size",
        "output 'z' is missing: string ()",
    ]


def test_importing_it_imports_no_numpy():
    code = "import sys, neuropod; neuropod.ProblemAPI; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---- packagers


def _package(path, **specs):
    create_echo_neuropod(
        neuropod_path=path,
        model_name="m",
        outputs={"y": {"op": "identity", "input": "x"}},
        **specs,
    )


def test_a_packager_takes_it_instead_of_the_specs(api, tmp_path):
    api.to_file(tmp_path / "api.json")
    _package(tmp_path / "by_specs", input_spec=INPUTS, output_spec=OUTPUTS)
    _package(tmp_path / "by_api", problem_api=api)
    _package(tmp_path / "by_path", problem_api=str(tmp_path / "api.json"))
    assert ProblemAPI.from_package(tmp_path / "by_api") == api
    contents = {(tmp_path / name).read_bytes() for name in ("by_specs", "by_api", "by_path")}
    assert len(contents) == 1


@pytest.mark.parametrize("given", ["input_spec", "output_spec"])
def test_a_packager_refuses_both(api, given, tmp_path):
    with pytest.raises(InvalidArgumentError, match=f"problem_api and {given}"):
        _package(tmp_path / "p", problem_api=api, **{given: INPUTS})
    assert not (tmp_path / "p").exists()


def test_a_packager_asks_for_one_of_them(tmp_path):
    with pytest.raises(InvalidArgumentError, match="'output_spec', or problem_api"):
        _package(tmp_path / "p", input_spec=INPUTS)


@pytest.mark.parametrize("given", [{"inputs": INPUTS}, 3])
def test_a_packager_refuses_what_is_no_problem_api(given, tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"must be a neuropod\.ProblemAPI or the path"):
        _package(tmp_path / "p", problem_api=given)


def test_a_broken_package_is_named(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "config.json").write_text("{")
    with pytest.raises(InvalidPackageError, match=r"config\.json"):
        neuropod.ProblemAPI.from_package(tmp_path / "p")
