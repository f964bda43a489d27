import ml_dtypes
import numpy as np
import pytest
from echo_packager import create_echo_neuropod
from processes import outputs
from test_cli import failed

from neuropod.cli.main import main
from neuropod.packaging.arrays import read_npz, write_npz

X = np.arange(3, dtype="float32")


def test_inputs_from_one_npz(capsys, addition, inputs):
    shown = outputs(capsys, addition, "-i", inputs)
    assert shown == {"out": {"dtype": "float32", "shape": [3], "data": [0, 2, 4]}}


def test_inputs_by_name_from_several_kinds_of_files(capsys, addition, tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.json").write_text("[1, 2.5, -3]")
    shown = outputs(capsys, addition, "-i", f"x={tmp_path}/x.npy", "-i", f"y={tmp_path}/y.json")
    assert shown["out"]["data"] == [1, 3.5, -1]


def test_inputs_from_one_json(capsys, addition, tmp_path):
    (tmp_path / "in.json").write_text('{"x": [1], "y": [2]}')
    assert outputs(capsys, addition, "-i", tmp_path / "in.json")["out"]["data"] == [3]


def test_a_npz_of_one_array_may_be_named(capsys, addition, tmp_path):
    np.savez(tmp_path / "one.npz", whatever=X)
    arguments = ["-i", f"x={tmp_path}/one.npz", "-i", f"y={tmp_path}/one.npz"]
    assert outputs(capsys, addition, *arguments)["out"]["data"] == [0, 2, 4]


def test_outputs_are_printed_as_a_table(capsys, addition, inputs):
    assert main(["run", addition, "-i", inputs]) == 0
    shown = capsys.readouterr().out
    assert "[0. 2. 4.]" in shown
    assert "float32" in shown


def test_outputs_are_saved(capsys, addition, inputs, tmp_path):
    target = tmp_path / "out.npz"
    assert main(["run", addition, "-i", inputs, "-o", str(target)]) == 0
    with np.load(target) as saved:
        np.testing.assert_array_equal(saved["out"], 2 * X)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "addition.neuropod",
        "inputs.npz",
        "out.npz",
    ]


def test_nan_and_infinities_pass_and_are_strings_in_json(capsys, addition, tmp_path):
    (tmp_path / "in.json").write_text('{"x": [NaN, Infinity, 1], "y": [1, 1, 1]}')
    assert outputs(capsys, addition, "-i", tmp_path / "in.json")["out"]["data"] == [
        "NaN",
        "Infinity",
        2,
    ]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "bool", "uint64", "string"])
def test_every_kind_of_element_travels_by_file(capsys, tmp_path, dtype):
    spec = {"dtype": dtype, "shape": (2,)}
    create_echo_neuropod(
        neuropod_path=tmp_path / "a",
        model_name="a",
        input_spec=[{"name": "x", **spec}],
        output_spec=[{"name": "y", **spec}],
        outputs={"y": {"op": "identity", "input": "x"}},
    )
    values = {
        "bfloat16": np.array([1.5, 2], ml_dtypes.bfloat16),
        "float16": np.array([1.5, 2], "float16"),
        "complex64": np.array([1 + 2j, 3], "complex64"),
        "bool": np.array([True, False]),
        "uint64": np.array([2**64 - 1, 0], "uint64"),
        "string": np.array(["ends\0", "größe"], dtype=object),
    }[dtype]
    write_npz(tmp_path / "in.npz", {"x": values})
    shown = outputs(capsys, tmp_path / "a", "-i", tmp_path / "in.npz")["y"]
    assert shown["dtype"] == dtype
    expected = {
        "bfloat16": [1.5, 2],
        "complex64": [[1, 2], [3, 0]],
    }.get(dtype, values.tolist())
    assert shown["data"] == expected
    arguments = ["run", str(tmp_path / "a"), "-i", str(tmp_path / "in.npz"), "-o"]
    assert main([*arguments, str(tmp_path / "out.npz")]) == 0
    np.testing.assert_array_equal(read_npz(tmp_path / "out.npz", {"y": dtype})["y"], values)


def test_requested_outputs_alone_are_returned(capsys, tmp_path):
    spec = {"dtype": "int8", "shape": ()}
    create_echo_neuropod(
        neuropod_path=tmp_path / "a",
        model_name="a",
        input_spec=[{"name": "x", **spec}],
        output_spec=[{"name": "y", **spec}, {"name": "z", **spec}],
        outputs={name: {"op": "identity", "input": "x"} for name in ("y", "z")},
    )
    (tmp_path / "x.json").write_text("7")
    arguments = [tmp_path / "a", "-i", f"x={tmp_path}/x.json", "--request"]
    assert outputs(capsys, *arguments, "z") == {"z": {"dtype": "int8", "shape": [], "data": 7}}
    code, message = failed(capsys, "run", *arguments, "w")
    assert code == 2
    assert "w" in message


# Wrong files.


@pytest.mark.parametrize(
    ("argument", "content", "message"),
    [
        ("x=missing.npy", None, "missing.npy does not exist"),
        ("x=a.csv", b"1,2", "unknown kind of file"),
        ("x=a.npy", b"garbage", "can't be read as an array"),
        ("x=a.npz", b"garbage", "can't be read"),
        ("x=a.json", b"[1,", "is no JSON"),
        ("x=a.png", b"garbage", "can't be read as a picture"),
        ("a.json", b"[1]", "no object with inputs by name"),
        ("a.json", b'{"z": 1}', "'z', which is no input"),
        ("a.npy", b"garbage", "-i NAME="),
        ("z=a.npy", None, "no input 'z'"),
    ],
)
def test_a_wrong_file_is_named(capsys, addition, tmp_path, monkeypatch, argument, content, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / argument.split("=")[-1]).write_bytes(content)
    code, shown = failed(capsys, "run", addition, "-i", argument)
    assert code == 2
    assert message in shown


def test_pickled_arrays_are_refused(capsys, addition, tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    code, message = failed(capsys, "run", addition, "-i", f"x={tmp_path}/x.npy")
    assert code == 2
    assert "x.npy" in message


def test_an_input_given_twice_is_refused(capsys, addition, inputs):
    code, message = failed(capsys, "run", addition, "-i", inputs, "-i", inputs)
    assert code == 2
    assert "given twice" in message


@pytest.mark.parametrize("target", ["out.csv", "no/such/out.npz"])
def test_a_place_for_outputs_is_checked_before_the_model_runs(capsys, addition, inputs, target):
    code, message = failed(capsys, "run", addition, "-i", inputs, "-o", target)
    assert code == 2
    assert target.split("/")[0] in message
