"""Each optimizer beside the package that it stands for, alone and inside the program; what is refused; exact resume.

torch has AdamW, transformers Adafactor; bitsandbytes, lion-pytorch and prodigyopt are the others' (oracles.py)."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import oracles
import pytest
import torch
from diffusers import StableDiffusionPipeline
from optimizer_statements import BlockwiseAdamW, dynamic_map
from program import run
from safetensors.torch import load_file
from sdtune._native import testing
from tiny_models import make_pipeline
from training_reference import Reference, Result, Settings, update_error, write_base, write_photos
from transformers import Adafactor

STEPS = 20
DECAY = 0.1
MakeOptimizer = Callable[[list[torch.Tensor], float], torch.optim.Optimizer]


def plain_adafactor(weights: list[torch.Tensor], rate: float, **changes: object) -> torch.optim.Optimizer:
    options = {"scale_parameter": False, "relative_step": False, "warmup_init": False, "weight_decay": DECAY, **changes}
    return Adafactor(weights, lr=rate, **options)


def adamw_8bit(weights: list[torch.Tensor], rate: float, **changes: object) -> torch.optim.Optimizer:
    return oracles.bitsandbytes().optim.AdamW8bit(weights, lr=rate, **{"weight_decay": DECAY, **changes})


def lion(weights: list[torch.Tensor], rate: float, **changes: object) -> torch.optim.Optimizer:
    return oracles.load("lion_pytorch").Lion(weights, lr=rate, **{"weight_decay": DECAY, **changes})


def prodigy(weights: list[torch.Tensor], rate: float, **changes: object) -> torch.optim.Optimizer:
    options = {"weight_decay": DECAY, "use_bias_correction": True, "safeguard_warmup": True, **changes}
    return oracles.load("prodigyopt").Prodigy(weights, lr=rate, **options)


# Name -> rate, the package's, wrong ones.
ORACLES: dict[str, tuple[float, MakeOptimizer, dict[str, MakeOptimizer]]] = {
    "adamw": (1e-3, lambda w, lr: torch.optim.AdamW(w, lr=lr, weight_decay=DECAY),
              {"coupled decay": lambda w, lr: torch.optim.Adam(w, lr=lr, weight_decay=DECAY)}),
    "adamw_8bit": (1e-3, adamw_8bit,
                   {"larger blocks": lambda w, lr: BlockwiseAdamW(w, lr=lr, weight_decay=DECAY, block=1024),
                    "a sign for v": lambda w, lr: BlockwiseAdamW(w, lr=lr, weight_decay=DECAY, unsigned=False),
                    "32 bits": lambda w, lr: torch.optim.AdamW(w, lr=lr, weight_decay=DECAY),
                    "8 bits for all": lambda w, lr: adamw_8bit(w, lr, min_8bit_size=1)}),
    "adafactor": (1e-3, plain_adafactor,
                  {"no decay": lambda w, lr: plain_adafactor(w, lr, weight_decay=0.0),
                   "other threshold": lambda w, lr: plain_adafactor(w, lr, clip_threshold=0.5),
                   "other beta2": lambda w, lr: plain_adafactor(w, lr, decay_rate=-0.7)}),
    "lion": (1e-3, lion,
             {"betas swapped": lambda w, lr: lion(w, lr, betas=(0.99, 0.9)),
              "no decay": lambda w, lr: lion(w, lr, weight_decay=0.0)}),
    "prodigy": (1.0, prodigy,
                {"no safeguard": lambda w, lr: prodigy(w, lr, safeguard_warmup=False),
                 "no correction": lambda w, lr: prodigy(w, lr, use_bias_correction=False),
                 "other beta3": lambda w, lr: prodigy(w, lr, beta3=0.9),
                 "coupled decay": lambda w, lr: prodigy(w, lr, decouple=False)}),
}
TOLERANCE = 1e-4


def start_weights() -> dict[str, np.ndarray]:
    """A convolution, a matrix and a vector above the limit of 8 bits, and a small vector; of a network's usual size, beside
    which Prodigy's first steps of 1e-6 are not lost in rounding."""
    draw = np.random.default_rng(0)
    shapes = {"conv": (24, 20, 3, 3), "matrix": (96, 64), "long": (5000,), "short": (7,)}
    return {name: (0.02 * draw.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}


def gradients_of(weights: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Of each step: noise of very different sizes around a direction that stays, so that Prodigy's estimate grows."""
    draw = np.random.default_rng(1)
    scales = {name: 10.0 ** draw.uniform(-5, 0, start.shape) for name, start in weights.items()}
    lasting = {name: draw.standard_normal(start.shape) for name, start in weights.items()}
    return [{name: (scales[name] * (lasting[name] + 0.5 * draw.standard_normal(start.shape))).astype(np.float32)
             for name, start in weights.items()} for _ in range(STEPS)]


def run_ours(name: str, rate: float, **options: object) -> testing.Optimizer:
    weights = start_weights()
    optimizer = testing.Optimizer(weights, {"optimizer": name, "adam_weight_decay": DECAY, "learning_rate": rate, **options})
    for gradients in gradients_of(weights):
        optimizer.step(gradients, rate, 1.0)
    return optimizer


def run_theirs(make: MakeOptimizer, rate: float) -> tuple[dict[str, torch.Tensor], torch.optim.Optimizer]:
    weights = start_weights()
    parameters = {name: torch.nn.Parameter(torch.from_numpy(start.copy())) for name, start in sorted(weights.items())}
    optimizer = make(list(parameters.values()), rate)
    for gradients in gradients_of(weights):
        for name, parameter in parameters.items():
            parameter.grad = torch.from_numpy(gradients[name])
        optimizer.step()
    return {name: parameter.detach() for name, parameter in parameters.items()}, optimizer


def distance(ours: dict[str, np.ndarray], theirs: dict[str, torch.Tensor]) -> float:
    """|dw - dw_ref| / |dw_ref|."""
    difference = norm = 0.0
    for name, start in start_weights().items():
        update = theirs[name].double().numpy() - start
        difference += np.square(ours[name].astype(np.float64) - start - update).sum()
        norm += np.square(update).sum()
    return float((difference / norm) ** 0.5)


@pytest.mark.parametrize("name", ORACLES)
def test_twenty_updates_equal_the_package(name: str) -> None:
    rate, make, mutants = ORACLES[name]
    ours = run_ours(name, rate).weights
    error = distance(ours, run_theirs(make, rate)[0])
    wrong = {mutant: distance(ours, run_theirs(make_wrong, rate)[0]) for mutant, make_wrong in mutants.items()}
    print(f"{name}: {error:.1e}", {mutant: f"{value:.1e}" for mutant, value in wrong.items()})
    assert error <= TOLERANCE
    assert min(wrong.values()) > 10 * TOLERANCE


@pytest.mark.parametrize(("name", "rate", "options", "make"), [
    ("lion", 1e-3, {"lion_beta1": 0.8, "lion_beta2": 0.95}, lambda w, lr: lion(w, lr, betas=(0.8, 0.95))),
    ("prodigy", 0.5, {"prodigy_beta3": 0.9, "prodigy_use_bias_correction": False, "prodigy_safeguard_warmup": False,
                      "adam_beta1": 0.8, "adam_beta2": 0.99},
     lambda w, lr: prodigy(w, lr, betas=(0.8, 0.99), beta3=0.9, use_bias_correction=False, safeguard_warmup=False)),
    ("adamw_8bit", 1e-3, {"adam_beta1": 0.8, "adam_beta2": 0.99, "adam_epsilon": 1e-4},
     lambda w, lr: adamw_8bit(w, lr, betas=(0.8, 0.99), eps=1e-4))])
def test_each_option_reaches_the_numbers(name: str, rate: float, options: dict[str, object], make: MakeOptimizer) -> None:
    ours = run_ours(name, rate, **options).weights
    assert distance(ours, run_theirs(make, rate)[0]) <= TOLERANCE
    for left_out in options:
        others = {key: value for key, value in options.items() if key != left_out}
        without = run_ours(name, rate, **others).weights
        assert any(not np.array_equal(ours[key], without[key]) for key in ours), left_out


def test_moments_of_8_bits_are_those_of_bitsandbytes() -> None:
    """Codes, scales and the 256 entries themselves; the second statement of them, which the mutants are made of, agrees."""
    rate, make, _ = ORACLES["adamw_8bit"]
    states = run_ours("adamw_8bit", rate).states
    _, theirs = run_theirs(make, rate)
    for name, p in zip(sorted(start_weights()), theirs.param_groups[0]["params"]):
        state = theirs.state[p]
        for number, suffix in ((1, "exp_avg"), (2, "exp_avg_sq")):
            ours, wanted = states[f"{name}.{suffix}"], state[f"state{number}"].numpy()
            if p.numel() < 4096:
                assert wanted.dtype == np.float32
                np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-12)
                continue
            scale, table = states[f"{name}.{suffix}.scale"], state[f"qmap{number}"].numpy()
            np.testing.assert_allclose(table, dynamic_map(signed=number == 1), rtol=1e-6)
            assert ours.dtype == wanted.dtype == np.uint8 and len(ours) == len(state[f"absmax{number}"])
            np.testing.assert_allclose(scale, state[f"absmax{number}"], rtol=1e-5)
            # A moment on the border of two codes may round to either side, and the next steps see that.
            ours, wanted = ours.reshape(-1)[: p.numel()], wanted.reshape(-1)
            assert np.mean(ours != wanted) < 2e-3
            scales = np.repeat(scale, 256)[: p.numel()]
            assert np.abs((table[ours] - table[wanted]) * scales).max() < 0.02 * np.abs(table[ours] * scales).max()  # a step of the code


# Inside the program

TRAINING = {"adamw_8bit": 1e-4, "adafactor": 1e-4, "lion": 1e-5, "prodigy": 1.0}
# Lion's signs turn over where a mean is next to zero, and then a weight goes the other way whatever the difference was.
UPDATE_TOLERANCE = {"lion": 1e-2, "prodigy": 1e-2}
UNET = "unet/diffusion_pytorch_model.safetensors"


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A base with a small UNet, of which some parameters are large enough for 8 bits; and five photos."""
    folder = tmp_path_factory.mktemp("optimizers")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base", block_out_channels=(16, 32),
                      layers_per_block=1, attention_head_dim=2)
    return base, write_photos(folder / "photos", 5, seed=0)


def words(material: tuple[Path, Path], output: Path, settings: Settings, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--report-to", "none", *settings.words(), *options]


def losses_of(output: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", TRAINING)
def test_twenty_steps_of_training_equal_the_plain_loop(name: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    settings = Settings(learning_rate=TRAINING[name], adam_weight_decay=DECAY)
    ended = run(words(material, tmp_path / "run", settings, "--optimizer", name))
    assert ended.returncode == 0, ended.stderr
    _, make, mutants = ORACLES[name]

    def loop(make: MakeOptimizer) -> Result:
        return Reference(*material, None, settings).run(
            make_optimizer=lambda reference: make(list(reference.pipe.unet.parameters()), settings.learning_rate))

    reference = loop(make)
    ours = losses_of(tmp_path / "run")
    loss_error = max(abs(our - their) / their for our, their in zip(ours, reference.losses, strict=True))
    stored = {f"unet.{key}": tensor for key, tensor in load_file(tmp_path / "run/model" / UNET).items()}
    error, wrong = update_error(stored, reference), update_error(stored, loop(next(iter(mutants.values()))))
    print(f"{name}: loss {loss_error:.1e}, update {error:.1e}, {next(iter(mutants))} {wrong:.1e}")
    assert loss_error <= 1e-5
    assert error <= UPDATE_TOLERANCE.get(name, 1e-3) < wrong


@pytest.mark.parametrize("name", ["adamw", *TRAINING])
def test_a_resumed_run_has_the_bytes_of_a_whole_one(name: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    settings = Settings(learning_rate=TRAINING.get(name, 1e-4), max_train_steps=6)
    options = ("--checkpointing-steps", "3", "--optimizer", name)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(words(material, whole, settings, *options)).returncode == 0
    shutil.copytree(whole, stopped)
    shutil.rmtree(stopped / "model")
    ended = run(words(material, stopped, settings, *options, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert len(losses_of(stopped)) == 6
    hashes = [hashlib.sha256((folder / "model" / UNET).read_bytes()).hexdigest() for folder in (whole, stopped)]
    assert hashes[0] == hashes[1]
    other = "lion" if name != "lion" else "adafactor"
    refused = run(words(material, stopped, settings, "--optimizer", other, "--resume-from-checkpoint", "latest"))
    assert refused.returncode == 2
    assert f"optimizer: option changed since the checkpoint (got {other}; the checkpoint has {name})" in refused.stderr


def test_diffusers_name_of_8_bits_is_the_same_optimizer(material: tuple[Path, Path], tmp_path: Path) -> None:
    settings = Settings(learning_rate=1e-4, max_train_steps=3)
    for output, option in (("a", "--use-8bit-adam"), ("b", "--optimizer=adamw_8bit")):
        ended = run(words(material, tmp_path / output, settings, option, "--checkpointing-steps", "2"))
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "a/model" / UNET).read_bytes() == (tmp_path / "b/model" / UNET).read_bytes()
    states = load_file(tmp_path / "a/checkpoints/step-00000002/optimizer.safetensors")
    assert states["unet.conv_norm_out.weight.exp_avg"].dtype == torch.float32
    assert states["unet.mid_block.resnets.0.conv1.weight.exp_avg"].dtype == torch.uint8
    resumed = run(words(material, tmp_path / "a", settings, "--optimizer=adamw_8bit", "--resume-from-checkpoint", "latest"))
    assert resumed.returncode == 0, resumed.stderr


LEARNING = Settings(learning_rate=1e-3, max_train_steps=200)
ALLOWED_DIFFERENCE = 0.05


def learns_like_float32(fall: float, float32_fall: float) -> bool:
    """The bar, in one place, so that the frozen model meets the same one."""
    return abs(fall - float32_fall) <= ALLOWED_DIFFERENCE * float32_fall


@torch.no_grad()
def probe_loss(reference: Reference, model: Path) -> float:
    """At fixed noise and timesteps: draws of steps that no run has."""
    reference.pipe.unet = StableDiffusionPipeline.from_pretrained(model).unet
    return reference.sample_losses(1_000_000, list(range(40)), False).mean().item()


@pytest.mark.long
def test_8_bits_learn_like_32_and_a_frozen_model_does_not(material: tuple[Path, Path], tmp_path: Path) -> None:
    reference = Reference(*material, None, LEARNING)
    before, falls = probe_loss(reference, material[0]), {}
    for name in ("adamw", "adamw_8bit"):
        ended = run(words(material, tmp_path / name, LEARNING, "--optimizer", name))
        assert ended.returncode == 0, ended.stderr
        falls[name] = 1 - probe_loss(reference, tmp_path / name / "model") / before
    print({name: f"{fall:.4%}" for name, fall in falls.items()})
    assert falls["adamw"] > 0.1
    assert falls["adamw"] != falls["adamw_8bit"]
    assert learns_like_float32(falls["adamw_8bit"], falls["adamw"])
    assert not learns_like_float32(0.0, falls["adamw"])


REFUSED = {
    "unknown": (["--optimizer", "sgd"], ["optimizer", "sgd", "adamw, adamw_8bit, adafactor, lion, prodigy"]),
    "two names": (["--optimizer", "lion", "--use-8bit-adam"], ["use_8bit_adam", "lion", "adamw"]),
    "prodigy's rate": (["--optimizer", "prodigy", "--learning-rate", "1e-4"], ["learning_rate", "0.0001", "0.1 <= x"]),
    "prodigy's text rate": (["--optimizer", "prodigy", "--learning-rate", "1", "--text-encoder-lr", "0.5"],
                            ["text_encoder_lr", "0.5", "none"]),
    "lion_beta1": (["--lion-beta1", "1.5"], ["lion-beta1", "1.5", "<= x <="]),
    "lion_beta2": (["--lion-beta2", "-1"], ["lion-beta2", "-1", "<= x <="]),
    "prodigy_beta3": (["--prodigy-beta3", "2"], ["prodigy-beta3", "2", "<= x <="]),
    "prodigy_use_bias_correction": (["--prodigy-use-bias-correction=often"], ["prodigy-use-bias-correction", "often"]),
    "prodigy_safeguard_warmup": (["--prodigy-safeguard-warmup=often"], ["prodigy-safeguard-warmup", "often"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_by_name(case: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    options, said = REFUSED[case]
    base, photos = material
    ended = run(["check", "--base", str(base), "--images", str(photos), "--output", str(tmp_path / "run"), *options])
    assert ended.returncode == 2, ended.stderr
    for text in said:
        assert text in ended.stdout + ended.stderr, (text, ended.stdout, ended.stderr)
    assert not (tmp_path / "run").exists()


def test_versions_of_loops_are_chosen_by_instructions() -> None:
    """GCC compares `arch=haswell` with the processor's own name: every other processor would take the version for SSE2."""
    sources = [path for folder in ("model", "train") for path in (Path(__file__).parents[2] / folder).rglob("*.h")]
    named = {path.name: re.findall(r"arch=([\w-]+)", line) for path in sources for line in path.read_text().splitlines() if "target_clones(" in line}
    assert set(named) == {"vector_clones.h", "vector_math.h"}
    assert all({"x86-64-v3", "x86-64-v4"} == set(levels) for levels in named.values()), named
