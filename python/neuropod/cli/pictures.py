"""Pictures as inputs of a model: their pixels in the layout of the spec, resized on request."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neuropod.cli.exit_codes import UsageError
from neuropod.problem_api import shape_text

if TYPE_CHECKING:
    from PIL import Image

    from neuropod.packaging.arrays import Array

PICTURES: Final = (".png", ".jpg", ".jpeg")

_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}
_EIGHT_BIT: Final = ("L", "LA", "RGB", "RGBA")


@dataclass(frozen=True)
class PictureLayout:
    """Where a spec has height, width and channels; a size of None means any."""

    height: int | None
    width: int | None
    channels: int | None
    """None: the picture's own."""

    channels_first: bool
    has_channels: bool
    has_batch: bool


def find_layout(shape: list[Any]) -> PictureLayout | None:
    """The layout of (H, W), (H, W, C) or (C, H, W), with or without a batch axis before it.

    None if no picture has this shape. Channels are 1, 3 or 4, and one where no axis is theirs. If both
    ends could be the channels, or neither says so, they are last.
    """
    if len(shape) == 2:
        return PictureLayout(_fixed(shape[0]), _fixed(shape[1]), 1, False, False, False)
    if len(shape) not in (3, 4):
        return None
    has_batch = len(shape) == 4
    if has_batch and _fixed(shape[0]) not in (None, 1):
        return None
    first, middle, last = (_fixed(size) for size in shape[-3:])
    if first in _MODES and last not in _MODES:
        return PictureLayout(middle, last, first, True, True, has_batch)
    if last is not None and last not in _MODES:
        is_gray_batch = len(shape) == 3 and first is None
        return PictureLayout(middle, last, 1, False, False, True) if is_gray_batch else None
    return PictureLayout(first, middle, last, False, True, has_batch)


def read_picture(path: Path, spec: Mapping[str, Any], resize: bool) -> "Array":
    """The picture's own pixels, turned upright as its metadata says, in the layout of the spec.

    Neither scaled nor converted, unless `resize` is true: then it is stretched to the spec's height and
    width (where only one is fixed, in proportion) and gray, colour and alpha become what the spec has;
    alpha is dropped. Raises UsageError that says both shapes.
    """
    import numpy as np

    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise UsageError(
            "reading pictures takes pillow: `pip install 'neuropod[images]'`"
        ) from error
    layout = find_layout(list(spec["shape"]))
    try:
        with Image.open(path) as opened:
            picture = _plain_mode(ImageOps.exif_transpose(opened))
            original = picture
            if resize and layout is not None and picture.mode in _EIGHT_BIT:
                picture = _resized(picture, layout)
            array: Array = np.asarray(picture)
    except Image.DecompressionBombError as error:
        raise UsageError(f"{path} is too large a picture: {error}") from error
    except (OSError, ValueError, SyntaxError) as error:
        raise UsageError(f"{path} can't be read as a picture: {error}") from error
    laid_out = array if layout is None else _laid_out(array, layout)
    if not _fits(laid_out, spec):
        raise UsageError(_misfit(path, original, spec, layout, resize))
    return laid_out


def _fixed(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _plain_mode(picture: "Image.Image") -> "Image.Image":
    """Palettes, print colours and bits as the nearest of L, LA, RGB and RGBA; others as they are."""
    if picture.mode in ("P", "PA"):
        return picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    if picture.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        return picture.convert("RGB")
    return picture.convert("L") if picture.mode == "1" else picture


def _resized(picture: "Image.Image", layout: PictureLayout) -> "Image.Image":
    from PIL import Image

    if layout.channels is not None and picture.mode != _MODES[layout.channels]:
        picture = picture.convert(_MODES[layout.channels])
    width, height = layout.width, layout.height
    if width is None and height is None:
        return picture
    if width is None:
        width = max(1, round(picture.width * height / picture.height))  # type: ignore[operator]
    if height is None:
        height = max(1, round(picture.height * width / picture.width))
    if picture.size == (width, height):
        return picture
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def _laid_out(array: "Array", layout: PictureLayout) -> "Array":
    if layout.has_channels and array.ndim == 2:
        array = array[..., None]
    if layout.channels_first:
        array = array.transpose(2, 0, 1)
    return array[None] if layout.has_batch else array


def _fits(array: "Array", spec: Mapping[str, Any]) -> bool:
    shape = spec["shape"]
    return (
        str(array.dtype) == spec["dtype"]
        and len(shape) == array.ndim
        and all(
            not isinstance(want, int) or want == size
            for want, size in zip(shape, array.shape, strict=True)
        )
    )


def _misfit(
    path: Path,
    picture: "Image.Image",
    spec: Mapping[str, Any],
    layout: PictureLayout | None,
    resize: bool,
) -> str:
    import numpy as np

    pixels = np.asarray(picture)
    found = (
        f"{path} is {picture.width}x{picture.height} {picture.mode}, {pixels.dtype} {pixels.shape}; "
        f"input {spec['name']!r} expects {spec['dtype']} {shape_text(list(spec['shape']))}"
    )
    if layout is None:
        return f"{found}, which is the shape of no picture; -i takes a .npy"
    if spec["dtype"] != str(pixels.dtype):
        return (
            f"{found}; the values of pixels are never converted, so do that first and give a .npy"
        )
    if picture.mode not in _EIGHT_BIT:
        return f"{found}; pictures of this mode can't be resized, so do that first and give a .npy"
    if not resize:
        return f"{found}; --resize makes it fit"
    return f"{found}, which no size of the picture fits"
