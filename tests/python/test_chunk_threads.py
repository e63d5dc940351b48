"""Threads of a CPU that each train on samples of their own: the same numbers as one thread within rounding, and the same
bytes each time. Every other test trains with one thread."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
import torch
from program import run
from safetensors.torch import load_file
from training_reference import small_material

MODEL = "model/unet/diffusion_pytorch_model.safetensors"
LORA = "pytorch_lora_weights.safetensors"
UPDATE_TOLERANCE = 1e-3  # of a run of these steps; leaving out one sample of each step changes more than a tenth
# MKL takes no more threads than cores otherwise, and LibTorch as many as MKL.
ALL_THREADS = {"MKL_DYNAMIC": "FALSE"}
STEPS = 12

CASES = {
    "all weights": [],
    "text encoder": ["--train-text-encoder"],
    "class images": ["--with-prior-preservation", "--num-class-images", "3", "--class-prompt", "a face",
                                     "--class-num-inference-steps", "1", "--train-text-encoder"],
    "LoRA with dropout": ["--method", "lora", "--lora-dropout", "0.3", "--rank", "3", "--train-text-encoder"],
    "bf16": ["--mixed-precision", "bf16"],
}


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small base and five photos."""
    return small_material(tmp_path_factory.mktemp("chunks"), photos=5)


def train(material: tuple[Path, Path], output: Path, threads: int, *options: str) -> Path:
    base, photos = material
    ended = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
                 "--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate", "1e-3",
                 "--train-batch-size", "5", "--max-train-steps", str(STEPS), "--checkpointing-steps", "5", "--report-to", "none",
                 *options], OMP_NUM_THREADS=str(threads), **ALL_THREADS)
    assert ended.returncode == 0, ended.stderr
    return output


def weights(output: Path) -> dict[str, torch.Tensor]:
    file = output / "model" / LORA
    return load_file(file if file.exists() else output / MODEL)


def losses(output: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


def update_error(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor], start: dict[str, torch.Tensor]) -> float:
    """|got - want| / |want - start| over all tensors together."""
    difference = sum((got[name].double() - want[name].double()).square().sum().item() for name in want)
    moved = sum((want[name].double() - start.get(name, torch.zeros(())).double()).square().sum().item() for name in want)
    return (difference / moved) ** 0.5


@pytest.mark.parametrize("case", CASES)
def test_three_threads_train_what_one_does(case: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    options = CASES[case]
    one = train(material, tmp_path / "one", 1, *options)
    class_images = ["--class-data-dir", str(tmp_path / "one" / "class_images")] if "--class-prompt" in options else []
    three = train(material, tmp_path / "three", 3, *options, *class_images)
    start = {} if "lora" in options else load_file(material[0] / MODEL.removeprefix("model/"))
    error = update_error(weights(three), weights(one), start)
    print(f"{case}: update {error:.1e}, first losses {losses(one)[0]:.6f} {losses(three)[0]:.6f}")
    is_exact = case != "bf16"  # whose rounding differs from one batch to another
    assert losses(three)[0] == pytest.approx(losses(one)[0], rel=1e-5 if is_exact else 5e-3)
    assert error <= (UPDATE_TOLERANCE if is_exact else 0.3)


def test_a_repeated_and_a_resumed_run_have_the_same_bytes(material: tuple[Path, Path], tmp_path: Path) -> None:
    options = ["--train-text-encoder"]
    whole = train(material, tmp_path / "whole", 3, *options)
    again = train(material, tmp_path / "again", 3, *options)
    digest = hashlib.sha256((whole / MODEL).read_bytes()).hexdigest()
    assert hashlib.sha256((again / MODEL).read_bytes()).hexdigest() == digest
    resumed = train(material, again, 3, *options, "--resume-from-checkpoint", str(again / "checkpoints" / "step-00000005"))
    assert hashlib.sha256((resumed / MODEL).read_bytes()).hexdigest() == digest


def test_another_number_of_threads_is_warned_of(material: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "run"
    train(material, output, 3)
    command = ["train", "--base", str(material[0]), "--images", str(material[1]), "--output", str(output), "--device", "cpu",
               "--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate", "1e-3", "--train-batch-size", "5",
               "--checkpointing-steps", "5", "--report-to", "none", "--resume-from-checkpoint", "latest"]
    same = run([*command, "--max-train-steps", str(STEPS + 1)], OMP_NUM_THREADS="3", **ALL_THREADS)
    other = run([*command, "--max-train-steps", str(STEPS + 2)], OMP_NUM_THREADS="2", **ALL_THREADS)
    assert same.returncode == other.returncode == 0, same.stderr + other.stderr
    assert "warning: device: is now" not in same.stderr
    assert re.search(r"warning: device: is now cpu \(.*, 2 threads,.*\), and was cpu \(.*, 3 threads,", other.stderr)
    record = json.loads((output / "run.json").read_text())
    assert [re.search(r"(\d) threads", attempt["device"]).group(1) for attempt in record["attempts"]] == ["3", "3", "2"]


def test_a_sample_left_out_would_show(material: tuple[Path, Path], tmp_path: Path) -> None:
    """The mutant beside the tolerance: four of the five photos of each step."""
    whole = train(material, tmp_path / "whole", 1)
    fewer = train(material, tmp_path / "fewer", 3, "--train-batch-size", "4")
    start = load_file(material[0] / MODEL.removeprefix("model/"))
    assert update_error(weights(fewer), weights(whole), start) > 100 * UPDATE_TOLERANCE
