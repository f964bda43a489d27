"""The three photographs of the demo; each ships inside the wheel of scikit-image or scikit-learn.

None is downloaded.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from skimage import data
from sklearn.datasets import load_sample_image


@dataclass(frozen=True)
class Photograph:
    """A picture and what is known of it.

    picture: uint8 (height, width, 3), RGB.
    faces: how many faces a person sees in it.
    credit: whom its licence asks us to name.
    """

    title: str
    picture: npt.NDArray[np.uint8]
    faces: int
    credit: str


def load_photographs() -> list[Photograph]:
    """One photograph with a face and two without."""
    return [
        Photograph("Astronaut Eileen Collins", data.astronaut(), 1, "NASA, public domain"),
        Photograph("Summer Palace", load_sample_image("china.jpg"), 0, "danielbuechele, CC BY 2.0"),
        Photograph("Dahlia", load_sample_image("flower.jpg"), 0, "vultilion, CC BY 2.0"),
    ]
