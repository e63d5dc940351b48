"""Twenty optimizer steps of the program against a plain PyTorch loop over diffusers' modules with the same draws."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from diffusers.optimization import get_scheduler
from program import run
from safetensors.torch import load_file
from training_reference import Reference, Result, Settings, base_maker, update_error, write_photos

LOSS_TOLERANCE = 1e-5
UPDATE_TOLERANCE = 1e-3
FILES = {"unet": "unet/diffusion_pytorch_model.safetensors", "text_encoder": "text_encoder/model.safetensors",
         "text_encoder_2": "text_encoder_2/model.safetensors"}
CONSISTENT = Settings(learning_rate=1e-4, dco_beta=20.0)
DECAYING = Settings(learning_rate=1e-4, adam_weight_decay=0.1, max_grad_norm=0.1)
CASES = {
    "unet": ("sd1", Settings()),
    "decay": ("sd1", DECAYING),
    "accumulation": ("sd1", Settings(learning_rate=1e-4, train_batch_size=1, gradient_accumulation_steps=4)),
    "text encoder": ("sd1", Settings(learning_rate=1e-4, text_encoder_lr=2e-5, train_text_encoder=True)),
    "prior and min-SNR": ("sd1", Settings(learning_rate=1e-4, with_prior_preservation=True, prior_loss_weight=0.7,
                                          snr_gamma=5.0)),
    "v-prediction and min-SNR": ("sd2", Settings(learning_rate=1e-4, snr_gamma=5.0)),
    "SDXL with text encoders": ("sdxl", Settings(learning_rate=1e-4, train_text_encoder=True)),
    "noise offset and input perturbation": ("sd1", Settings(learning_rate=1e-4, noise_offset=0.1,
                                                            input_perturbation=0.1)),
    "input perturbation of v": ("sd2", Settings(learning_rate=1e-4, input_perturbation=0.2)),
    "caption dropout with prior": ("sd1", Settings(learning_rate=1e-4, caption_dropout_rate=0.4,
                                                   with_prior_preservation=True)),
    "caption dropout, text encoders": ("sdxl", Settings(learning_rate=1e-4, caption_dropout_rate=0.4,
                                                        train_text_encoder=True)),
    "range of timesteps": ("sd1", Settings(learning_rate=1e-4, min_timestep=200, max_timestep=600)),
    "Huber by snr": ("sd1", Settings(learning_rate=1e-4, loss_type="huber", huber_c=0.05)),
    "smooth L1, exponential, min-SNR": ("sd2", Settings(learning_rate=1e-4, loss_type="smooth_l1",
                                                        huber_schedule="exponential", snr_gamma=5.0)),
    "Huber, constant, with prior": ("sd1", Settings(learning_rate=1e-4, loss_type="huber", huber_c=0.2,
                                                    huber_schedule="constant", with_prior_preservation=True)),
    "attention of UNet and text encoder": ("sd1", Settings(learning_rate=1e-4, train_text_encoder=True, trainable_layers=(
        "to_q", "to_k", "to_v", "to_out.0", "q_proj", "k_proj", "v_proj", "out_proj"))),
    "cross-attention of the UNet": ("sdxl", Settings(learning_rate=1e-4, trainable_layers=("attn2.to_k", "attn2.to_v"))),
    "direct consistency": ("sd1", CONSISTENT),
    "direct consistency, text encoder, prior": ("sd1", replace(CONSISTENT, train_text_encoder=True, with_prior_preservation=True)),
    "direct consistency of v, min-SNR": ("sd2", replace(CONSISTENT, snr_gamma=5.0)),
    "direct consistency of SDXL, text encoders": ("sdxl", replace(CONSISTENT, train_text_encoder=True, caption_dropout_rate=0.3)),
    "direct consistency of some layers": ("sd1", replace(CONSISTENT, train_batch_size=1, gradient_accumulation_steps=2,
                                                         trainable_layers=("attn2.to_k", "attn2.to_v", "conv1"))),
    "average of the weights": ("sd1", Settings(learning_rate=1e-4, use_ema=True, ema_decay=0.6)),
    "warm-up and cosine": ("sd1", Settings(learning_rate=1e-4, lr_scheduler="cosine", lr_warmup_steps=5)),
}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos") / "instance", 5, seed=0)


@pytest.fixture(scope="module")
def class_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos") / "class", 3, seed=1)


@pytest.fixture(scope="module")
def base_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A base of each family, made once."""
    return base_maker(tmp_path_factory.mktemp("base"))


def train(base: Path, photos: Path, class_photos: Path, output: Path, settings: Settings, *options: str) -> Path:
    """Runs the program and returns its run folder."""
    words = ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
             "--class-data-dir", str(class_photos), "--num-class-images", "3", "--report-to", "none",
             *settings.words(), *options]
    ended = run(words)
    assert ended.returncode == 0, ended.stderr
    return output


def losses_of(output: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


def weights_of(output: Path, names: list[str]) -> dict[str, torch.Tensor]:
    """The trained tensors of the result, by the reference's names: transformers 5 drops CLIPTextModel's prefix."""
    parts = {name.split(".")[0] for name in names}
    stored = {f"{part}.{key}".replace(".text_model.", "."): tensor
              for part in parts for key, tensor in load_file(output / "model" / FILES[part]).items()}
    return {name: stored[name.replace(".text_model.", ".")] for name in names}


def compare(output: Path, reference: Result) -> tuple[float, float]:
    """The largest relative difference of a loss, and the error of the update."""
    losses = losses_of(output)
    assert len(losses) == len(reference.losses)
    loss_error = max(abs(ours - theirs) / theirs for ours, theirs in zip(losses, reference.losses))
    return loss_error, update_error(weights_of(output, list(reference.after)), reference)


@pytest.mark.parametrize("case", CASES)
def test_twenty_steps_equal_the_plain_loop(case: str, base_of: Callable[[str], Path], photos: Path, class_photos: Path,
                                           tmp_path: Path) -> None:
    family, settings = CASES[case]
    base = base_of(family)
    output = train(base, photos, class_photos, tmp_path / "run", settings)
    reference = Reference(base, photos, class_photos, settings).run()
    loss_error, weight_error = compare(output, reference)
    print(f"{case}: loss {loss_error:.1e}, update {weight_error:.1e}")
    assert loss_error <= LOSS_TOLERANCE
    assert weight_error <= UPDATE_TOLERANCE


def no_decay(reference: Reference) -> torch.optim.Optimizer:
    return torch.optim.AdamW(reference.pipe.unet.parameters(), lr=reference.settings.learning_rate, weight_decay=0.0)


def coupled_decay(reference: Reference) -> torch.optim.Optimizer:
    settings = reference.settings
    return torch.optim.Adam(reference.pipe.unet.parameters(), lr=settings.learning_rate,
                            weight_decay=settings.adam_weight_decay)


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW whose bias correction is one step ahead."""

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if self.state[parameter].get("step") == 1 and not hasattr(parameter, "advanced"):
                    self.state[parameter]["step"] += 1
                    parameter.advanced = True
        return super().step(closure)


def wrong_bias_correction(reference: Reference) -> torch.optim.Optimizer:
    settings = reference.settings
    return UncorrectedAdamW(reference.pipe.unet.parameters(), lr=settings.learning_rate,
                            weight_decay=settings.adam_weight_decay)


@pytest.mark.parametrize("settings", [pytest.param(Settings(adam_weight_decay=0.1, max_grad_norm=0.1), marks=pytest.mark.long, id="5e-6"),
                                      pytest.param(DECAYING, id="1e-4")])
def test_mutants_of_the_loop_fail(settings: Settings, base_of: Callable[[str], Path], photos: Path, class_photos: Path,
                                  tmp_path: Path) -> None:
    base = base_of("sd1")
    output = train(base, photos, class_photos, tmp_path / "run", settings)
    mutants = {"no decay": {"make_optimizer": no_decay}, "coupled decay": {"make_optimizer": coupled_decay},
               "wrong bias correction": {"make_optimizer": wrong_bias_correction}, "no clip": {"clips": False}}
    errors = {name: compare(output, Reference(base, photos, None, settings).run(**mutant))[1]
              for name, mutant in mutants.items()}
    print({name: f"{error:.1e}" for name, error in errors.items()})
    assert min(errors.values()) > UPDATE_TOLERANCE


LEFT_OUT = {"caption_dropout_rate": 0.0, "noise_offset": 0.0, "input_perturbation": 0.0, "min_timestep": 0,
            "max_timestep": None, "loss_type": "l2", "huber_c": 0.1, "huber_schedule": "snr"}


def test_an_objective_option_left_out_would_show(base_of: Callable[[str], Path], photos: Path) -> None:
    """What the twenty steps are compared with: without any one of the options the first loss is another one."""
    settings = Settings(caption_dropout_rate=1.0, noise_offset=0.1, input_perturbation=0.1, min_timestep=200,
                        max_timestep=600, loss_type="huber", huber_c=0.05, huber_schedule="exponential")
    first = {}
    for left_out in (None, *LEFT_OUT):
        changed = settings if left_out is None else replace(settings, **{left_out: LEFT_OUT[left_out]})
        with torch.no_grad():
            first[left_out] = Reference(base_of("sd1"), photos, None, changed).loss(0, [0, 1]).item()
    right = first.pop(None)
    assert min(abs(loss - right) / right for loss in first.values()) > 10 * LOSS_TOLERANCE, (right, first)


def test_micro_batches_and_recomputation_change_nothing(base_of: Callable[[str], Path], photos: Path, class_photos: Path,
                                                        tmp_path: Path) -> None:
    settings = Settings(learning_rate=1e-4, train_batch_size=4, with_prior_preservation=True)
    whole = train(base_of("sd1"), photos, class_photos, tmp_path / "whole", settings)
    split = train(base_of("sd1"), photos, class_photos, tmp_path / "split", settings, "--micro-batch", "1",
                  "--gradient-checkpointing")
    assert losses_of(split) == pytest.approx(losses_of(whole), rel=LOSS_TOLERANCE)
    assert len(set(losses_of(whole))) == settings.max_train_steps
    lost = losses_of(train(base_of("sd1"), photos, class_photos, tmp_path / "lost", replace(settings, train_batch_size=3)))
    assert lost != pytest.approx(losses_of(whole), rel=10 * LOSS_TOLERANCE), "one of the four parts is left out"


CURVES = ("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup")
CURVE_TOLERANCE = 1e-7


def diffusers_rates(name: str, steps: int, warm_up: int, **options: float) -> list[float]:
    """The rate of each step as diffusers.optimization has it."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=1e-4)
    schedule = get_scheduler(name, optimizer, num_warmup_steps=warm_up, num_training_steps=steps, **options)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


@pytest.mark.parametrize("name", CURVES)
def test_the_rate_follows_diffusers_curve(name: str, base_of: Callable[[str], Path], photos: Path, class_photos: Path,
                                          tmp_path: Path) -> None:
    steps, warm_up = 12, 3
    settings = Settings(learning_rate=1e-4, lr_scheduler=name, lr_warmup_steps=warm_up, max_train_steps=steps,
                        train_batch_size=1, gradient_accumulation_steps=2)
    output = train(base_of("sd1"), photos, class_photos, tmp_path / "run", settings, "--lr-num-cycles", "2",
                   "--lr-power", "2")
    rates = [json.loads(line)["lr"] for line in (output / "metrics.jsonl").read_text().splitlines()]
    expected = diffusers_rates(name, steps, warm_up, num_cycles=2, power=2.0)
    assert rates == pytest.approx(expected, rel=CURVE_TOLERANCE, abs=1e-4 * CURVE_TOLERANCE)
    if name != "constant":
        later = diffusers_rates(name, steps, warm_up + 1, num_cycles=2, power=2.0)
        assert rates != pytest.approx(later, rel=CURVE_TOLERANCE, abs=1e-4 * CURVE_TOLERANCE)
