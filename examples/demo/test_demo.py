"""The demo's parts one by one, then the whole of it."""

import html.parser
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import digits
import latency
import mtcnn
import numpy as np
import page
import pytest
import run_demo
import torch
from letterbox import FILL, letterbox, place
from photographs import Photograph, load_photographs

DEMO = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As the demo runs: quicker on a busy machine, where threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def detector() -> torch.jit.ScriptModule:
    """The scripted cascade, as it is packaged."""
    return torch.jit.script(mtcnn.load_face_detector())


def detect(detector: torch.jit.ScriptModule, frame: np.ndarray) -> mtcnn.Detections:
    with torch.no_grad():
        return mtcnn.Detections(*detector(torch.from_numpy(frame)))


# Letterbox


@pytest.mark.parametrize(
    ("size", "left", "top"),
    [((512, 512), 360, 0), ((427, 640), 60, 0), ((100, 400), 0, 360), ((1200, 1920), 0, 0)],
)
def test_letterbox_centres_and_pads(size: tuple[int, int], left: int, top: int) -> None:
    frame, placement = letterbox(np.full((*size, 3), 200, np.uint8))

    assert frame.shape == (1200, 1920, 3)
    assert frame.dtype == np.uint8
    assert (placement.left, placement.top) == (left, top)
    bars = np.ones((1200, 1920), bool)
    bars[top : top + placement.scaled_height, left : left + placement.scaled_width] = False
    assert (frame[bars] == FILL).all()
    assert (frame[~bars] == 200).all()


def test_letterbox_keeps_the_aspect_ratio() -> None:
    placement = place(427, 640)
    assert placement.scaled_width / placement.scaled_height == pytest.approx(640 / 427, rel=1e-3)


def test_letterbox_leaves_a_picture_of_the_frames_size_alone() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (1200, 1920, 3), np.uint8)
    frame, _ = letterbox(picture)
    np.testing.assert_array_equal(frame, picture)


@pytest.mark.parametrize("size", [(1, 5000), (5000, 1), (1, 1)])
def test_letterbox_takes_extreme_pictures(size: tuple[int, int]) -> None:
    frame, placement = letterbox(np.zeros((*size, 3), np.uint8))
    assert frame.shape == (1200, 1920, 3)
    assert min(placement.scaled_height, placement.scaled_width) >= 1


@pytest.mark.parametrize(
    "picture",
    [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3), np.float32)],
)
def test_letterbox_refuses_what_is_no_rgb_picture(picture: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected a uint8"):
        letterbox(picture)


def test_letterbox_refuses_an_empty_picture() -> None:
    with pytest.raises(ValueError, match="no content"):
        letterbox(np.zeros((0, 4, 3), np.uint8))


def test_boxes_map_to_the_frame_and_back() -> None:
    placement = place(427, 640)
    boxes = np.array([[0, 0, 640, 427], [10, 20, 30.5, 40.25]], np.float32)

    in_frame = placement.to_frame(boxes)

    np.testing.assert_allclose(in_frame[0], [60, 0, 60 + 1799, 1200], atol=1e-3)
    np.testing.assert_allclose(placement.to_picture(in_frame), boxes, atol=1e-3)


def test_boxes_over_the_bars_are_clipped_to_the_picture() -> None:
    placement = place(512, 512)
    boxes = placement.to_picture(np.array([[0, -5, 1920, 1300]], np.float32))
    np.testing.assert_array_equal(boxes, [[0, 0, 512, 512]])


def test_no_boxes_map_to_no_boxes() -> None:
    boxes = place(512, 512).to_picture(np.zeros((0, 4), np.float32))
    assert boxes.shape == (0, 4)
    assert boxes.dtype == np.float32


# Non-maximum suppression


BOXES = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [2, 2, 6, 6]])
SCORES = torch.tensor([0.8, 0.9, 0.7, 0.6])


def test_suppression_keeps_the_best_of_overlapping_boxes() -> None:
    kept = mtcnn.non_maximum_suppression(BOXES, SCORES, 0.5, False)
    # The last box lies inside the second, but covers only 16 of its 100 pixels.
    assert kept.tolist() == [1, 2, 3]


def test_suppression_relative_to_the_smaller_drops_nested_boxes() -> None:
    kept = mtcnn.non_maximum_suppression(BOXES, SCORES, 0.5, True)
    assert kept.tolist() == [1, 2]


def test_suppression_of_nothing_is_nothing() -> None:
    kept = mtcnn.non_maximum_suppression(torch.zeros(0, 4), torch.zeros(0), 0.5, False)
    assert kept.tolist() == []
    assert kept.dtype == torch.int64


def test_crops_outside_the_image_read_as_grey() -> None:
    image = torch.ones(3, 20, 20)
    boxes = torch.tensor([[-10.0, 0, 10, 20], [0, 0, 20, 20], [30, 30, 40, 40], [5, 5, 5, 5]])

    crops = mtcnn.cut_out(image, boxes, 10)

    assert crops.shape == (4, 3, 10, 10)
    assert (crops[0, :, :, :5] == 0).all()
    assert (crops[0, :, :, 5:] == 1).all()
    assert (crops[1] == 1).all()
    assert (crops[2] == 0).all()
    assert (crops[3] == 1).all()


# Detector


@pytest.mark.parametrize("photograph", load_photographs(), ids=lambda each: each.title)
def test_detector_counts_the_faces(
    detector: torch.jit.ScriptModule, photograph: Photograph
) -> None:
    frame, _ = letterbox(photograph.picture)

    found = detect(detector, frame)

    assert found.boxes.shape == (photograph.faces, 4)
    assert found.boxes.dtype == torch.float32
    assert found.supported_object_classes == ["face"]
    assert found.object_class_probability.shape == (photograph.faces, 1)
    assert found.object_class_probability.dtype == torch.float32


def test_detector_places_the_astronauts_face(detector: torch.jit.ScriptModule) -> None:
    frame, placement = letterbox(load_photographs()[0].picture)

    found = detect(detector, frame)

    x1, y1, x2, y2 = placement.to_picture(found.boxes.numpy())[0]
    # Eyes, nose and mouth of the photograph, read off it by hand.
    for x, y in [(205, 105), (243, 105), (225, 125), (225, 148)]:
        assert x1 < x < x2
        assert y1 < y < y2
    assert x2 - x1 < 120
    assert y2 - y1 < 140
    assert found.object_class_probability.item() > 0.99


@pytest.mark.parametrize("value", [0, 127, 255])
def test_detector_finds_nothing_in_an_even_picture(
    detector: torch.jit.ScriptModule, value: int
) -> None:
    found = detect(detector, np.full((1200, 1920, 3), value, np.uint8))
    assert found.boxes.shape == (0, 4)
    assert found.object_class_probability.shape == (0, 1)


def test_detector_finds_two_faces_side_by_side(detector: torch.jit.ScriptModule) -> None:
    picture = load_photographs()[0].picture
    frame, _ = letterbox(np.concatenate([picture, picture], axis=1))
    assert detect(detector, frame).boxes.shape == (2, 4)


def test_script_and_eager_agree(detector: torch.jit.ScriptModule) -> None:
    frame, _ = letterbox(load_photographs()[0].picture)
    with torch.no_grad():
        eager = mtcnn.load_face_detector()(torch.from_numpy(frame))
    torch.testing.assert_close(detect(detector, frame).boxes, eager.boxes)


# Digits


def test_digits_train_the_same_way_twice_and_well() -> None:
    split = digits.load_split()
    networks = [digits.train(split, epochs=3) for _ in range(2)]
    images = torch.from_numpy(split.held_out_images)
    with torch.no_grad():
        first, second = (torch.jit.script(network)(images) for network in networks)

    torch.testing.assert_close(first["probabilities"], second["probabilities"], rtol=0, atol=0)
    assert first["digit"].dtype == torch.int64
    assert (first["digit"].numpy() == split.held_out_labels).mean() > 0.9


# Page


def readings() -> page.DigitReadings:
    """Four scans, of which the second and the fourth are read wrong."""
    probabilities = np.full((4, 10), 0.01, np.float32)
    probabilities[[0, 1, 2, 3], [5, 6, 7, 8]] = [0.9, 0.5, 0.6, 0.7]
    return page.DigitReadings(
        images=np.zeros((4, 8, 8), np.float32),
        labels=np.array([5, 0, 7, 0]),
        digits=np.array([5, 6, 7, 8]),
        probabilities=probabilities,
    )


def test_page_shows_the_surest_mistakes_and_the_least_sure_hits_first() -> None:
    assert page.reading_order(readings()) == ([3, 1], [2, 0])


def test_page_escapes_names_and_says_when_scores_differ() -> None:
    photograph = Photograph("<b>&", np.zeros((8, 8, 3), np.uint8), 0, "nobody")
    timing = latency.measure(lambda: None, lambda: None, rounds=4, warm_up=0, budget_s=9)
    text = page.render(
        page.Results(
            readings(),
            [page.Score("one", 1, 2), page.Score("two", 2, 2)],
            [page.PhotographResult(photograph, np.zeros((0, 4), np.float32), np.zeros(0))],
            timing,
            timing,
            {},
        )
    )
    assert "disagree" in text
    assert "&lt;b&gt;&amp;: no face" in text


def test_latency_calls_both_equally_often() -> None:
    calls = []
    times = latency.measure(
        lambda: calls.append("direct"),
        lambda: calls.append("neuropod"),
        rounds=6,
        warm_up=2,
        budget_s=9,
    )
    assert calls.count("direct") == calls.count("neuropod") == 8
    assert times.direct_us.shape == times.neuropod_us.shape == (6,)


def test_latency_stops_at_its_budget() -> None:
    times = latency.measure(lambda: None, lambda: None, rounds=1000, warm_up=0, budget_s=0)
    assert times.direct_us.shape == times.neuropod_us.shape == (4,)


@pytest.mark.parametrize(
    ("right", "boxes", "message"), [(2, 0, None), (1, 0, "disagree"), (2, 1, "found 1 faces")]
)
def test_demo_fails_when_ways_disagree_or_faces_are_miscounted(
    right: int, boxes: int, message: str | None
) -> None:
    scores = [page.Score("one", 2, 3), page.Score("two", right, 3)]
    photograph = Photograph("wall", np.zeros((8, 8, 3), np.uint8), 0, "nobody")
    found = page.PhotographResult(photograph, np.zeros((boxes, 4), np.float32), np.zeros(boxes))

    if message is None:
        run_demo.check(scores, [found])
    else:
        with pytest.raises(run_demo.DemoError, match=message):
            run_demo.check(scores, [found])


class References(html.parser.HTMLParser):
    """Collects what a page refers to and the elements it's made of."""

    def __init__(self) -> None:
        super().__init__()
        self.uris: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.uris += [
            value or ""
            for name, value in attrs
            if name in {"src", "srcset", "href", "xlink:href", "data", "poster", "action"}
        ]


@pytest.mark.slow
def test_whole_demo(tmp_path: Path) -> None:
    command = [sys.executable, str(DEMO / "run_demo.py"), "--out", str(tmp_path / "out")]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stdout + first.stderr
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stdout + second.stderr

    for output in (first.stdout, second.stdout):
        scores = re.findall(r"(\d+) of 450 right", output)
        assert len(scores) == 3
        assert len(set(scores)) == 1
        assert int(scores[0]) > 430
    assert "from last time" not in first.stdout
    assert second.stdout.count("from last time") == 2
    target = tmp_path / "out" / "index.html"
    assert second.stdout.splitlines()[-1] == target.as_uri()

    text = target.read_text(encoding="utf-8")
    references = References()
    references.feed(text)
    assert len(references.uris) >= 450 + 3 + 2
    assert all(uri.startswith("data:") for uri in references.uris)
    assert not references.tags & {"script", "link", "iframe", "object", "base"}
    outside_data = re.sub(r"data:[a-z/+]+;base64,[A-Za-z0-9+/=]+", "", text)
    assert not re.search(r"https?:|@import|url\(", outside_data)
