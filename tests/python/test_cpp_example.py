"""A C++ program outside of this tree links sdtune::model from an install prefix and generates what the Python module does."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sdtune

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PROMPT = "a photo of a person"


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, which must be a good one."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """examples/cpp, configured and built against what `cmake --install` puts into a new prefix."""
    folder = tmp_path_factory.mktemp("cpp")
    run("cmake", "--install", BUILD, "--prefix", folder / "prefix")
    torch_folder = Path(importlib.util.find_spec("torch").origin).parent
    run("cmake", "-S", ROOT / "examples/cpp", "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}",
        f"-DSDTUNE_TORCH_DIR={torch_folder}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "build")
    # Nothing of the prefix may point into the source tree.
    for file in (folder / "prefix" / "lib" / "cmake" / "sdtune").iterdir():
        assert str(ROOT) not in file.read_text(), file.name
    return folder / "build" / "generate"


def test_program_generates_the_image_of_the_python_module(program: Path, tiny_base: Path, tmp_path: Path) -> None:
    run(program, tiny_base, PROMPT, tmp_path / "image.png")
    ours = np.asarray(Image.open(tmp_path / "image.png"))
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_base, device="cpu")
    same, other = (np.asarray(pipe(PROMPT, num_inference_steps=20, seed=seed).images[0]) for seed in (0, 1))
    assert ours.shape == same.shape
    # One 8-bit step for another number of threads.
    assert np.abs(ours.astype(int) - same.astype(int)).max() <= 1
    assert np.abs(ours.astype(int) - other.astype(int)).max() > 8


def test_program_reports_a_mistake_in_one_line(program: Path, tmp_path: Path) -> None:
    done = subprocess.run([str(program), str(tmp_path / "nothing"), PROMPT, str(tmp_path / "image.png")], capture_output=True,
                          text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("generate: error: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "image.png").exists()
