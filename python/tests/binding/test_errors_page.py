"""The table of docs/errors.md says what the classes are."""

import builtins
import re
from pathlib import Path

import pytest

from neuropod import errors

PAGE = Path(__file__).resolve().parents[3] / "docs" / "errors.md"
ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \| (?:`(\w+)`[^|]*)? ?\| (\w+) \|", re.M)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_every_class_has_a_row() -> None:
    classes = {
        cls.code
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, errors.NeuropodError) and cls.code
    }
    assert {code for code, *_ in ROWS} == classes


@pytest.mark.parametrize(("code", "name", "builtin", "origin"), ROWS)
def test_row_is_true(code: str, name: str, builtin: str, origin: str) -> None:
    cls = getattr(errors, name)
    assert cls.code == code
    assert cls.origin == origin
    if builtin:
        assert issubclass(cls, getattr(builtins, builtin))
