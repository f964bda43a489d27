"""`neuropod api show|check|diff`."""

import json

import pytest
from echo_packager import create_echo_neuropod

from neuropod import ProblemAPI
from neuropod.cli.main import main

API = ProblemAPI(
    inputs=[{"name": "x", "dtype": "float32", "shape": ("n", 3)}],
    outputs=[{"name": "y", "dtype": "float32", "shape": ("n", 3)}],
)
WIDER = ProblemAPI(
    inputs=[{"name": "x", "dtype": "float32", "shape": ("n", None)}],
    outputs=[*API.outputs, {"name": "z", "dtype": "float32", "shape": (None, None)}],
)
OTHER = ProblemAPI(inputs=API.inputs, outputs=WIDER.outputs[1:])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with `api.json` and packages of the three APIs, which is the current one."""
    monkeypatch.chdir(tmp_path)
    API.to_file("api.json")
    for name, api in (("same", API), ("wider", WIDER), ("other", OTHER)):
        package = tmp_path / name
        (package / "0" / "data").mkdir(parents=True)
        config = {"name": name, "platform": "echo", "format_version": 1}
        config |= {"input_spec": api.inputs, "output_spec": api.outputs}
        (package / "config.json").write_text(json.dumps(config))
    return tmp_path


def run(capsys, *arguments):
    """Exit code, stdout and stderr of `neuropod api …`."""
    try:
        code = main(["api", *arguments])
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys, *arguments):
    code, out, _ = run(capsys, *arguments, "--json")
    return code, json.loads(out)


@pytest.mark.parametrize("source", ["api.json", "same"])
def test_show_shows_a_file_as_a_package(capsys, source):
    code, out, _ = run(capsys, "show", source)
    assert code == 0
    assert [line.split() for line in out.splitlines() if "float32" in line] == [
        ["x", "float32", "(n,", "3)"],
        ["y", "float32", "(n,", "3)"],
    ]
    assert run_json(capsys, "show", source) == (0, {"inputs": API.inputs, "outputs": API.outputs})


def test_show_tells_a_zip_from_a_problem_api_file(capsys):
    create_echo_neuropod(
        neuropod_path="zip.json",
        model_name="m",
        problem_api=API,
        outputs={"y": {"op": "identity", "input": "x"}},
    )
    assert run_json(capsys, "show", "zip.json")[1]["inputs"] == API.inputs


def test_show_writes_the_file_of_a_package(capsys, folder):
    assert run(capsys, "show", "wider", "-o", "wider.json") == (0, "written: wider.json\n", "")
    assert ProblemAPI.from_file(folder / "wider.json") == WIDER


def test_check_says_of_each_package_whether_it_fulfils_the_api(capsys):
    code, out, err = run(capsys, "check", "api.json", "same", "wider", "other")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "same: fulfils api.json",
        "wider: fulfils api.json",
        "  fine:   input 'x' dimension 1 takes any size instead of 3",
        "  fine:   output 'z' is new: float32 (any, any)",
        "other: DOES NOT fulfil api.json",
        "  breaks: output 'y' is missing: float32 (n, 3)",
        "  fine:   output 'z' is new: float32 (any, any)",
    ]


def test_check_ends_with_0_if_all_fulfil_it(capsys):
    code, result = run_json(capsys, "check", "api.json", "wider", "same")
    assert code == 0
    assert [package["fulfils"] for package in result["packages"]] == [True, True]
    assert result["packages"][0]["differences"][0] == {
        "side": "input",
        "tensor": "x",
        "text": "input 'x' dimension 1 takes any size instead of 3",
        "breaking": False,
    }


def test_check_goes_on_behind_a_package_that_cannot_be_read(capsys):
    code, out, _ = run(capsys, "check", "api.json", "nowhere", "other")
    assert code == 3
    assert out.startswith("nowhere: can't be read: ")
    assert "other: DOES NOT fulfil api.json" in out


def test_diff_says_how_and_which_can_replace_which(capsys):
    code, out, _ = run(capsys, "diff", "api.json", "wider")
    assert code == 0
    assert out.splitlines()[-2:] == [
        "wider can replace api.json",
        "api.json CANNOT replace wider",
    ]
    code, result = run_json(capsys, "diff", "wider", "api.json")
    assert (result["new_can_replace_old"], result["old_can_replace_new"]) == (False, True)
    assert [d["breaking"] for d in result["differences"]] == [True, True]


def test_diff_of_the_same_api_says_so(capsys):
    assert run(capsys, "diff", "same", "api.json") == (
        0,
        "api.json and same have the same problem API\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["show", "nowhere.json"], 2, "nowhere.json"),
        (["show", "typo.json"], 2, "typo.json:4: 'input_spec[0].dtype'"),
        (["check", "typo.json", "same"], 2, "did you mean 'float32'?"),
        (["check", "api.json"], 2, "PACKAGE"),
        (["show", "broken"], 3, "config.json"),
        (["show", "same", "-o", "nowhere/api.json"], 2, "nowhere/api.json"),
        (["tell", "same"], 2, "show"),
    ],
)
def test_mistakes_are_one_line(capsys, folder, arguments, code, text):
    (folder / "typo.json").write_text(str(API).replace("float32", "flaot32", 1))
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text("[")
    actual, out, err = run(capsys, *arguments)
    assert (actual, out) == (code, "")
    assert text in err
    assert len(err.splitlines()) == 1
