"""One image as the model's input."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import Array
from neuropod.packaging.dtypes import numpy_dtype
from neuropod.problem_api import shape_text

_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}
_MAX_PIXEL = 255


@dataclass(frozen=True)
class ImageSettings:
    """`resize`: to the size that the model takes. `pixel_range`: what 0 and 255 become."""

    resize: bool = False
    pixel_range: tuple[float, float] | None = None


class ImageReader:
    """Decodes images for one input: upright, with its channels, its layout and its dtype.

    The layout is read off the spec: `(height, width, 1, 3 or 4)`, `(1, 3 or 4, height, width)` or
    `(height, width)`, each also with a leading batch dimension.
    """

    def __init__(self, spec: Mapping[str, Any], settings: ImageSettings) -> None:
        self._spec = spec
        self._settings = settings
        shape = list(spec["shape"])
        has_batch = len(shape) == 4 or (len(shape) == 3 and not _channels(shape))
        self._shape = shape[1:] if has_batch else shape
        self._axis = _channels(self._shape)
        if len(self._shape) not in (2, 3) or (len(self._shape) == 3 and self._axis is None):
            raise DataError(
                f"input {spec['name']!r} is {shape_text(shape)}, which is no image; expected "
                "(height, width, channels) or (channels, height, width) with 1, 3 or 4 channels, or "
                "(height, width), each also with a batch dimension before"
            )
        self._check_pixel_range()

    def read(self, path: Path) -> Array:
        """The image. DataError if it can't be read or has another size."""
        try:
            from PIL import Image, ImageOps
        except ImportError as error:
            raise DataError(
                "reading images takes pillow: `pip install 'neuropod[images]'`"
            ) from error
        channels = 1 if self._axis is None else self._shape[self._axis]
        try:
            with Image.open(path) as opened:
                image: Any = ImageOps.exif_transpose(opened).convert(_MODES[channels])
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise DataError(f"{path} can't be read as an image: {error}") from error
        image = self._sized(image, path)
        pixels: Array = np.asarray(image)
        if self._axis is not None:
            pixels = pixels.reshape(image.height, image.width, channels)
            if self._axis == 0:
                pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1))
        return self._valued(pixels)

    def _sized(self, image: Any, path: Path) -> Any:
        height, width = (size for i, size in enumerate(self._shape) if i != self._axis)
        wanted = (
            width if isinstance(width, int) else image.width,
            height if isinstance(height, int) else image.height,
        )
        if wanted == image.size:
            return image
        if not self._settings.resize:
            raise DataError(
                f"{path} is {image.width}x{image.height}, input {self._spec['name']!r} takes "
                f"{wanted[0]}x{wanted[1]}, {shape_text(self._spec['shape'])}; --resize scales it"
            )
        return image.resize(wanted)

    def _check_pixel_range(self) -> None:
        """Raises DataError if the input's dtype can't hold what pixels are to become."""
        if self._settings.pixel_range is None:
            return
        dtype = numpy_dtype(self._spec["dtype"])
        least, most = (-np.inf, np.inf)
        if dtype.kind in "iu":
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        for bound in self._settings.pixel_range:
            if not (np.isfinite(bound) and least <= bound <= most):
                raise DataError(
                    f"pixel range {self._settings.pixel_range}: input {self._spec['name']!r} is "
                    f"{self._spec['dtype']}, which can't hold {bound:g}"
                )

    def _valued(self, pixels: Array) -> Array:
        target = numpy_dtype(self._spec["dtype"])
        if self._settings.pixel_range is None:
            return pixels.astype(target)
        low, high = self._settings.pixel_range
        scaled = pixels.astype(np.float64) * ((high - low) / _MAX_PIXEL) + low
        if target.kind in "iu":
            scaled = np.rint(scaled)
        values: Array = scaled.astype(target)
        return values


def _channels(shape: list[Any]) -> int | None:
    """The axis of a rank-3 shape that counts channels."""
    if len(shape) != 3:
        return None
    return next((axis for axis in (2, 0) if shape[axis] in _MODES), None)
