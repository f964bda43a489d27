"""Writes the demo's results as one HTML page that needs nothing but itself.

The page's frame is `page_template.html`; here are the parts that depend on results. Every picture
is a data URI, so the page can be mailed or kept.
"""

import base64
import html
import io
import string
from dataclasses import dataclass
from pathlib import Path

import latency_plot
import numpy as np
import numpy.typing as npt
from latency import Latency
from photographs import Photograph
from PIL import Image

TEMPLATE = Path(__file__).with_name("page_template.html")

# Scans read right that are shown at once; the others wait behind a fold.
FIRST_RIGHT_SCANS = 60


@dataclass(frozen=True)
class DigitReadings:
    """What the model said of the held-out scans.

    images: float32 (n, 8, 8), ink 0 to 16. labels, digits: int64 (n,).
    probabilities: float32 (n, 10).
    """

    images: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    digits: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Score:
    """How many scans one way of running the model read right."""

    way: str
    right: int
    total: int


@dataclass(frozen=True)
class PhotographResult:
    """Boxes, float32 (n, 4), in pixels of the photograph; probabilities, float32 (n,)."""

    photograph: Photograph
    boxes: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Results:
    """Everything the page shows. `versions` maps what ran to its version."""

    readings: DigitReadings
    scores: list[Score]
    photographs: list[PhotographResult]
    digits_latency: Latency
    detector_latency: Latency
    versions: dict[str, str]


def data_uri(content: bytes, mime_type: str) -> str:
    """The content as a URI that carries it."""
    return f"data:{mime_type};base64,{base64.b64encode(content).decode('ascii')}"


def _picture_uri(picture: npt.NDArray[np.uint8], file_format: str) -> str:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, file_format, quality=88)
    return data_uri(file.getvalue(), f"image/{file_format}")


def reading_order(readings: DigitReadings) -> tuple[list[int], list[int]]:
    """Indices of the scans read wrong, surest first, and of those read right, least sure first."""
    sure = readings.probabilities.max(axis=1)
    wrong = np.flatnonzero(readings.digits != readings.labels)
    right = np.flatnonzero(readings.digits == readings.labels)
    return wrong[np.argsort(-sure[wrong])].tolist(), right[np.argsort(sure[right])].tolist()


def _scan(readings: DigitReadings, index: int) -> str:
    """One scan with the model's answer, as an HTML figure."""
    ink = np.round(255 - readings.images[index] * (255 / 16)).astype(np.uint8)
    digit, label = int(readings.digits[index]), int(readings.labels[index])
    percent = f"{100 * float(readings.probabilities[index, digit]):.0f}&nbsp;%"
    if digit == label:
        text = f"<b>{digit}</b> {percent}"
        words = f"A scanned {label}, read right"
    else:
        text = f"read as <b>{digit}</b><br>labelled <b>{label}</b><br>{percent} sure"
        words = f"A scanned {label}, read as {digit}"
    return (
        f'<figure class="scan"><img src="{_picture_uri(ink, "png")}" alt="{words}" '
        f'width="8" height="8"><figcaption>{text}</figcaption></figure>'
    )


def _score(score: Score) -> str:
    percent = 100 * score.right / score.total
    return (
        f'<div class="card"><span class="way">{html.escape(score.way)}</span>'
        f'<span class="figure">{percent:.2f} %</span>'
        f'<span class="detail">{score.right} of {score.total} right</span></div>'
    )


def _verdict(scores: list[Score]) -> str:
    if len({(score.right, score.total) for score in scores}) == 1:
        return "The same model gives the same answers, whichever way it is called."
    return "<strong>The ways of calling the model disagree.</strong>"


def _box(box: npt.NDArray[np.float32], probability: float, picture_width: int) -> str:
    """One box with its probability, as SVG in pixels of the photograph."""
    x1, y1, x2, y2 = (float(side) for side in box)
    font_size = picture_width / 34
    label = f"face {probability:.4f}"
    label_width = font_size * 0.6 * (len(label) + 1)
    label_x = min(x1, picture_width - label_width)
    return (
        f'<rect class="box" x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" '
        f'height="{y2 - y1:.1f}" rx="3"/>'
        f'<rect class="tag" x="{label_x:.1f}" y="{y2:.1f}" width="{label_width:.1f}" '
        f'height="{font_size * 1.5:.1f}" rx="3"/>'
        f'<text x="{label_x + label_width / 2:.1f}" y="{y2 + font_size * 1.1:.1f}" '
        f'font-size="{font_size:.1f}">{label}</text>'
    )


def _photograph(result: PhotographResult) -> str:
    """One photograph with its boxes drawn over it, as an HTML figure."""
    picture = result.photograph.picture
    height, width = picture.shape[:2]
    boxes = "".join(
        _box(box, float(probability), width)
        for box, probability in zip(result.boxes, result.probabilities, strict=True)
    )
    count = len(result.boxes)
    found = "no face" if count == 0 else f"{count} face" if count == 1 else f"{count} faces"
    title = html.escape(result.photograph.title)
    return (
        f'<figure class="photograph"><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{title}: {found}"><image width="{width}" height="{height}" '
        f'href="{_picture_uri(picture, "jpeg")}"/>{boxes}</svg>'
        f"<figcaption><b>{title}: {found}</b><br>"
        f"<code>boxes</code> has shape ({count}, 4)<br>"
        f"<small>Photo: {html.escape(result.photograph.credit)}</small></figcaption></figure>"
    )


def duration(microseconds: float, sign: str = "") -> str:
    """The time in the unit that suits it; `sign` is "+" to write a plus sign too."""
    if abs(microseconds) < 1000:
        return f"{microseconds:{sign}.1f} µs"
    return f"{microseconds / 1000:{sign}.1f} ms"


def _latency_row(name: str, latency: Latency) -> str:
    direct, neuropod = latency.direct_median_us, latency.neuropod_median_us
    return (
        f"<tr><th>{name}</th><td>{duration(direct)}</td><td>{duration(neuropod)}</td>"
        f"<td>{duration(neuropod - direct, '+')}</td><td>{neuropod / direct:.2f} ×</td></tr>"
    )


def render(results: Results) -> str:
    """The whole page as HTML text."""
    wrong, right = reading_order(results.readings)
    latencies = (results.digits_latency, results.detector_latency)
    parts = {
        "verdict": _verdict(results.scores),
        "scores": "".join(_score(score) for score in results.scores),
        "trained_on": str(1797 - len(results.readings.labels)),
        "held_out": str(len(results.readings.labels)),
        "wrong_count": str(len(wrong)),
        "wrong_scans": "".join(_scan(results.readings, i) for i in wrong),
        "right_scans": "".join(_scan(results.readings, i) for i in right[:FIRST_RIGHT_SCANS]),
        "rest_count": str(len(right[FIRST_RIGHT_SCANS:])),
        "rest_scans": "".join(_scan(results.readings, i) for i in right[FIRST_RIGHT_SCANS:]),
        "photographs": "".join(_photograph(result) for result in results.photographs),
        "plot_light": data_uri(latency_plot.draw(*latencies, latency_plot.LIGHT), "image/svg+xml"),
        "plot_dark": data_uri(latency_plot.draw(*latencies, latency_plot.DARK), "image/svg+xml"),
        "latency_rows": _latency_row("Digit network, one scan", results.digits_latency)
        + _latency_row("Face detector, one photograph", results.detector_latency),
        "versions": " · ".join(
            f"{html.escape(name)} {html.escape(version)}"
            for name, version in results.versions.items()
        ),
    }
    return string.Template(TEMPLATE.read_text(encoding="utf-8")).substitute(parts)
