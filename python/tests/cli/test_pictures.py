"""Pictures as inputs of `neuropod run`."""

import sys

import numpy as np
import pytest
from echo_packager import create_echo_neuropod
from PIL import Image
from processes import outputs
from test_cli import failed

from neuropod.cli.pictures import find_layout


def identity(folder, shape, dtype="uint8"):
    spec = {"dtype": dtype, "shape": shape}
    create_echo_neuropod(
        neuropod_path=folder / "identity",
        model_name="identity",
        input_spec=[{"name": "image", **spec}],
        output_spec=[{"name": "same", **spec}],
        outputs={"same": {"op": "identity", "input": "image"}},
    )
    return folder / "identity"


def save_picture(path, height=4, width=6, mode="RGB"):
    picture = Image.new(mode, (width, height))
    picture.save(path)
    return path


def test_a_picture_becomes_its_pixels(capsys, picture_model, tmp_path):
    pixels = np.arange(72, dtype="uint8").reshape(4, 6, 3)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    shown = outputs(capsys, picture_model, "-i", f"image={tmp_path}/p.png")
    assert shown["same"]["data"] == pixels.tolist()


def test_a_jpeg_is_turned_upright(capsys, picture_model, tmp_path):
    picture = Image.new("RGB", (4, 6), "red")
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "p.jpg", exif=exif)
    shown = outputs(capsys, picture_model, "-i", f"image={tmp_path}/p.jpg")
    assert shown["same"]["shape"] == [4, 6, 3]


@pytest.mark.parametrize(
    ("height", "width", "mode", "found"),
    [
        (5, 6, "RGB", "6x5 RGB, uint8 (5, 6, 3)"),
        (4, 6, "L", "6x4 L, uint8 (4, 6)"),
        (4, 6, "RGBA", "6x4 RGBA, uint8 (4, 6, 4)"),
        (4, 6, "I;16", "6x4 I;16, uint16 (4, 6)"),
    ],
)
def test_a_picture_that_does_not_fit_says_both_shapes(
    capsys, picture_model, tmp_path, height, width, mode, found
):
    path = save_picture(tmp_path / "p.png", height, width, mode)
    code, message = failed(capsys, "run", picture_model, "-i", f"image={path}")
    assert code == 2
    assert found in message
    assert "input 'image' expects uint8 (4, 6, 3)" in message


def test_a_picture_gets_the_axes_of_a_batch_and_a_channel(capsys, tmp_path):
    spec = {"dtype": "uint8", "shape": ("batch", None, None, 1)}
    create_echo_neuropod(
        neuropod_path=tmp_path / "a",
        model_name="a",
        input_spec=[{"name": "image", **spec}],
        output_spec=[{"name": "same", **spec}],
        outputs={"same": {"op": "identity", "input": "image"}},
    )
    path = save_picture(tmp_path / "p.png", mode="L")
    assert outputs(capsys, tmp_path / "a", "-i", f"image={path}")["same"]["shape"] == [1, 4, 6, 1]


@pytest.mark.parametrize(
    ("shape", "mode", "expected"),
    [
        ((4, 6), "RGB", (4, 6)),
        ((4, 6, 3), "L", (4, 6, 3)),
        ((4, 6, 3), "RGBA", (4, 6, 3)),
        ((4, 6, 3), "P", (4, 6, 3)),
        ((4, 6, 4), "LA", (4, 6, 4)),
        ((1, 4, 6, 1), "RGB", (1, 4, 6, 1)),
        (("batch", 4, 6, 3), "CMYK", (1, 4, 6, 3)),
        ((3, 4, 6), "RGB", (3, 4, 6)),
        (("batch", 3, None, None), "RGBA", (1, 3, 8, 20)),
        (("batch", 4, 6), "RGB", (1, 4, 6)),
        ((4, None, 3), "RGB", (4, 10, 3)),
        ((None, 10, 3), "RGB", (4, 10, 3)),
        ((None, None, None), "RGB", (8, 20, 3)),
    ],
)
def test_resize_makes_a_picture_fit(capsys, tmp_path, shape, mode, expected):
    path = save_picture(tmp_path / ("p.jpg" if mode == "CMYK" else "p.png"), 8, 20, mode)
    model = identity(tmp_path, shape)
    shown = outputs(capsys, model, "-i", f"image={path}", "--resize")
    assert shown["same"]["shape"] == list(expected)


def test_resize_keeps_the_colours_and_where_they_are(capsys, tmp_path):
    pixels = np.zeros((8, 8, 4), "uint8")
    pixels[:4] = (200, 10, 20, 255)
    pixels[4:] = (0, 0, 250, 0)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    model = identity(tmp_path, (3, 2, 2))
    data = outputs(capsys, model, "-i", f"image={tmp_path}/p.png", "--resize")["same"]["data"]
    red, _, blue = (np.array(channel) for channel in data)
    assert (red[0] > 150).all() and (red[1] < 50).all()
    assert (blue[0] < 80).all() and (blue[1] > 150).all()


def test_channels_first_needs_no_resize(capsys, tmp_path):
    pixels = np.arange(72, dtype="uint8").reshape(4, 6, 3)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    shown = outputs(capsys, identity(tmp_path, (3, 4, 6)), "-i", f"image={tmp_path}/p.png")
    assert shown["same"]["data"] == pixels.transpose(2, 0, 1).tolist()


def test_a_picture_of_another_size_is_told_about_resize(capsys, picture_model, tmp_path):
    path = save_picture(tmp_path / "p.png", 5, 6)
    _, message = failed(capsys, "run", picture_model, "-i", f"image={path}")
    assert "--resize makes it fit" in message
    shown = outputs(capsys, picture_model, "-i", f"image={path}", "--resize")
    assert shown["same"]["shape"] == [4, 6, 3]


@pytest.mark.parametrize(
    ("shape", "dtype", "mode", "reason"),
    [
        ((4, 6, 3), "float32", "RGB", "values of pixels are never converted"),
        ((4, 6, 3), "uint8", "I;16", "values of pixels are never converted"),
        ((5, 6), "uint16", "I;16", "can't be resized"),
        ((2, 4, 6, 3), "uint8", "RGB", "the shape of no picture"),
        ((7, 6, 5), "uint8", "RGB", "the shape of no picture"),
        ((72,), "uint8", "RGB", "the shape of no picture"),
    ],
)
def test_what_resize_cannot_do_is_said(capsys, tmp_path, shape, dtype, mode, reason):
    path = save_picture(tmp_path / "p.png", 4, 6, mode)
    model = identity(tmp_path, shape, dtype)
    code, message = failed(capsys, "run", model, "-i", f"image={path}", "--resize")
    assert code == 2
    assert reason in message
    assert f"expects {dtype}" in message


@pytest.mark.parametrize(
    ("shape", "channels_first", "channels"),
    [
        ([224, 224, 3], False, 3),
        ([3, 224, 224], True, 3),
        ([3, 224, 3], False, 3),
        (["n", "h", "w", 4], False, 4),
        (["n", 1, None, None], True, 1),
        ([None, None, None], False, None),
    ],
)
def test_the_layout_is_found_by_the_channels(shape, channels_first, channels):
    layout = find_layout(shape)
    assert (layout.channels_first, layout.channels) == (channels_first, channels)


def test_without_pillow_the_extra_is_named(capsys, picture_model, tmp_path, monkeypatch):
    path = save_picture(tmp_path / "p.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    code, message = failed(capsys, "run", picture_model, "-i", f"image={path}")
    assert code == 2
    assert "pip install 'neuropod[images]'" in message
