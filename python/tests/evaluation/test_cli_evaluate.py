import json
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import numpy as np
import pytest

from neuropod.cli.main import main

VOID = {"meta", "br", "line", "circle", "rect"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and that nothing is loaded from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            assert name not in ("src", "href", "action", "data", "srcset"), (tag, name, value)
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page(path):
    text = path.read_text(encoding="utf-8")
    assert "http" not in text and "url(" not in text and "@import" not in text
    return Page(text)


@pytest.fixture
def data(tmp_path, rows):
    np.savez(tmp_path / "data.npz", **rows)
    return str(tmp_path / "data.npz")


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_evaluate_prints_ranked_tables(scaled, data, capsys):
    packages = scaled("far", 0.5), scaled("near", 1.0)
    assert run("evaluate", *packages, "--data", data, "-m", "mae", "--bootstrap", 50) == 0
    shown, complained = capsys.readouterr()
    assert shown.index("near.neuropod") < shown.index("far.neuropod")
    assert "metrics: 100 rows" in shown and "mae ↓" in shown and "peak memory" in shown
    assert complained == ""


def test_evaluate_writes_json_and_a_page_that_loads_nothing(scaled, data, tmp_path, capsys):
    html, document = tmp_path / "report.html", tmp_path / "report.json"
    code = run(
        *("evaluate", scaled("near", 1.0), "--data", data, "-m", "mae", "-m", "r2", "--json"),
        *("--baseline", scaled("<b>&", 1.1), "--max-drop", "0.01", "--html", html),
        *("--json-file", document, "--bootstrap", "50"),
    )
    assert code == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(document.read_text())
    assert [p["name"] for p in printed["packages"]] == ["<b>&.neuropod", "near.neuropod"]
    assert printed["gate"]["passed"] is False
    found = page(html)
    assert found.tags.count("svg") == 5  # two metrics; latency, throughput, memory
    assert "<b>&.neuropod" in found.text and "gate" in found.text


def test_the_gate_says_which_metric_dropped_by_how_much(scaled, data, capsys):
    arguments = ("evaluate", scaled("near", 1.0), "--data", data, "-m", "mae", "--baseline")
    base = scaled("base", 1.1)
    assert run(*arguments, base, "--max-drop", "mae=0.01") == 1
    shown = capsys.readouterr().out
    assert "FAILED near.neuropod: mae is 0.0" in shown and "worse than" in shown
    assert run(*arguments, base, "--max-drop", "0.2") == 0


def test_a_failing_package_is_named_and_the_code_is_1(scaled, data, capsys):
    failing = scaled("failing", 1, fail_if_negative={"input": "x", "message": "no"})
    np.savez(data, x=-np.ones(3, "float32"), right=np.ones(3))
    assert run("evaluate", failing, scaled("fine", 1), "--data", data, "-m", "mae") == 1
    shown, complained = capsys.readouterr()
    assert "failed" in shown and "fine.neuropod" in shown
    assert complained.startswith("neuropod: failing.neuropod failed: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "acuracy"], "unknown metric 'acuracy'; did you mean 'accuracy'?"),
        (["-m", "mae", "--max-drop", "1"], "--max-drop goes with --baseline"),
        (["-m", "mae", "--html", "no/where.html"], "--html no/where.html: the folder no does not"),
        (["-m", "mae", "--classes", "a,a"], "'a' is there twice"),
        (["-m", "mae", "--classes", "names.txt"], "there is no such file"),
        (["-m", "mae", "--labels", "l.csv"], "--labels goes with one"),
        (["-m", "top5"], "metric top5 needs an output that is, for each row, scores of each class"),
        (["-m", "mae", "--bootstrap", "-1"], "resamples is expected to be 0 or more"),
    ],
)
def test_wrong_usage_is_2_and_one_line(scaled, data, capsys, arguments, message):
    assert run("evaluate", scaled("a", 1), "--data", data, *arguments) == 2
    complained = capsys.readouterr().err
    assert message in complained and complained.count("\n") == 1


@pytest.mark.parametrize("option", ["--seed", "--threads", "--limit", "--batch-size"])
def test_a_number_that_cannot_be_is_refused_before_anything_runs(scaled, data, capsys, option):
    with pytest.raises(SystemExit) as ended:
        run("evaluate", scaled("a", 1), "--data", data, "-m", "mae", option, "-1")
    assert ended.value.code == 2
    assert f"argument {option}: expected a whole number from" in capsys.readouterr().err


def test_packages_that_cannot_be_read_are_3(data, tmp_path, capsys):
    assert run("evaluate", tmp_path / "none.neuropod", "--data", data) == 3
    assert run("compare", tmp_path / "none.neuropod", tmp_path, "--data", data) == 3


def test_packages_of_other_problems_are_2_with_the_difference(scaled, identity, data, capsys):
    other = identity(y=("float32", ["batch"]))
    assert run("evaluate", scaled("a", 1), other, "--data", data) == 2
    assert "solves another problem" in capsys.readouterr().err


def test_classes_come_from_a_file(identity, tmp_path, capsys):
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    (tmp_path / "d.csv").write_text("in_p[0],in_p[1],label\n0.9,0.1,cat\n0.1,0.9,dgo\n")
    package = identity(p=("float32", ["batch", 2]))
    arguments = ("evaluate", package, "--data", tmp_path / "d.csv", "-m", "accuracy")
    assert run(*arguments, "--classes", tmp_path / "names.txt") == 2
    assert (
        "d.csv line 3: unknown label 'dgo' in 'label'; did you mean 'dog'?"
        in capsys.readouterr().err
    )
    assert run(*arguments, "--classes", "cat,dgo") == 0


def test_compare_exits_by_agreement_and_writes_a_page(scaled, data, tmp_path, capsys):
    html = tmp_path / "report.html"
    arguments = ("compare", scaled("a", 1), scaled("b", 1.1), "--data", data, "--html", html)
    assert run(*arguments) == 1
    shown = capsys.readouterr().out
    assert "they DISAGREE" in shown and "100 of 100" in shown and "worst rows" in shown
    found = page(html)
    assert found.tags.count("svg") == 3  # scatter, differences, latency
    assert "they disagree" in found.text
    assert run(*arguments, "--rtol", "0.2") == 0
    assert run(*arguments, "--max-disagreement", "1", "--json") == 0


def test_compare_shows_nan_apart(scaled, tmp_path, capsys):
    np.savez(tmp_path / "d.npz", x=np.asarray([1, np.inf], "float32"))
    packages = scaled("one", 1), scaled("zero", 0)
    html = tmp_path / "r.html"
    assert run("compare", *packages, "--data", tmp_path / "d.npz", "--atol", 9, "--html", html) == 1
    assert "output 'y': 1 NaN in B only" in capsys.readouterr().out
    assert "y: 1 NaN in B only" in page(html).text


def test_ctrl_c_ends_it_and_the_packages_process(scaled, data, tmp_path):
    slow = scaled("slow", 1, sleep_ms=300)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "neuropod", "evaluate", slow, "--data", data, "--batch-size", "1"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not list(scratch.rglob("stderr")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, complained = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complained == "neuropod: error: interrupted\n"
    assert list(scratch.iterdir()) == []
    with pytest.raises(ProcessLookupError):  # the package's process is gone, too
        os.killpg(process.pid, 0)
