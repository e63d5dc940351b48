"""Ranks that share optimizer states and gradients out: the same numbers, checkpoints that any number of ranks resumes.

The C++ tests (tests/train/shard) have every optimizer over 50 steps of a small net; here the real program trains.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from test_ranks import environment, launched, relative, start_ranks, train_command, weights_of
from tiny_models import make_pipeline
from training_reference import write_base, write_photos

STEPS = 8
SHARDS = ("none", "optimizer", "gradients")


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Base and photos."""
    folder = tmp_path_factory.mktemp("material")
    return write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "sd1"), write_photos(folder / "photos", 5, 0)


def train(material: tuple[Path, Path], output: Path, ranks: int, *options: str) -> subprocess.CompletedProcess[str]:
    """The UNet of `ranks` ranks; the last of two equal options counts."""
    command = train_command(*material, output, "--seed", "3", *options)
    if ranks > 1:
        return launched(ranks, command)
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)


def trained(material: tuple[Path, Path], output: Path, ranks: int, *options: str) -> Path:
    """The run's folder."""
    done = train(material, output, ranks, *options)
    assert done.returncode == 0, done.stderr
    return output


def hashes(output: Path) -> dict[str, str]:
    """Of what the run learnt: the model's weights and those of its newest checkpoint."""
    newest = max((output / "checkpoints").iterdir())
    files = [*newest.glob("*.safetensors"), *(output / "model").rglob("*.safetensors")]
    return {str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)
            if path.name != f"{output.name}.safetensors"}  # a LoRA in kohya's format, whose metadata has the time


VARIANTS = {
    "adamw": ["--use-ema", "--ema-decay", "0.9"],
    "adamw bf16": ["--mixed-precision", "bf16", "--use-ema", "--train-batch-size", "2", "--micro-batch", "2"],
    "adamw_8bit lora": ["--optimizer", "adamw_8bit", "--method", "lora", "--rank", "64", "--mixed-precision", "bf16"],
    "adafactor text": ["--optimizer", "adafactor", "--train-text-encoder", "--train-text-encoder-frac", "0.5"],
    "lion lora": ["--optimizer", "lion", "--method", "lora", "--use-ema"],
    "prodigy": ["--optimizer", "prodigy", "--learning-rate", "1"],
}
LONG = ("adafactor text", "lion lora", "prodigy")  # every optimizer is in tests/train/shard


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in VARIANTS])
def test_two_ranks_that_share_have_the_bits_of_two_that_do_not(name: str, material: tuple[Path, Path],
                                                               tmp_path: Path) -> None:
    """Model, averages, masters and states in the checkpoint, byte by byte; checkpoints name no rank."""
    options = ["--max-train-steps", str(STEPS), "--checkpointing-steps", str(STEPS - 2), *VARIANTS[name]]
    found = {shard: hashes(trained(material, tmp_path / shard / "run", 2, "--shard", shard, *options)) for shard in SHARDS}
    assert len(found["none"]) >= 3
    assert found["optimizer"] == found["none"]
    assert found["gradients"] == found["none"]


def test_another_start_is_told_apart(material: tuple[Path, Path], tmp_path: Path) -> None:
    """The mutant of the test above."""
    options = ["--max-train-steps", str(STEPS), "--checkpointing-steps", str(STEPS - 2)]
    whole = trained(material, tmp_path / "whole", 2, *options)
    other = trained(material, tmp_path / "other", 2, *options, "--adam-beta1", "0.8999")
    assert hashes(whole) != hashes(other)


def check_against_one_process(material: tuple[Path, Path], folder: Path, steps: int, several: tuple[int, ...], photos: int) -> None:
    """Ranks of each sharing after `steps` at learning rate 1e-4, beside one process with as many photos a step."""
    options = ["--max-train-steps", str(steps)]
    alone = weights_of(trained(material, folder / "alone", 1, *options, "--gradient-accumulation-steps", str(photos)))
    other = weights_of(trained(material, folder / "mutant", 1, *options, "--gradient-accumulation-steps", str(photos),
                               "--seed", "4"))
    assert relative(other, alone) > 1e-5
    for ranks in several:
        plain = weights_of(trained(material, folder / f"plain{ranks}", ranks, *options, "--shard", "none",
                                   "--gradient-accumulation-steps", str(photos // ranks)))
        for shard in ("optimizer", "gradients"):
            weights = weights_of(trained(material, folder / f"{shard}{ranks}", ranks, *options, "--shard", shard,
                                         "--gradient-accumulation-steps", str(photos // ranks)))
            print(f"{ranks} ranks, {shard}: {relative(weights, alone):.1e} of one process, "
                  f"{relative(weights, plain):.1e} of DDP")
            assert relative(weights, alone) <= 1e-5
            assert relative(weights, plain) <= 1e-6
            if shard == "optimizer" and ranks == 2:
                assert np.array_equal(weights, plain)


def test_ranks_that_share_equal_one_process(material: tuple[Path, Path], tmp_path: Path) -> None:
    """SDTUNE_FIFTY_STEPS=1: 50 steps on 2, 3 and 4 ranks, which takes a quarter of an hour; pytest's -s prints the figures."""
    if os.environ.get("SDTUNE_FIFTY_STEPS"):
        check_against_one_process(material, tmp_path, 50, (2, 3, 4), 12)
    else:
        check_against_one_process(material, tmp_path, STEPS, (2, 4), 4)


def resumed(material: tuple[Path, Path], output: Path, ranks: int, steps: int, *options: str) -> Path:
    """The same run on other ranks."""
    return trained(material, output, ranks, "--max-train-steps", str(steps), "--checkpointing-steps", "2",
                   "--resume-from-checkpoint", "latest", *options)


@pytest.mark.parametrize("shard", [pytest.param("optimizer", marks=pytest.mark.long), "gradients"])
def test_a_run_goes_on_with_other_ranks(shard: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    """1 -> 2 -> 4 -> 1 ranks, 2 steps each, starting with 4 micro-batches a step: the accumulation shrinks and grows."""
    common = ["--use-ema", "--ema-decay", "0.9", "--gradient-accumulation-steps", "4", "--checkpointing-steps", "2"]
    whole = trained(material, tmp_path / "whole", 1, *common, "--max-train-steps", "8")
    # The end of a run has no checkpoint, so each part goes a step beyond the one that the next part starts from.
    moved = trained(material, tmp_path / "moved", 1, *common, "--max-train-steps", "3", "--shard", shard)
    for ranks, steps, accumulation in ((2, 4, 2), (4, 6, 1), (1, 8, 4)):
        resumed(material, moved, ranks, steps + 1 if ranks > 1 else steps, *common, "--shard", shard)
        assert f"gradient_accumulation_steps: {accumulation}" in (moved / "config.yaml").read_text()
    assert relative(weights_of(moved), weights_of(whole)) <= 1e-5
    steps = [json.loads(line)["step"] for line in (moved / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 9))
    other = trained(material, tmp_path / "other", 1, *common, "--max-train-steps", "8", "--seed", "4")  # the mutant
    assert relative(weights_of(other), weights_of(whole)) > 1e-5


def test_any_layout_resumes_any_other(material: tuple[Path, Path], tmp_path: Path) -> None:
    """On the same ranks the bits are those of the undisturbed run, whichever layout wrote the checkpoint."""
    options = ["--max-train-steps", "6", "--checkpointing-steps", "3", "--use-ema", "--ema-decay", "0.9"]
    whole = trained(material, tmp_path / "whole", 2, *options)
    step = whole / "checkpoints" / "step-00000003"
    for shard in ("none", "gradients"):
        other = trained(material, tmp_path / shard, 2, *options, "--shard", shard, "--resume-from-checkpoint", str(step))
        assert (other / "model").is_dir()
        for name, file in ((path.name, path) for path in (whole / "model").rglob("*.safetensors")):
            same = other / file.relative_to(whole)
            assert np.all([np.array_equal(tensor, load_file(same)[key]) for key, tensor in load_file(file).items()]), name


def test_ranks_that_cannot_make_the_batch_are_refused(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Exit 2 with the numbers, and what would fit."""
    output = trained(material, tmp_path / "run", 1, "--gradient-accumulation-steps", "4", "--max-train-steps", "3",
                     "--checkpointing-steps", "2")
    ranks = start_ranks(3, train_command(*material, output, "--seed", "3", "--gradient-accumulation-steps", "4",
                                         "--max-train-steps", "6", "--resume-from-checkpoint", "latest"))
    errors = [rank.communicate(timeout=60)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [2, 2, 2], errors
    assert "effective batch of 4" in errors[0]
    assert "3 ranks" in errors[0]
    assert "4 ranks with gradient_accumulation_steps 1" in errors[0]


def test_bfloat16_on_the_wire_changes_little(material: tuple[Path, Path], tmp_path: Path) -> None:
    """And something: else nothing was rounded."""
    options = ["--max-train-steps", str(STEPS), "--learning-rate", "1e-4"]
    exact = weights_of(trained(material, tmp_path / "exact", 2, *options))
    found = weights_of(trained(material, tmp_path / "rounded", 2, *options, "--comm-hook", "bf16"))
    assert 1e-9 < relative(found, exact) <= 1e-2


def test_the_share_is_said(material: tuple[Path, Path], tmp_path: Path) -> None:
    """In the first lines of the run."""
    done = train(material, tmp_path / "run", 2, "--max-train-steps", "1")
    assert done.returncode == 0, done.stderr
    assert "MiB of optimizer states on this rank, of " in done.stdout + done.stderr
