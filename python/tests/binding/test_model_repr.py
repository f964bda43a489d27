"""How a model shows itself in a terminal and in a notebook."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from echo_packages import write_addition, write_package

from neuropod import load_neuropod

EVIL = "<script>alert('x')</script>"


def wide(folder: Path) -> Path:
    return write_package(
        folder,
        name="detector",
        inputs=[("image", "uint8", ["height", "width", 3]), ("scale", "float32", [])],
        outputs=[("boxes", "float32", [None, 4])],
        model={"outputs": {"boxes": {"op": "identity", "input": "image"}}},
    )


def test_text_names_model_framework_package_and_specs(tmp_path: Path) -> None:
    path = wide(tmp_path / "detector")
    with load_neuropod(path, load_model_at_construction=False) as model:
        assert repr(model) == (
            f"<Neuropod 'detector' (echo 1.0.0) from {str(path)!r}\n"
            "  inputs   image  uint8    (height, width, 3)\n"
            "           scale  float32  ()\n"
            "  outputs  boxes  float32  (any, 4)>"
        )


def test_an_optional_input_is_marked(tmp_path: Path) -> None:
    import json

    path = write_addition(tmp_path / "a")
    config = json.loads((path / "config.json").read_text())
    config["input_spec"][1]["optional"] = True
    (path / "config.json").write_text(json.dumps(config))
    with load_neuropod(path) as model:
        assert "y    float32  (batch,)  optional\n" in repr(model)


def test_a_closed_model_still_says_what_it_was(tmp_path: Path) -> None:
    model = load_neuropod(write_addition(tmp_path / "a"))
    open_text, open_html = repr(model), model._repr_html_()
    model.close()
    model.close()
    assert repr(model) == open_text.replace("(echo 1.0.0)", "(echo 1.0.0, closed)")
    assert model._repr_html_() == open_html.replace("(echo 1.0.0)", "(echo 1.0.0, closed)")


def test_many_inputs_are_counted(tmp_path: Path) -> None:
    path = write_package(
        tmp_path / "a",
        inputs=[(f"x{i}", "int8", []) for i in range(100)],
        outputs=[("y", "int8", [])],
        model={"outputs": {"y": {"op": "identity", "input": "x0"}}},
    )
    with load_neuropod(path) as model:
        assert "x19" in repr(model)
        assert "x20" not in repr(model)
        assert "… and 80 more" in repr(model)


def test_a_swapped_model_names_its_package(tmp_path: Path) -> None:
    first, second = write_addition(tmp_path / "first"), write_addition(tmp_path / "second")
    with load_neuropod(first, swappable=True) as model:
        assert str(first) in repr(model)
        model.swap(second)
        assert str(second) in repr(model)


@pytest.mark.parametrize("name", [EVIL, "\x1b[2J", "a\nb", "größe 模型"])
def test_names_can_neither_steer_a_terminal_nor_a_page(tmp_path: Path, name: str) -> None:
    path = write_package(
        tmp_path / "a",
        name=name,
        inputs=[(name, "int8", [])],
        outputs=[("y", "int8", [])],
        model={"outputs": {"y": {"op": "identity", "input": name}}},
    )
    tags: set[str] = set()
    text: list[str] = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.add(tag)

        def handle_data(self, data: str) -> None:
            text.append(data)

    with load_neuropod(path) as model:
        shown = repr(model)
        assert shown.count("\n") == 2
        assert "\x1b" not in shown
        page = model._repr_html_()
    Collector().feed(page)
    assert tags == {"div", "b", "br", "small", "table", "tr", "th", "td"}
    assert all(piece.isprintable() for piece in text)
    if name.isprintable():
        assert text.count(name) == 2
