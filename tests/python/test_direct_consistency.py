"""`dco_beta`, Direct Consistency Optimization: runs that are resumed, split or in bfloat16.

That the steps are right, test_training.py and test_lora_training.py compare with the paper's loss.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from program import run
from test_training import CONSISTENT, LOSS_TOLERANCE, UPDATE_TOLERANCE, compare, losses_of
from training_reference import Reference, Settings, small_material

MODEL = "model/unet/diffusion_pytorch_model.safetensors"


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return small_material(tmp_path_factory.mktemp("consistency"), photos=3)


def train(material: tuple[Path, Path], output: Path, settings: Settings, *options: str) -> Path:
    base, photos = material
    ended = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu", "--report-to", "none",
                 *settings.words(), *options])
    assert ended.returncode == 0, ended.stderr
    return output


def test_what_it_is_compared_with_would_show(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Mutants of the plain loop: without it, with another beta, and with a base that is trained along."""
    base, photos = material
    output = train(material, tmp_path / "run", CONSISTENT)
    right = Reference(base, photos, None, CONSISTENT)
    loss_error, weight_error = compare(output, right.run())
    assert loss_error <= LOSS_TOLERANCE and weight_error <= UPDATE_TOLERANCE
    along = Reference(base, photos, None, CONSISTENT)
    along.frozen = (along.pipe.unet, along.encoders)
    mutants = {"without": Reference(base, photos, None, replace(CONSISTENT, dco_beta=None)),
               "half of beta": Reference(base, photos, None, replace(CONSISTENT, dco_beta=10.0)), "trained along": along}
    errors = {name: compare(output, mutant.run()) for name, mutant in mutants.items()}
    print(errors)
    assert min(loss for loss, _ in errors.values()) > 10 * LOSS_TOLERANCE, errors
    assert min(update for _, update in errors.values()) > 5 * UPDATE_TOLERANCE, errors


def test_a_resumed_run_is_compared_with_the_base_and_not_with_its_checkpoint(material: tuple[Path, Path], tmp_path: Path) -> None:
    settings = replace(CONSISTENT, train_text_encoder=True)
    whole = train(material, tmp_path / "whole", settings)
    parted = tmp_path / "parted"
    train(material, parted, replace(settings, max_train_steps=7), "--checkpointing-steps", "5")
    train(material, parted, settings, "--resume-from-checkpoint", "latest")
    assert losses_of(parted) == losses_of(whole)
    assert (parted / MODEL).read_bytes() == (whole / MODEL).read_bytes()
    refused = run(["train", "--base", str(material[0]), "--images", str(material[1]), "--output", str(parted), "--device", "cpu",
                   *replace(settings, max_train_steps=30, dco_beta=5.0).words(), "--resume-from-checkpoint", "latest"])
    assert refused.returncode == 2 and "dco_beta" in refused.stderr, refused.stderr


def test_micro_batches_recomputation_and_chunks_change_nothing(material: tuple[Path, Path], tmp_path: Path) -> None:
    settings = replace(CONSISTENT, train_batch_size=4, train_text_encoder=True)
    whole = losses_of(train(material, tmp_path / "whole", settings))
    split = losses_of(train(material, tmp_path / "split", settings, "--micro-batch", "1", "--gradient-checkpointing"))
    assert split == pytest.approx(whole, rel=10 * LOSS_TOLERANCE)
    lost = losses_of(train(material, tmp_path / "lost", replace(settings, train_batch_size=3)))
    assert lost != pytest.approx(whole, rel=100 * LOSS_TOLERANCE), "one of the four parts is left out"


def test_bfloat16_begins_with_the_losses_as_they_are(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Before the first update every weight is 1, in each number format: the base is the model."""
    for precision in ("no", "bf16"):
        losses = [losses_of(train(material, tmp_path / f"{precision} {beta}", replace(CONSISTENT, max_train_steps=2, dco_beta=beta), "--mixed-precision",
                                  precision)) for beta in (None, 1000.0)]
        assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-3)
        assert losses[0][1] != losses[1][1]
