"""A real stateful model on real speech: Silero's voice activity detector.

The model is in the wheel `silero-vad`; the sample belongs to Debian's alsa-utils.
"""

import importlib.util
import wave
from pathlib import Path

import numpy as np
import pytest
import torch

from neuropod import load_neuropod
from neuropod.packagers import create_torchscript_neuropod

SPEECH = Path("/usr/share/sounds/alsa/Front_Center.wav")
RATE = 16_000
CHUNK = 512


def find_model() -> Path:
    spec = importlib.util.find_spec("silero_vad")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "data" / "silero_vad.jit"


@pytest.fixture(scope="module")
def chunks() -> np.ndarray:
    """float32 (n, 512): the sample at 16 kHz, in [-1, 1]."""
    with wave.open(str(SPEECH)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (48_000, 1, 2)
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2") / np.float32(32_768)
    # 48 kHz is three times 16 kHz: a mean of three is filter enough for speech.
    samples = samples[: len(samples) // 3 * 3].reshape(-1, 3).mean(1, dtype=np.float32)
    return samples[: len(samples) // CHUNK * CHUNK].reshape(-1, CHUNK)


def run_directly(chunks: np.ndarray) -> list[float]:
    model = torch.jit.load(str(find_model()))
    with torch.no_grad():
        return [float(model(torch.from_numpy(chunk)[None], RATE)) for chunk in chunks]


def test_the_voice_detector_hears_what_it_hears_in_torch(
    chunks: np.ndarray, tmp_path: Path
) -> None:
    package = tmp_path / "voice.neuropod"
    create_torchscript_neuropod(
        neuropod_path=str(package),
        model_name="voice_detector",
        module_path=str(find_model()),
        input_spec=[
            {"name": "x", "dtype": "float32", "shape": ("batch", CHUNK)},
            {"name": "sr", "dtype": "int64", "shape": ()},
        ],
        output_spec=[{"name": "speech", "dtype": "float32", "shape": ("batch", 1)}],
        test_input_data={"x": np.zeros((1, CHUNK), np.float32), "sr": np.int64(RATE)},
        stateful=True,
    )
    expected = run_directly(chunks)
    assert max(expected) > 0.8 > 0.2 > min(expected), "the sample has speech and silence"
    with load_neuropod(package) as model:

        def run(chunk: np.ndarray) -> float:
            return float(model.infer({"x": chunk[None], "sr": np.int64(RATE)})["speech"][0, 0])

        found = [run(chunk) for chunk in chunks]
        np.testing.assert_allclose(found, expected, atol=1e-6)
        again = [run(chunk) for chunk in chunks]
        assert not np.allclose(again, expected, atol=1e-6), "the state carried over"
        model.reset()
        np.testing.assert_array_equal([run(chunk) for chunk in chunks], found)
