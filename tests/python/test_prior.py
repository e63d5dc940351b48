"""Class images: generated once with a seed each, reused when nothing changed, generated anew when something did."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from program import SDTUNE, run
from tiny_models import make_pipeline
from training_reference import write_base, write_photos


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A base and three photos."""
    folder = tmp_path_factory.mktemp("prior")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base")
    return base, write_photos(folder / "photos", 3, seed=0)


def train(material: tuple[Path, Path], output: Path, *options: str) -> list[dict[str, float]]:
    """Two steps with four class images; the lines of metrics.jsonl."""
    base, photos = material
    ended = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
                 "--with-prior-preservation", "--num-class-images", "4", "--train-batch-size", "2",
                 "--max-train-steps", "2", "--learning-rate", "1e-4", "--report-to", "none", *options])
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def class_images(output: Path) -> dict[str, str]:
    """Name -> hash."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((output / "class_images").glob("*.png"))}


def test_class_images_are_generated_once_and_reused(material: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "run"
    first_lines = train(material, output)
    first = class_images(output)
    assert len(first) == 4
    assert len(set(first.values())) == 4
    written = {path: path.stat().st_mtime_ns for path in (output / "class_images").glob("*.png")}
    assert train(material, output, "--overwrite")[-1]["loss"] == first_lines[-1]["loss"]
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_another_prompt_generates_anew(material: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "run"
    train(material, output)
    first = class_images(output)
    train(material, output, "--overwrite", "--class-prompt", "a photo of a dog")
    assert set(class_images(output).values()) - set(first.values())


def test_steps_and_guidance_are_the_ones_asked_for(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Without guidance the images are another set, half the work, and a run resumes only with its own."""
    output = tmp_path / "run"
    train(material, output, "--class-num-inference-steps", "3")
    first = class_images(output)
    train(material, output, "--overwrite", "--class-num-inference-steps", "3", "--class-guidance-scale", "1",
          "--checkpointing-steps", "1")
    made = json.loads((output / "class_images" / "manifest.json").read_text())
    assert made["sampler"]["steps"] == 3 and made["sampler"]["guidance_scale"] == 1
    assert len(set(class_images(output).values()) - set(first.values())) == 4
    base, photos = material
    other = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
                 "--with-prior-preservation", "--num-class-images", "4", "--train-batch-size", "2", "--max-train-steps", "3",
                 "--learning-rate", "1e-4", "--class-num-inference-steps", "3", "--resume-from-checkpoint", "latest"])
    assert other.returncode == 2 and "class_guidance_scale" in other.stderr, other.stderr


@pytest.mark.parametrize(("family", "guidance"), [("sd1", 7.5), ("sdxl", 5.0)])
def test_guidance_is_the_default_of_the_pipeline(family: str, guidance: float, tmp_path: Path) -> None:
    """diffusers': 7.5, and 5.0 of StableDiffusionXLPipeline; a resumed run that had 7.5 recorded keeps it."""
    base = write_base(make_pipeline(family, tmp_path / "vocabulary"), tmp_path / "base")
    material, output = (base, write_photos(tmp_path / "photos", 3, seed=0)), tmp_path / "run"
    default = inspect.signature(type(make_pipeline(family, tmp_path / "again")).__call__).parameters["guidance_scale"].default
    assert default == guidance
    train(material, output, "--class-num-inference-steps", "2")
    manifest = output / "class_images" / "manifest.json"
    assert json.loads(manifest.read_text())["sampler"]["guidance_scale"] == guidance
    options = ("--class-num-inference-steps", "2", "--checkpointing-steps", "1")
    train(material, output, "--overwrite", "--class-guidance-scale", "7.5", *options)
    assert len(train(material, output, *options, "--resume-from-checkpoint", "latest")) == 2
    assert json.loads(manifest.read_text())["sampler"]["guidance_scale"] == 7.5
    train(material, output, "--overwrite", "--class-guidance-scale", "4", *options)
    other = run(["train", "--base", str(base), "--images", str(material[1]), "--output", str(output), "--device", "cpu",
                 "--with-prior-preservation", "--num-class-images", "4", "--train-batch-size", "2", "--max-train-steps", "3",
                 "--learning-rate", "1e-4", *options, "--resume-from-checkpoint", "latest"])
    assert other.returncode == 2 and "class_guidance_scale" in other.stderr, other.stderr


def test_the_loss_is_the_sum_of_its_parts(material: tuple[Path, Path], tmp_path: Path) -> None:
    lines = train(material, tmp_path / "run", "--prior-loss-weight", "0.5", "--snr-gamma", "5")
    assert len(lines) == 2
    for line in lines:
        assert line["loss"] == pytest.approx(line["loss_instance"] + 0.5 * line["loss_prior"], rel=1e-6)
        assert line["loss_prior"] != line["loss_instance"]


def test_a_stop_while_generating_keeps_what_was_generated(material: tuple[Path, Path], tmp_path: Path) -> None:
    base, photos = material
    output = tmp_path / "run"
    process = subprocess.Popen(
        [str(SDTUNE), "train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
         "--with-prior-preservation", "--num-class-images", "500", "--sample-batch-size", "1", "--max-train-steps", "1"],
        text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while not class_images(output) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    drawn = class_images(output)
    assert 0 < len(drawn) < 500
    lines = train(material, output, "--resume-from-checkpoint", "auto")
    assert len(lines) == 2
    assert drawn.items() <= class_images(output).items()
