"""Fits pictures of any size into the fixed frame of a problem API, and maps boxes back.

A *letterbox* keeps the picture's aspect ratio: the picture is scaled until it touches two opposite
edges of the frame, centred, and the two bars that remain are filled with one grey.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

FRAME_HEIGHT = 1200
FRAME_WIDTH = 1920

# Middle grey: the value a detector's normalisation maps closest to zero, so the bars look like
# nothing to it (black bars would draw two long edges).
FILL = 127


@dataclass(frozen=True)
class Placement:
    """Where a picture lies inside its frame. All lengths in pixels.

    `picture_*` is the picture's own size, `left` and `top` the frame position of its first pixel,
    `scaled_*` its size in the frame. The two axes' scales may differ by less than a pixel's worth,
    because sizes are whole numbers.
    """

    picture_height: int
    picture_width: int
    left: int
    top: int
    scaled_height: int
    scaled_width: int

    def to_picture(self, boxes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Maps boxes from the frame to the picture.

        Args:
            boxes: float32 (n, 4), each x1, y1, x2, y2 in pixels of the frame; n may be 0.

        Returns:
            float32 (n, 4), in pixels of the picture, clipped to it.
        """
        x_scale = self.scaled_width / self.picture_width
        y_scale = self.scaled_height / self.picture_height
        offset = np.array([self.left, self.top, self.left, self.top], np.float32)
        scale = np.array([x_scale, y_scale, x_scale, y_scale], np.float32)
        limit = np.array([self.picture_width, self.picture_height] * 2, np.float32)
        return np.clip((boxes - offset) / scale, np.float32(0), limit).astype(np.float32)

    def to_frame(self, boxes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Maps boxes, float32 (n, 4), from the picture to the frame; undoes `to_picture`."""
        x_scale = self.scaled_width / self.picture_width
        y_scale = self.scaled_height / self.picture_height
        offset = np.array([self.left, self.top, self.left, self.top], np.float32)
        scale = np.array([x_scale, y_scale, x_scale, y_scale], np.float32)
        return (boxes * scale + offset).astype(np.float32)


def place(
    picture_height: int,
    picture_width: int,
    frame_height: int = FRAME_HEIGHT,
    frame_width: int = FRAME_WIDTH,
) -> Placement:
    """Says where a picture of this size goes in the frame (pixels; sizes at least 1)."""
    if picture_height < 1 or picture_width < 1:
        raise ValueError(f"a picture of {picture_height} x {picture_width} pixels has no content")
    scale = min(frame_height / picture_height, frame_width / picture_width)
    scaled_height = min(frame_height, max(1, round(picture_height * scale)))
    scaled_width = min(frame_width, max(1, round(picture_width * scale)))
    return Placement(
        picture_height=picture_height,
        picture_width=picture_width,
        left=(frame_width - scaled_width) // 2,
        top=(frame_height - scaled_height) // 2,
        scaled_height=scaled_height,
        scaled_width=scaled_width,
    )


def letterbox(
    picture: npt.NDArray[np.uint8],
    frame_height: int = FRAME_HEIGHT,
    frame_width: int = FRAME_WIDTH,
) -> tuple[npt.NDArray[np.uint8], Placement]:
    """Fits a picture into the frame.

    Args:
        picture: uint8 (height, width, 3), RGB, not changed.
        frame_height: rows of the frame.
        frame_width: columns of the frame.

    Returns:
        The frame, uint8 (frame_height, frame_width, 3), and where the picture lies in it.
    """
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(
            f"expected a uint8 (height, width, 3) picture, found {picture.dtype} {picture.shape}"
        )
    placement = place(picture.shape[0], picture.shape[1], frame_height, frame_width)
    scaled = Image.fromarray(picture).resize(
        (placement.scaled_width, placement.scaled_height), Image.Resampling.BILINEAR
    )
    frame = np.full((frame_height, frame_width, 3), FILL, np.uint8)
    rows = slice(placement.top, placement.top + placement.scaled_height)
    columns = slice(placement.left, placement.left + placement.scaled_width)
    frame[rows, columns] = np.asarray(scaled)
    return frame, placement
