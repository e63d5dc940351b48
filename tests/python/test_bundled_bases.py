"""The bases that come with the program: found by name, equal to what diffusers makes of them, and trained with their own defaults."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sdtune
import torch
from PIL import Image
from program import SDTUNE, run

ROOT = Path(__file__).resolve().parents[2]
BASES = {"portrait-64": 64, "portrait-128": 128}
TOLERANCE = 1e-5  # of diffusers' float32


def relative_error(got: np.ndarray, want: torch.Tensor) -> float:
    return float(np.linalg.norm(got - want.numpy()) / np.linalg.norm(want.numpy()))


@pytest.mark.parametrize("name", BASES)
def test_it_generates_images_of_its_size(name: str, tmp_path: Path) -> None:
    ended = run(["sample", "--model", name, "--prompt", "a photo of a person", "--steps", "2", "--device", "cpu", "--output", str(tmp_path)])
    assert ended.returncode == 0, ended.stderr
    [image] = tmp_path.glob("*.png")
    assert Image.open(image).size == (BASES[name], BASES[name])


@pytest.mark.parametrize("name", BASES)
def test_diffusers_computes_the_same(name: str) -> None:
    from diffusers import AutoencoderKL, UNet2DConditionModel
    folder, random = ROOT / "models" / name, np.random.default_rng(0)
    theirs = UNet2DConditionModel.from_pretrained(folder / "unet", torch_dtype=torch.float32).eval()
    ours = sdtune.UNet2DConditionModel.from_pretrained(str(folder / "unet"), dtype="float32", device="cpu")
    sample = random.standard_normal((2, theirs.config.in_channels, 16, 16), dtype=np.float32)
    context = random.standard_normal((2, 77, theirs.config.cross_attention_dim), dtype=np.float32)
    times = np.array([3, 800])
    with torch.inference_mode():
        want = theirs(torch.from_numpy(sample), torch.from_numpy(times), torch.from_numpy(context)).sample
        other = theirs(torch.from_numpy(sample), torch.from_numpy(times + 10), torch.from_numpy(context)).sample
    got = ours(sample, times, context)
    assert relative_error(got, want) < TOLERANCE < relative_error(got, other)
    vae = AutoencoderKL.from_pretrained(folder / "vae", torch_dtype=torch.float32).eval()
    our_vae = sdtune.AutoencoderKL.from_pretrained(str(folder / "vae"), dtype="float32", device="cpu")
    with torch.inference_mode():
        want = vae.decode(torch.from_numpy(sample)).sample
        other = vae.decode(torch.from_numpy(sample * 1.001)).sample
    assert relative_error(our_vae.decode(sample), want) < TOLERANCE < relative_error(our_vae.decode(sample), other)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two renders in the detail of 128 px."""
    folder = tmp_path_factory.mktemp("people") / "photos"
    assert run(["render", "--subject", "20", "--detail", "128", "--views", "2", "--size", "128", "--no-captions", "--output", str(folder)]).returncode == 0
    return folder


def test_portrait_128_trains_with_its_own_defaults(people: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    ended = run(["train", "--base", "portrait-128", "--images", str(people), "--output", str(output), "--max-train-steps", "1", "--device", "cpu",
                 "--num-class-images", "2", "--class-num-inference-steps", "1", "--report-to", "none"])
    assert ended.returncode == 0, ended.stderr
    assert "identity_classifier: portrait-judge-128" in (output / "config.yaml").read_text()


def test_a_lora_remembers_the_bundled_base_by_name(people: Path, tmp_path: Path) -> None:
    """Its folder is another one in each environment and container; it stood there where no base was given."""
    output = tmp_path / "run"
    ended = run(["train", "--method", "lora", "--images", str(people), "--output", str(output), "--max-train-steps", "1", "--device", "cpu",
                 "--num-class-images", "2", "--class-num-inference-steps", "1", "--report-to", "none", "--report-images", "0"])
    assert ended.returncode == 0, ended.stderr
    assert json.loads((output / "model" / "sdtune.json").read_text())["base"] == "portrait-128"
    ended = run(["sample", "--model", str(output), "--prompt", "sks person", "--steps", "1", "--device", "cpu",
                 "--output", str(tmp_path / "out")])
    assert ended.returncode == 0 and len(list((tmp_path / "out").glob("*.png"))) == 1, ended.stderr


def test_a_recognition_network_replaces_the_classifier_of_the_defaults(people: Path, tmp_path: Path) -> None:
    words = ["train", "--base", "portrait-128", "--images", str(people), "--output", str(tmp_path / "run"), "--device", "cpu",
             "--identity-steps", "1", "--identity-model", "nowhere.onnx"]
    ended = run(words)
    assert ended.returncode == 2 and "is no face recognition network" in ended.stderr and "replaces" not in ended.stderr
    ended = run([*words, "--identity-classifier", "portrait-judge-128"])
    assert ended.returncode == 2 and "replaces the portrait classifier" in ended.stderr


def test_a_file_of_the_program_s_name_in_the_working_directory_brings_no_base(tmp_path: Path) -> None:
    """As where PATH finds the program: its first word is then a bare name."""
    (tmp_path / SDTUNE.name).write_text("")
    (tmp_path / "share" / "sdtune" / "models" / "portrait-64").mkdir(parents=True)
    words = ["sample", "--model", "portrait-64", "--prompt", "a photo", "--steps", "1", "--device", "cpu", "--output", "out"]
    ended = subprocess.run([SDTUNE.name, *words], executable=SDTUNE, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"},
                           capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert list((tmp_path / "out").glob("*.png"))
