"""Zero terminal SNR and a text encoder that stops: twenty steps of the program against the plain loop, and their edges."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import diffusers
import numpy as np
import pytest
import sdtune
import torch
from program import SDTUNE, run
from safetensors.torch import load_file
from test_ranks import launched
from training_reference import Reference, Result, Settings, base_maker, update_error, write_photos

LOSS_TOLERANCE = 1e-5
UPDATE_TOLERANCE = 1e-3
FILES = {"unet": "unet/diffusion_pytorch_model.safetensors", "text_encoder": "text_encoder/model.safetensors",
         "text_encoder_2": "text_encoder_2/model.safetensors"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos") / "instance", 5, seed=0)


@pytest.fixture(scope="module")
def base_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A base of each family, made once."""
    return base_maker(tmp_path_factory.mktemp("base"), block_out_channels=(16, 32), layers_per_block=1)


def words(base: Path, photos: Path, output: Path, settings: Settings, *options: str) -> list[str]:
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--report-to", "none", *settings.words(), *options]


def train(base: Path, photos: Path, output: Path, settings: Settings, *options: str) -> Path:
    ended = run(words(base, photos, output, settings, *options))
    assert ended.returncode == 0, ended.stderr
    return output


def metrics(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def weights_of(output: Path, names: list[str]) -> dict[str, torch.Tensor]:
    """The trained tensors of the result, by the reference's names: transformers 5 drops CLIPTextModel's prefix."""
    parts = {name.split(".")[0] for name in names}
    stored = {f"{part}.{key}".replace(".text_model.", "."): tensor
              for part in parts for key, tensor in load_file(output / "model" / FILES[part]).items()}
    return {name: stored[name.replace(".text_model.", ".")] for name in names}


def compare(output: Path, reference: Result) -> tuple[float, float]:
    """The largest relative difference of a loss, and the error of the update."""
    losses = [line["loss"] for line in metrics(output)]
    loss_error = max(abs(ours - theirs) / theirs for ours, theirs in zip(losses, reference.losses, strict=True))
    return loss_error, update_error(weights_of(output, list(reference.after)), reference)


# A text encoder that is trained in a share of the steps

STOPPING = {
    "SD 1": ("sd1", Settings(learning_rate=1e-4, text_encoder_lr=2e-5, train_text_encoder=True, adam_weight_decay=0.1,
                             train_text_encoder_frac=0.3)),
    "SD 1 averaged": ("sd1", Settings(learning_rate=1e-4, train_text_encoder=True, train_text_encoder_frac=0.3,
                                      use_ema=True, ema_decay=0.9)),
    "SDXL, its own rate": ("sdxl", Settings(learning_rate=1e-4, text_encoder_lr=3e-5, train_text_encoder=True,
                                            adam_weight_decay=0.1, train_text_encoder_frac=0.4)),
}


@pytest.mark.parametrize("case", STOPPING)
def test_a_text_encoder_that_stops_equals_the_plain_loop(case: str, base_of: Callable[[str], Path], photos: Path,
                                                         tmp_path: Path) -> None:
    family, settings = STOPPING[case]
    base = base_of(family)
    output = train(base, photos, tmp_path / "run", settings)
    loss_error, weight_error = compare(output, Reference(base, photos, None, settings).run())
    print(f"{case}: loss {loss_error:.1e}, update {weight_error:.1e}")
    assert loss_error <= LOSS_TOLERANCE
    assert weight_error <= UPDATE_TOLERANCE
    if case == "SD 1":
        later = replace(settings, train_text_encoder_frac=settings.train_text_encoder_frac + 0.05)
        assert compare(output, Reference(base, photos, None, later).run())[1] > UPDATE_TOLERANCE
    stop = round(settings.train_text_encoder_frac * settings.max_train_steps)
    rates = [line["text_encoder_lr"] for line in metrics(output)]
    rate = settings.text_encoder_lr or settings.learning_rate
    assert rates == pytest.approx([rate] * stop + [0.0] * (settings.max_train_steps - stop))


def test_two_ranks_stop_it_together(base_of: Callable[[str], Path], photos: Path, tmp_path: Path) -> None:
    """Also their sums: from then on no gradient of the text encoder comes on either rank."""
    settings = STOPPING["SD 1 averaged"][1]
    of_a_rank = words(base_of("sd1"), photos, tmp_path / "run", replace(settings, train_batch_size=1))
    ended = launched(2, [str(SDTUNE), *of_a_rank])
    assert ended.returncode == 0, ended.stderr
    loss_error, weight_error = compare(tmp_path / "run", Reference(base_of("sd1"), photos, None, settings).run())
    print(f"loss {loss_error:.1e}, update {weight_error:.1e}")
    assert loss_error <= LOSS_TOLERANCE
    assert weight_error <= UPDATE_TOLERANCE


@pytest.mark.parametrize("saved_at", [2, 4])
def test_a_stopped_text_encoder_resumes_to_the_byte(saved_at: int, base_of: Callable[[str], Path], photos: Path,
                                                    tmp_path: Path) -> None:
    """From a checkpoint before and after the stop at step 3."""
    settings = replace(STOPPING["SD 1 averaged"][1], max_train_steps=6, train_text_encoder_frac=0.5)
    options = ("--checkpointing-steps", str(saved_at), "--checkpoints-total-limit", "1")
    whole = train(base_of("sd1"), photos, tmp_path / "whole", settings, *options)
    stopped = shutil.copytree(whole, tmp_path / "stopped")
    shutil.rmtree(stopped / "model")
    train(base_of("sd1"), photos, stopped, settings, *options, "--resume-from-checkpoint", "latest")
    for part in ("unet", "text_encoder"):
        assert (whole / "model" / FILES[part]).read_bytes() == (stopped / "model" / FILES[part]).read_bytes()
    for change in ({"train_text_encoder_frac": 0.4}, {"max_train_steps": 8}):
        refused = run(words(base_of("sd1"), photos, stopped, replace(settings, **change), "--resume-from-checkpoint",
                            "latest"))
        assert refused.returncode == 2 and next(iter(change)) in refused.stderr, refused.stderr


# Zero terminal SNR

RESCALED = Settings(learning_rate=1e-4, rescale_betas_zero_snr=True, min_timestep=700)


@pytest.mark.parametrize("snr_gamma", [None, 5.0])
def test_zero_terminal_snr_equals_the_plain_loop(snr_gamma: float | None, base_of: Callable[[str], Path], photos: Path,
                                                 tmp_path: Path) -> None:
    settings = replace(RESCALED, snr_gamma=snr_gamma)
    output = train(base_of("sd2"), photos, tmp_path / "run", settings)
    loss_error, weight_error = compare(output, Reference(base_of("sd2"), photos, None, settings).run())
    plain = Reference(base_of("sd2"), photos, None, replace(settings, rescale_betas_zero_snr=False)).run()
    mutant = compare(output, plain)
    print(f"loss {loss_error:.1e}, update {weight_error:.1e}; not rescaled {mutant[0]:.1e}, {mutant[1]:.1e}")
    assert loss_error <= LOSS_TOLERANCE < mutant[0]
    assert weight_error <= UPDATE_TOLERANCE < mutant[1]


def latents(output: Path, **changes: object) -> tuple[np.ndarray, np.ndarray]:
    """(ours, diffusers') of the exported model as each loads it, diffusers' scheduler with `changes`."""
    theirs = diffusers.DiffusionPipeline.from_pretrained(output / "model")
    theirs.set_progress_bar_config(disable=True)
    if changes:
        theirs.scheduler = type(theirs.scheduler).from_config(theirs.scheduler.config, **changes)
    expected = theirs("a photo of sks person", generator=torch.Generator().manual_seed(4), num_inference_steps=6,
                      output_type="latent").images.numpy()
    ours = sdtune.StableDiffusionPipeline.from_pretrained(str(output / "model"), dtype="float32", device="cpu")
    got = ours("a photo of sks person", seed=4, num_inference_steps=6, output_type="latent").images
    return got, expected


def test_the_result_is_drawn_from_pure_noise_in_diffusers_too(base_of: Callable[[str], Path], photos: Path,
                                                              tmp_path: Path) -> None:
    output = train(base_of("sd2"), photos, tmp_path / "run", replace(RESCALED, max_train_steps=2))
    written = json.loads((output / "model/scheduler/scheduler_config.json").read_text())
    assert written["rescale_betas_zero_snr"] is True and written["timestep_spacing"] == "trailing"
    got, expected = latents(output)
    assert np.linalg.norm(got - expected) <= 1e-4 * np.linalg.norm(expected)
    for change in ({"rescale_betas_zero_snr": False}, {"timestep_spacing": "leading"}):
        _, other = latents(output, **change)
        assert np.linalg.norm(got - other) > 1e-3 * np.linalg.norm(other), change


def with_scheduler(base: Path, folder: Path, **changes: object) -> Path:
    """A copy of the base with keys of its scheduler changed, and its class where `_class_name` is among them."""
    shutil.copytree(base, folder)
    file = folder / "scheduler/scheduler_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    if "_class_name" in changes:
        index = folder / "model_index.json"
        index.write_text(json.dumps({**json.loads(index.read_text()), "scheduler": ["diffusers", changes["_class_name"]]}))
    return folder


def test_a_scheduler_that_knows_no_rescaled_betas_becomes_ddim(base_of: Callable[[str], Path], photos: Path,
                                                               tmp_path: Path) -> None:
    base = with_scheduler(base_of("sd2"), tmp_path / "base", _class_name="PNDMScheduler")
    ended = run(words(base, photos, tmp_path / "run", replace(RESCALED, max_train_steps=1)))
    assert ended.returncode == 0, ended.stderr
    assert "PNDMScheduler knows no zero terminal SNR" in ended.stderr
    index = json.loads((tmp_path / "run/model/model_index.json").read_text())
    assert index["scheduler"] == ["diffusers", "DDIMScheduler"]
    got, expected = latents(tmp_path / "run")
    assert np.linalg.norm(got - expected) <= 1e-4 * np.linalg.norm(expected)


# What is refused

REFUSED = {
    "epsilon": ("sd1", ["--rescale-betas-zero-snr"], ["rescale_betas_zero_snr", "epsilon", "allowed: false"]),
    "not a bool": ("sd2", ["--rescale-betas-zero-snr=maybe"], ["rescale-betas-zero-snr", "maybe", "true"]),
    "no share": ("sd1", ["--train-text-encoder-frac", "0"], ["train-text-encoder-frac", "0", "0 < x <= 1"]),
    "more than all": ("sd1", ["--train-text-encoder-frac", "1.5"], ["train-text-encoder-frac", "1.5", "0 < x <= 1"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_by_name(case: str, base_of: Callable[[str], Path], photos: Path,
                                           tmp_path: Path) -> None:
    family, options, said = REFUSED[case]
    ended = run(["train", "--base", str(base_of(family)), "--images", str(photos), "--output", str(tmp_path / "run"),
                 *options])
    assert ended.returncode == 2, ended.stderr
    for text in said:
        assert text in ended.stderr, (text, ended.stderr)
    assert not (tmp_path / "run").exists()
