"""The MTCNN face detector as one TorchScript module for the reference detection problem.

The algorithm is that of Zhang, Zhang, Li and Qiao, "Joint Face Detection and Alignment Using
Multitask Cascaded Convolutional Networks", IEEE Signal Processing Letters 23 (10), 2016: three
small networks, each looking harder at what the one before it let through.

1. P-Net slides over an image pyramid and proposes squares that may hold a face.
2. R-Net looks at each proposal at 24 x 24 pixels and refuses most.
3. O-Net looks at the rest at 48 x 48 pixels, decides, and places the box.

The trained weights are the three `.pt` files of the PyPI wheel `facenet-pytorch` 2.6.0 (MIT). They
are read as plain tensors; nothing of that package is imported.

Boxes are x1, y1, x2, y2 in pixels of the input image, x to the right, y down; the first corner is
inside, the second just outside.
"""

# No `from __future__ import annotations` here: TorchScript needs the NamedTuple's real types.
import importlib.metadata
from pathlib import Path
from typing import List, NamedTuple, Tuple  # noqa: UP035 (TorchScript reads these)

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WEIGHTS_DISTRIBUTION = "facenet-pytorch"

IMAGE_HEIGHT = 1200
IMAGE_WIDTH = 1920

INPUT_SPEC = [{"name": "image", "dtype": "uint8", "shape": (IMAGE_HEIGHT, IMAGE_WIDTH, 3)}]
OUTPUT_SPEC = [
    {"name": "boxes", "dtype": "float32", "shape": ("num_detections", 4)},
    {"name": "supported_object_classes", "dtype": "string", "shape": ("num_classes",)},
    {
        "name": "object_class_probability",
        "dtype": "float32",
        "shape": ("num_detections", "num_classes"),
    },
]


class Detections(NamedTuple):
    """The outputs of the reference detection problem; n may be 0.

    boxes: float32 (n, 4).
    supported_object_classes: the names of the columns of the next field.
    object_class_probability: float32 (n, number of classes), each in 0 to 1, best first.
    """

    boxes: Tensor
    supported_object_classes: List[str]  # noqa: UP006
    object_class_probability: Tensor


class ProposalNetwork(nn.Module):
    """P-Net: scores every 12 x 12 window of an image, two pixels apart, in one convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 10, 3)
        self.prelu1 = nn.PReLU(10)
        self.pool1 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv2 = nn.Conv2d(10, 16, 3)
        self.prelu2 = nn.PReLU(16)
        self.conv3 = nn.Conv2d(16, 32, 3)
        self.prelu3 = nn.PReLU(32)
        self.conv4_1 = nn.Conv2d(32, 2, 1)
        self.conv4_2 = nn.Conv2d(32, 4, 1)

    def forward(self, images: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        """Takes float32 (n, 3, h, w); returns face probabilities (n, rows, columns) and box
        corrections (n, 4, rows, columns)."""
        x = self.pool1(self.prelu1(self.conv1(images)))
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return F.softmax(self.conv4_1(x), dim=1)[:, 1], self.conv4_2(x)


class RefinementNetwork(nn.Module):
    """R-Net: scores crops of 24 x 24 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 28, 3)
        self.prelu1 = nn.PReLU(28)
        self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = nn.Conv2d(28, 48, 3)
        self.prelu2 = nn.PReLU(48)
        self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv3 = nn.Conv2d(48, 64, 2)
        self.prelu3 = nn.PReLU(64)
        self.dense4 = nn.Linear(576, 128)
        self.prelu4 = nn.PReLU(128)
        self.dense5_1 = nn.Linear(128, 2)
        self.dense5_2 = nn.Linear(128, 4)

    def forward(self, crops: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        """Takes float32 (n, 3, 24, 24); returns face probabilities (n,) and box corrections
        (n, 4)."""
        x = self.pool1(self.prelu1(self.conv1(crops)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.prelu3(self.conv3(x))
        # The trained dense layer counts its inputs by column, then row, then channel.
        x = self.prelu4(self.dense4(x.permute(0, 3, 2, 1).flatten(1)))
        return F.softmax(self.dense5_1(x), dim=1)[:, 1], self.dense5_2(x)


class OutputNetwork(nn.Module):
    """O-Net: scores crops of 48 x 48 pixels and places the final box.

    Its third head (five facial landmarks) is loaded with the weights but not part of the problem.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.prelu1 = nn.PReLU(32)
        self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.prelu2 = nn.PReLU(64)
        self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.prelu3 = nn.PReLU(64)
        self.pool3 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv4 = nn.Conv2d(64, 128, 2)
        self.prelu4 = nn.PReLU(128)
        self.dense5 = nn.Linear(1152, 256)
        self.prelu5 = nn.PReLU(256)
        self.dense6_1 = nn.Linear(256, 2)
        self.dense6_2 = nn.Linear(256, 4)
        self.dense6_3 = nn.Linear(256, 10)

    def forward(self, crops: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        """Takes float32 (n, 3, 48, 48); returns face probabilities (n,) and box corrections
        (n, 4)."""
        x = self.pool1(self.prelu1(self.conv1(crops)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.pool3(self.prelu3(self.conv3(x)))
        x = self.prelu4(self.conv4(x))
        x = self.prelu5(self.dense5(x.permute(0, 3, 2, 1).flatten(1)))
        return F.softmax(self.dense6_1(x), dim=1)[:, 1], self.dense6_2(x)


def non_maximum_suppression(
    boxes: Tensor, scores: Tensor, limit: float, relative_to_smaller: bool
) -> Tensor:
    """Keeps, of boxes that overlap, the one with the highest score.

    Args:
        boxes: float32 (n, 4).
        scores: float32 (n,).
        limit: the overlap, 0 to 1, from which on the weaker box goes.
        relative_to_smaller: measure the overlap against the smaller box's area (a box inside
            another overlaps it fully) rather than against the area of both together.

    Returns:
        int64 (k,), indices of the boxes kept, best first.
    """
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order = scores.argsort(dim=0, descending=True)
    kept = torch.jit.annotate(List[Tensor], [])  # noqa: UP006
    while order.numel() > 0:
        best = order[0]
        kept.append(best)
        rest = order[1:]
        corner1 = torch.maximum(boxes[rest, :2], boxes[best, :2])
        corner2 = torch.minimum(boxes[rest, 2:], boxes[best, 2:])
        shared = (corner2 - corner1).clamp(min=0).prod(dim=1)
        if relative_to_smaller:
            whole = torch.minimum(areas[rest], areas[best])
        else:
            whole = areas[rest] + areas[best] - shared
        order = rest[shared <= limit * whole]
    if len(kept) == 0:
        return order
    return torch.stack(kept)


def corrected(boxes: Tensor, corrections: Tensor) -> Tensor:
    """Moves each side of float32 (n, 4) boxes by a fraction, float32 (n, 4), of the box's size."""
    size = boxes[:, 2:] - boxes[:, :2]
    return boxes + corrections * torch.cat([size, size], dim=1)


def squared(boxes: Tensor) -> Tensor:
    """Grows float32 (n, 4) boxes around their centres to squares of their longer side."""
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2
    half = (boxes[:, 2:] - boxes[:, :2]).amax(dim=1, keepdim=True) / 2
    return torch.cat([centre - half, centre + half], dim=1)


def cut_out(image: Tensor, boxes: Tensor, size: int) -> Tensor:
    """Cuts boxes out of an image and shrinks or stretches each to one size.

    Args:
        image: float32 (3, h, w), normalised.
        boxes: float32 (n, 4); parts outside the image read as zero, the normalised middle grey.
        size: rows and columns of each crop.

    Returns:
        float32 (n, 3, size, size), each pixel the mean of the area it stands for.
    """
    height, width = image.shape[1], image.shape[2]
    crops = torch.zeros([boxes.shape[0], 3, size, size], dtype=image.dtype, device=image.device)
    corners = boxes.round().to(torch.int64)
    for i in range(boxes.shape[0]):
        x1, y1 = int(corners[i, 0]), int(corners[i, 1])
        x2, y2 = max(int(corners[i, 2]), x1 + 1), max(int(corners[i, 3]), y1 + 1)
        inside = image[:, max(y1, 0) : max(y2, 0), max(x1, 0) : max(x2, 0)]
        if inside.numel() > 0:
            border = [max(-x1, 0), max(x2 - width, 0), max(-y1, 0), max(y2 - height, 0)]
            crops[i] = F.adaptive_avg_pool2d(F.pad(inside, border), [size, size])
    return crops


class FaceDetector(nn.Module):
    """The whole cascade, from a uint8 image to boxes and probabilities.

    Without pretrained weights it is a detector of nothing; see `load_face_detector`.

    Args:
        min_face: side in pixels of the smallest face looked for. The cost of the first stage falls
            with its square.
        thresholds: probability that each of the three stages asks for.
        max_proposals: how many windows per pyramid level, the best ones, go on. Bounds time and
            memory for pictures that look like nothing but faces.
    """

    def __init__(
        self,
        min_face: float = 48.0,
        thresholds: Tuple[float, float, float] = (0.6, 0.7, 0.7),  # noqa: UP006
        max_proposals: int = 2000,
    ) -> None:
        super().__init__()
        self.pnet = ProposalNetwork()
        self.rnet = RefinementNetwork()
        self.onet = OutputNetwork()
        self.min_face = min_face
        self.threshold1, self.threshold2, self.threshold3 = thresholds
        self.max_proposals = max_proposals
        self.pyramid_factor = 0.709  # The paper's: each level has half the area of the last.

    def propose_at(self, image: Tensor, scale: float) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        """Runs P-Net on float32 (3, h, w) shrunk by `scale`; returns corrected boxes, float32
        (n, 4), in pixels of the image, and their probabilities, float32 (n,)."""
        rows = int(image.shape[1] * scale)
        columns = int(image.shape[2] * scale)
        level = F.adaptive_avg_pool2d(image.unsqueeze(0), [rows, columns])
        probability_map, correction_map = self.pnet(level)
        # A window starts every two pixels of the level and is twelve wide.
        places = (probability_map[0] >= self.threshold1).nonzero()
        probabilities = probability_map[0, places[:, 0], places[:, 1]]
        best = probabilities.argsort(dim=0, descending=True)[: self.max_proposals]
        places, probabilities = places[best], probabilities[best]
        corrections = correction_map[0, :, places[:, 0], places[:, 1]].t()
        corner = places.flip(1).to(torch.float32) * 2
        boxes = torch.cat([corner, corner + 12], dim=1) / scale
        kept = non_maximum_suppression(boxes, probabilities, 0.5, False)
        return corrected(boxes[kept], corrections[kept]), probabilities[kept]

    def propose(self, image: Tensor) -> Tensor:
        """Stage 1 over the whole pyramid: float32 (3, h, w) to squares, float32 (n, 4)."""
        boxes = torch.jit.annotate(List[Tensor], [])  # noqa: UP006
        probabilities = torch.jit.annotate(List[Tensor], [])  # noqa: UP006
        scale = 12.0 / self.min_face
        while min(image.shape[1], image.shape[2]) * scale >= 12.0:
            level_boxes, level_probabilities = self.propose_at(image, scale)
            boxes.append(level_boxes)
            probabilities.append(level_probabilities)
            scale = scale * self.pyramid_factor
        if len(boxes) == 0:
            return torch.zeros([0, 4], dtype=image.dtype, device=image.device)
        all_boxes = torch.cat(boxes)
        kept = non_maximum_suppression(all_boxes, torch.cat(probabilities), 0.7, False)
        return squared(all_boxes[kept])

    def refine(self, image: Tensor, proposals: Tensor) -> Tensor:
        """Stage 2: the proposals, float32 (n, 4), that R-Net agrees with, as squares."""
        probabilities, corrections = self.rnet(cut_out(image, proposals, 24))
        passed = probabilities >= self.threshold2
        boxes, corrections = proposals[passed], corrections[passed]
        kept = non_maximum_suppression(boxes, probabilities[passed], 0.7, False)
        return squared(corrected(boxes[kept], corrections[kept]))

    def decide(self, image: Tensor, candidates: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        """Stage 3: final boxes, float32 (n, 4), and probabilities, float32 (n,), best first."""
        probabilities, corrections = self.onet(cut_out(image, candidates, 48))
        passed = probabilities >= self.threshold3
        boxes = corrected(candidates[passed], corrections[passed])
        probabilities = probabilities[passed]
        kept = non_maximum_suppression(boxes, probabilities, 0.7, True)
        return boxes[kept], probabilities[kept]

    def forward(self, image: Tensor) -> Detections:
        """Finds faces in one image, uint8 (h, w, 3), RGB, of any size of at least 12 pixels."""
        normalised = (image.permute(2, 0, 1).to(torch.float32) - 127.5) / 128
        boxes = self.propose(normalised)
        if boxes.shape[0] > 0:
            boxes = self.refine(normalised, boxes)
        probabilities = torch.zeros([0], dtype=boxes.dtype, device=boxes.device)
        if boxes.shape[0] > 0:
            boxes, probabilities = self.decide(normalised, boxes)
        return Detections(boxes, ["face"], probabilities.unsqueeze(1))


def weight_file(network: str) -> Path:
    """Where the installed wheel keeps the weights of "pnet", "rnet" or "onet".

    Raises:
        FileNotFoundError: the wheel isn't installed, or doesn't hold the file.
    """
    try:
        files = importlib.metadata.distribution(WEIGHTS_DISTRIBUTION).files or []
    except importlib.metadata.PackageNotFoundError as error:
        raise FileNotFoundError(
            "the face detector's weights are not installed: "
            f"pip install --no-deps {WEIGHTS_DISTRIBUTION}==2.6.0"
        ) from error
    for file in files:
        if file.name == f"{network}.pt":
            return Path(str(file.locate()))
    raise FileNotFoundError(f"{WEIGHTS_DISTRIBUTION} holds no file {network}.pt")


def load_face_detector() -> FaceDetector:
    """The detector with its trained weights, ready for `torch.jit.script`."""
    detector = FaceDetector()
    for name in ("pnet", "rnet", "onet"):
        weights = torch.load(weight_file(name), map_location="cpu", weights_only=True)
        getattr(detector, name).load_state_dict(weights)
    return detector.eval()
