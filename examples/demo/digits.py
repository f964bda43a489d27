"""A small convolutional network for handwritten digits, trained in seconds.

The data are scikit-learn's bundled 1,797 scans of 8 x 8 pixels (a part of the UCI "Optical
Recognition of Handwritten Digits" set). Each pixel counts the ink, 0 to 16.
"""

from typing import Dict, NamedTuple  # noqa: UP035 (TorchScript reads Dict)

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

MAX_INK = 16.0

INPUT_SPEC = [{"name": "image", "dtype": "float32", "shape": ("batch", 8, 8)}]
OUTPUT_SPEC = [
    {"name": "probabilities", "dtype": "float32", "shape": ("batch", 10)},
    {"name": "digit", "dtype": "int64", "shape": ("batch",)},
]


class Split(NamedTuple):
    """Scans and what they show; "held out" means never seen in training.

    Images are float32 (n, 8, 8), 0 to 16; labels are int64 (n,), 0 to 9.
    """

    train_images: npt.NDArray[np.float32]
    train_labels: npt.NDArray[np.int64]
    held_out_images: npt.NDArray[np.float32]
    held_out_labels: npt.NDArray[np.int64]


class DigitNetwork(nn.Module):
    """Two convolutions and a dense layer, with the scaling and the choice of digit inside."""

    def __init__(self) -> None:
        super().__init__()
        self.max_ink = MAX_INK
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dense = nn.Linear(32 * 4 * 4, 10)

    def logits(self, image: Tensor) -> Tensor:
        """Takes float32 (n, 8, 8), 0 to 16; returns unnormalised scores, float32 (n, 10)."""
        x = (image / self.max_ink).unsqueeze(1)
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.dense(F.dropout(x.flatten(1), 0.3, self.training))

    def forward(self, image: Tensor) -> Dict[str, Tensor]:  # noqa: UP006
        """Takes float32 (n, 8, 8), 0 to 16; returns `probabilities`, float32 (n, 10), and
        `digit`, the most probable one, int64 (n,)."""
        probabilities = F.softmax(self.logits(image), dim=1)
        return {"probabilities": probabilities, "digit": probabilities.argmax(dim=1)}


def load_split() -> Split:
    """The scans, a quarter of them held out; the same split every time."""
    data = load_digits()
    train_images, held_out_images, train_labels, held_out_labels = train_test_split(
        data.images.astype(np.float32),
        data.target.astype(np.int64),
        test_size=0.25,
        random_state=0,
        stratify=data.target,
    )
    return Split(train_images, train_labels, held_out_images, held_out_labels)


def train(split: Split, epochs: int = 30, seed: int = 0) -> DigitNetwork:
    """Trains on the training part; the same weights for the same seed and torch build.

    Args:
        split: the scans.
        epochs: passes over the training part (about 0.1 s each).
        seed: of torch's generator, whose state the caller gets back unchanged.
    """
    threads = torch.get_num_threads()
    # A second thread gains nothing at this size, and waits for a core on a busy machine.
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return _fitted(DigitNetwork(), split, epochs)
    finally:
        torch.set_num_threads(threads)


def _fitted(network: DigitNetwork, split: Split, epochs: int) -> DigitNetwork:
    images = torch.from_numpy(split.train_images)
    labels = torch.from_numpy(split.train_labels)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(network.logits(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
    return network.eval()
