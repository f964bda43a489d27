import hashlib
import inspect
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from echo_packager import (
    ADDITION,
    create_echo_neuropod,
    create_interrupted_neuropod,
    create_large_neuropod,
)

from neuropod import _native, load_neuropod, registry
from neuropod.errors import (
    BackendNotFoundError,
    InvalidArgumentError,
    InvalidPackageError,
    NeuropodError,
    NotFoundError,
    SpecMismatchError,
)
from neuropod.packaging import packager

X = np.arange(5, dtype="float32")
LARGE = {key: ADDITION[key] for key in ("model_name", "input_spec", "output_spec")}


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_packages_a_folder_that_loads_and_runs(tmp_path):
    target = tmp_path / "addition"
    create_echo_neuropod(neuropod_path=target, package_as_zip=False, **ADDITION)
    assert contents(target) == ["0", "config.json", "manifest.json"]
    assert contents(target / "0") == ["data", "ops"]
    with load_neuropod(target) as model:
        np.testing.assert_array_equal(model.infer({"x": X, "y": X})["out"], 2 * X)


def test_packages_a_zip_that_loads_and_runs(tmp_path):
    create_echo_neuropod(neuropod_path=str(tmp_path / "addition.neuropod"), **ADDITION)
    assert contents(tmp_path) == ["addition.neuropod"]
    with load_neuropod(tmp_path / "addition.neuropod") as model:
        np.testing.assert_array_equal(model.infer({"x": X, "y": X})["out"], 2 * X)


def test_what_is_written_follows_todays_rules(tmp_path):
    create_echo_neuropod(neuropod_path=tmp_path / "a", **ADDITION)
    with load_neuropod(tmp_path / "a") as model, pytest.raises(SpecMismatchError, match="'y'"):
        model.infer({"x": X})


def test_manifest_has_the_hash_of_every_file_but_itself(tmp_path):
    target = tmp_path / "addition"
    create_echo_neuropod(
        neuropod_path=target, package_as_zip=False, test_input_data={"x": X, "y": X}, **ADDITION
    )
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["manifest_version"] == 1
    assert manifest["format_version"] == 1
    assert manifest["files"] == {
        path.relative_to(target).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in target.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }


def test_packaging_twice_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        create_echo_neuropod(
            neuropod_path=tmp_path / name,
            test_input_data={"x": X, "y": X},
            test_expected_out={"out": 2 * X},
            **ADDITION,
        )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_unicode_paths_and_names(tmp_path):
    target = tmp_path / "モデル größe 🚀"
    create_echo_neuropod(
        neuropod_path=target,
        model_name="模型 \u00e9",
        input_spec=[{"name": "größe", "dtype": "string", "shape": ("你",)}],
        output_spec=[{"name": "übung", "dtype": "string", "shape": ("你",)}],
        outputs={"übung": {"op": "identity", "input": "größe"}},
        test_input_data={"größe": ["a", "ß🚀"]},
        test_expected_out={"übung": ["a", "ß🚀"]},
    )
    with load_neuropod(target) as model:
        assert model.name == "模型 \u00e9"
        assert model.infer({"größe": ["🚀"]})["übung"].tolist() == ["🚀"]


def test_relative_paths_start_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    create_echo_neuropod(neuropod_path="addition", **ADDITION)
    assert (tmp_path / "addition").is_file()


def test_zip_compression_is_passed_on(tmp_path):
    create_echo_neuropod(
        neuropod_path=tmp_path / "a", zip_compression=zipfile.ZIP_STORED, **ADDITION
    )
    with zipfile.ZipFile(tmp_path / "a") as archive:
        assert {e.compress_type for e in archive.infolist()} == {zipfile.ZIP_STORED}


# Custom operators.


def test_custom_ops_keep_their_base_names(tmp_path):
    (tmp_path / "libs").mkdir()
    op = tmp_path / "libs" / "op.so"
    subprocess.run(["g++", "-shared", "-x", "c++", os.devnull, "-o", op], check=True)
    target = tmp_path / "a"
    create_echo_neuropod(neuropod_path=target, package_as_zip=False, custom_ops=[op], **ADDITION)
    assert (target / "0" / "ops" / "op.so").read_bytes() == op.read_bytes()
    assert json.loads((target / "config.json").read_text())["custom_ops"] == ["op.so"]


def test_a_package_that_does_not_load_is_refused_without_test_data_too(tmp_path):
    with pytest.raises(InvalidPackageError, match=r"failed its self-test: .*echo\.json"):
        create_large_neuropod(neuropod_path=tmp_path / "a", size=10, **LARGE)
    assert contents(tmp_path) == []


def test_without_a_backend_a_package_is_made_and_a_warning_says_that_it_was_not_loaded(tmp_path):
    @packager(platform="nobody_serves_this")
    def create_orphan_neuropod(draft):
        (draft.data_folder / "model").write_bytes(b"model")

    with pytest.warns(UserWarning, match=r"without being loaded: .*nobody_serves_this"):
        create_orphan_neuropod(neuropod_path=tmp_path / "a", **LARGE)
    assert contents(tmp_path) == ["a"]


def test_custom_ops_of_one_name_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "op.so").write_bytes(b"library")
    ops = [tmp_path / "a" / "op.so", tmp_path / "b" / "op.so"]
    with pytest.raises(InvalidArgumentError, match=r"two files named 'op.so'"):
        create_echo_neuropod(neuropod_path=tmp_path / "p", custom_ops=ops, **ADDITION)


def test_a_custom_op_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"custom_ops: .*missing\.so is no file"):
        create_echo_neuropod(
            neuropod_path=tmp_path / "p", custom_ops=[tmp_path / "missing.so"], **ADDITION
        )


# Arguments.


def test_unknown_arguments_are_refused_with_the_nearest_name(tmp_path):
    with pytest.raises(TypeError, match="'custom_opps'; did you mean 'custom_ops'") as caught:
        create_echo_neuropod(neuropod_path=tmp_path / "a", custom_opps=[], **ADDITION)
    assert isinstance(caught.value, NeuropodError)


def test_missing_arguments_are_named(tmp_path):
    with pytest.raises(TypeError, match="needs the argument 'model_name'"):
        create_echo_neuropod(neuropod_path=tmp_path / "a")
    with pytest.raises(TypeError, match="needs the argument 'outputs'"):
        create_echo_neuropod(neuropod_path=tmp_path / "a", **LARGE)


def test_positional_arguments_are_refused(tmp_path):
    with pytest.raises(TypeError, match="keyword arguments only"):
        create_echo_neuropod(tmp_path / "a", **ADDITION)


def test_the_signature_and_the_docstring_show_every_argument():
    parameters = inspect.signature(create_echo_neuropod).parameters
    assert parameters["package_as_zip"].default is True
    assert parameters["outputs"].default is inspect.Parameter.empty
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters.values())
    assert create_echo_neuropod.neuropod_default_args["default_input_tensor_device"] == "GPU"
    documented = inspect.getdoc(create_echo_neuropod)
    assert [name for name in parameters if name not in documented] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"platform_version_semver": "newest"}, "'newest' is no range of versions"),
        ({"platform_version_semver": None}, "None is no range of versions"),
        ({"zip_compression": zipfile.ZIP_LZMA}, "zip_compression must be"),
        ({"test_expected_out": {"out": X}}, "needs test_input_data"),
        ({"test_input_data": {"z": X}}, "test_input_data has 'z', which the spec doesn't"),
        ({"test_input_data": [X]}, "must be a dict"),
        ({"neuropod_path": ""}, "neuropod_path is empty"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        create_echo_neuropod(**{"neuropod_path": tmp_path / "a", **ADDITION, **arguments})
    assert contents(tmp_path) == []


def test_a_packager_that_gets_data_which_is_not_there_leaves_nothing(tmp_path):
    @packager(platform="echo")
    def create_copy_neuropod(draft, *, source):
        draft.copy_file(source, draft.data_folder / "model")

    with pytest.raises(NotFoundError, match="missing doesn't exist"):
        create_copy_neuropod(neuropod_path=tmp_path / "a", source=tmp_path / "missing", **LARGE)
    with pytest.raises(FileNotFoundError, match="is a folder"):
        create_copy_neuropod(neuropod_path=tmp_path / "a", source=tmp_path, **LARGE)
    assert contents(tmp_path) == []


# The self-test.


def test_test_data_is_kept_for_older_readers_and_for_ours(tmp_path):
    target = tmp_path / "a"
    inputs = {"x": X, "y": [1, 1, 1, 1, 1]}
    create_echo_neuropod(
        neuropod_path=target,
        package_as_zip=False,
        test_input_data=inputs,
        test_expected_out={"out": X + 1},
        **ADDITION,
    )
    assert inputs["y"] == [1, 1, 1, 1, 1]
    with (target / "test_data.pkl").open("rb") as file:
        pickled = pickle.load(file)
    with np.load(target / "test_data" / "test_output.npz") as expected:
        np.testing.assert_array_equal(expected["out"], pickled["test_output"]["out"])
    assert pickled["test_input"]["y"].dtype == np.float32


def test_test_data_can_be_left_out(tmp_path):
    target = tmp_path / "a"
    create_echo_neuropod(
        neuropod_path=target,
        package_as_zip=False,
        persist_test_data=False,
        test_input_data={"x": X, "y": X},
        **ADDITION,
    )
    assert contents(target) == ["0", "config.json", "manifest.json"]


def test_wrong_outputs_fail_with_the_worst_element_and_leave_nothing(tmp_path):
    wrong = 2 * X
    wrong[3] = 100
    with pytest.raises(
        ValueError, match=r"'addition_model' failed its self-test.*\[3\]: expected 100.0, got 6.0"
    ):
        create_echo_neuropod(
            neuropod_path=tmp_path / "a",
            test_input_data={"x": X, "y": X},
            test_expected_out={"out": wrong},
            **ADDITION,
        )
    assert contents(tmp_path) == []


def test_an_error_of_the_call_keeps_its_class(tmp_path):
    with pytest.raises(SpecMismatchError, match="failed its self-test") as caught:
        create_echo_neuropod(
            neuropod_path=tmp_path / "a",
            test_input_data={"x": X.astype("float64"), "y": X},
            **ADDITION,
        )
    assert 'astype("float32")' in str(caught.value)
    assert any("Traceback" in note for note in caught.value.__notes__)
    assert contents(tmp_path) == []


def test_a_platform_without_a_plug_in_fails_with_the_remedy(tmp_path):
    @packager(platform="nowhere")
    def create_nowhere_neuropod(draft):
        (draft.data_folder / "x").write_bytes(b"x")

    with pytest.raises(BackendNotFoundError, match="nowhere"):
        create_nowhere_neuropod(
            neuropod_path=tmp_path / "a", test_input_data={"x": X, "y": X}, **LARGE
        )
    assert contents(tmp_path) == []
    create_nowhere_neuropod(neuropod_path=tmp_path / "a", **LARGE)
    assert contents(tmp_path) == ["a"]


def test_load_arguments_reach_the_self_test(tmp_path):
    with pytest.raises(TypeError, match="thread"):
        create_echo_neuropod(
            neuropod_path=tmp_path / "a",
            test_input_data={"x": X, "y": X},
            neuropod_load_args={"thread": 2},
            **ADDITION,
        )
    create_echo_neuropod(
        neuropod_path=tmp_path / "a",
        test_input_data={"x": X, "y": X},
        neuropod_load_args={"threads": 2},
        **ADDITION,
    )


@pytest.mark.parametrize("registered", [True, False])
def test_plug_ins_that_are_preferred_reach_the_self_test(tmp_path, monkeypatch, registered):
    """They name a version that doesn't exist, which only a search that sees them can say."""
    echo = _native.find_backends("echo").candidates[0].manifest.directory
    arguments = {}
    if registered:
        monkeypatch.setattr(registry, "_registered", [])
        registry.register_backend("echo", "77.7.7", echo)
    else:
        spec = _native.BackendLoadSpec("echo", "77.7.7", echo)
        arguments["neuropod_load_args"] = {"backend_overrides": [spec]}
    with pytest.raises(BackendNotFoundError, match=r"77\.7\.7"):
        create_echo_neuropod(
            neuropod_path=tmp_path / "a",
            platform_version_semver=">=77",
            test_input_data={"x": X, "y": X},
            **arguments,
            **ADDITION,
        )


def test_load_arguments_that_cannot_travel_are_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="can't be handed to a fresh process"):
        create_echo_neuropod(
            neuropod_path=tmp_path / "a",
            test_input_data={"x": X, "y": X},
            neuropod_load_args={"threads": lambda: 2},
            **ADDITION,
        )


def test_the_model_runs_in_another_process(tmp_path):
    """Its environment is this process's, its state isn't: the plug-in isn't opened here."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import numpy as np; import echo_packager as e; "
        "x = np.ones(2, 'float32'); "
        "e.create_echo_neuropod(neuropod_path=sys.argv[2], test_input_data={'x': x, 'y': x}, "
        "**e.ADDITION); print('/backends/echo/' in open('/proc/self/maps').read())"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert contents(tmp_path) == ["a"]


def test_a_process_that_dies_is_reported_with_its_last_words(tmp_path, monkeypatch):
    site, out = tmp_path / "site", tmp_path / "out"
    site.mkdir()
    out.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os, sys\nprint('last words', file=sys.stderr, flush=True)\nos.abort()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(site))
    with pytest.raises(ValueError, match=r"(?s)was killed by signal SIGABRT.*last words"):
        create_echo_neuropod(neuropod_path=out / "a", test_input_data={"x": X, "y": X}, **ADDITION)
    assert contents(out) == []


# Targets.


@pytest.mark.parametrize("as_zip", [True, False])
def test_what_is_there_is_never_replaced_unasked(tmp_path, as_zip):
    target = tmp_path / "a"
    target.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="overwrite=True") as caught:
        create_echo_neuropod(neuropod_path=target, package_as_zip=as_zip, **ADDITION)
    assert isinstance(caught.value, ValueError)
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_a_package_is_replaced_on_request(tmp_path, before, after):
    target = tmp_path / "a"
    create_echo_neuropod(neuropod_path=target, package_as_zip=before, **ADDITION)
    create_echo_neuropod(
        neuropod_path=target,
        package_as_zip=after,
        overwrite=True,
        **{**ADDITION, "model_name": "second"},
    )
    with load_neuropod(target) as model:
        assert model.name == "second"
    assert contents(tmp_path) == ["a"]


def test_a_folder_that_is_no_package_is_never_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.tex").write_bytes(b"precious")
    with pytest.raises(ValueError, match="no package"):
        create_echo_neuropod(neuropod_path=tmp_path / "a", overwrite=True, **ADDITION)
    assert contents(tmp_path / "a") == ["thesis.tex"]


def test_a_failed_replacement_keeps_what_was_there(tmp_path):
    target = tmp_path / "a"
    create_echo_neuropod(neuropod_path=target, **ADDITION)
    before = target.read_bytes()
    with pytest.raises(ValueError, match="self-test"):
        create_echo_neuropod(
            neuropod_path=target,
            overwrite=True,
            test_input_data={"x": X, "y": X},
            test_expected_out={"out": X + 100},
            **ADDITION,
        )
    assert target.read_bytes() == before
    assert contents(tmp_path) == ["a"]


def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "a"

    @packager(platform="echo")
    def create_late_neuropod(draft):
        model = {"outputs": ADDITION["outputs"]}
        (draft.data_folder / "echo.json").write_text(json.dumps(model))
        target.write_bytes(b"somebody else's")

    with pytest.raises(FileExistsError, match="appeared"):
        create_late_neuropod(neuropod_path=target, **LARGE)
    assert target.read_bytes() == b"somebody else's"
    assert contents(tmp_path) == ["a"]


def test_a_missing_folder_is_named_and_not_made(tmp_path):
    with pytest.raises(OSError, match=r"folder .*no/such doesn't exist"):
        create_echo_neuropod(neuropod_path=tmp_path / "no" / "such" / "a", **ADDITION)
    assert contents(tmp_path) == []


@pytest.mark.parametrize("as_zip", [True, False])
def test_an_interruption_leaves_nothing(tmp_path, as_zip):
    with pytest.raises(KeyboardInterrupt):
        create_interrupted_neuropod(neuropod_path=tmp_path / "a", package_as_zip=as_zip, **LARGE)
    assert contents(tmp_path) == []


@pytest.mark.parametrize("as_zip", [True, False])
def test_a_full_disk_is_an_error_and_leaves_nothing(full_disk, as_zip):
    with pytest.raises(
        OSError, match=r"packaging model 'addition_model' to .* failed: .*left"
    ) as e:
        create_large_neuropod(
            neuropod_path=full_disk / "a", package_as_zip=as_zip, size=2 << 20, **LARGE
        )
    assert isinstance(e.value, NeuropodError)
    assert e.value.errno is not None
    assert contents(full_disk) == []


def test_a_disk_that_fills_up_with_the_archive_leaves_nothing(full_disk):
    with pytest.raises(OSError, match="failed"):
        create_large_neuropod(neuropod_path=full_disk / "a", size=400_000, count=2, **LARGE)
    assert contents(full_disk) == []


def test_a_read_only_folder_is_an_error_that_names_it(read_only_folder):
    with pytest.raises(OSError, match=r"read_only.*failed: (Read-only|Permission)"):
        create_echo_neuropod(neuropod_path=read_only_folder / "a", **ADDITION)
    assert contents(read_only_folder) == []
