"""bfloat16 and float16 learn what float32 learns, and what is not finite is never applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from diffusers import StableDiffusionPipeline
from program import run
from safetensors.torch import load_file, save_file
from training_reference import Reference, Settings, small_material

UNET = "unet/diffusion_pytorch_model.safetensors"
LEARNING = Settings(learning_rate=1e-3, max_train_steps=200)
ALLOWED_DIFFERENCE = 0.10
EMULATE = {"SDTUNE_EMULATE_FP16": "1"}


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A base with a smaller UNet than elsewhere, because emulated float16 is slow; and five photos."""
    return small_material(tmp_path_factory.mktemp("precision"), photos=5)


def words(material: tuple[Path, Path], output: Path, settings: Settings, precision: str, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--mixed-precision", precision, "--report-to", "none", *settings.words(), *options]


def metrics(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


class Probe:
    """The loss at fixed noise and timesteps: draws of steps that no run has."""

    def __init__(self, material: tuple[Path, Path]) -> None:
        self.reference = Reference(*material, None, LEARNING)

    @torch.no_grad()
    def loss(self, model: Path) -> float:
        self.reference.pipe.unet = StableDiffusionPipeline.from_pretrained(model).unet
        return self.reference.sample_losses(1_000_000, list(range(40)), False).mean().item()


@pytest.fixture(scope="module")
def falls(material: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """How far the probe's loss fell, as a share, in each format; "frozen" is the base itself."""
    probe, found = Probe(material), {}
    before = probe.loss(material[0])
    for precision in ("no", "bf16", "fp16"):
        output = tmp_path_factory.mktemp("run") / precision
        ended = run(words(material, output, LEARNING, precision), **EMULATE)
        assert ended.returncode == 0, ended.stderr
        found[precision] = 1 - probe.loss(output / "model") / before
    return {**found, "frozen": 1 - probe.loss(material[0]) / before}


def learns_like_float32(fall: float, float32_fall: float) -> bool:
    """The bar, in one place, so that the frozen model meets the same one."""
    return abs(fall - float32_fall) <= ALLOWED_DIFFERENCE * float32_fall


@pytest.mark.long
def test_half_formats_learn_like_float32_and_a_frozen_model_does_not(falls: dict[str, float]) -> None:
    print({name: f"{fall:.4%}" for name, fall in falls.items()})
    assert falls["no"] > 0.1
    assert learns_like_float32(falls["bf16"], falls["no"])
    assert learns_like_float32(falls["fp16"], falls["no"])
    assert not learns_like_float32(falls["frozen"], falls["no"])


def test_a_skipped_step_does_not_advance_the_rate(material: tuple[Path, Path], tmp_path: Path) -> None:
    """A prior that weighs a thousandfold makes float16's first loss scale overflow."""
    settings = Settings(learning_rate=1e-4, lr_scheduler="constant_with_warmup", lr_warmup_steps=12, max_train_steps=12,
                        with_prior_preservation=True, prior_loss_weight=1000.0)
    class_images = ["--class-data-dir", str(material[1]), "--num-class-images", "5"]
    ended = run(words(material, tmp_path / "run", settings, "fp16", *class_images), **EMULATE)
    assert ended.returncode == 0, ended.stderr
    applied, lines = 0, metrics(tmp_path / "run")
    for line, following in zip(lines, lines[1:]):
        assert line["lr"] == pytest.approx(1e-4 * applied / 12, rel=1e-6, abs=1e-12)
        assert following["loss_scale"] == line["loss_scale"] * (0.5 if line["skipped"] else 1.0)
        applied += not line["skipped"]
    assert 0 < applied < len(lines) - 1


def test_the_same_checkpoint_carries_the_loss_scale(material: tuple[Path, Path], tmp_path: Path) -> None:
    settings = Settings(learning_rate=1e-4, max_train_steps=8)
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    assert run(words(material, whole, settings, "fp16"), **EMULATE).returncode == 0
    shorter = Settings(learning_rate=1e-4, max_train_steps=5)
    assert run(words(material, parted, shorter, "fp16", "--checkpointing-steps", "4"), **EMULATE).returncode == 0
    ended = run(words(material, parted, settings, "fp16", "--resume-from-checkpoint", "latest"), **EMULATE)
    assert ended.returncode == 0, ended.stderr
    assert (whole / "model" / UNET).read_bytes() == (parted / "model" / UNET).read_bytes()
    assert [line["loss_scale"] for line in metrics(whole)] == [line["loss_scale"] for line in metrics(parted)]


def test_float16_on_a_cpu_is_refused(material: tuple[Path, Path], tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "run", LEARNING, "fp16"))
    assert ended.returncode == 2
    assert "mixed_precision" in ended.stderr
    assert not (tmp_path / "run").exists()


def test_what_is_not_finite_is_never_applied_and_ends_the_run(material: tuple[Path, Path], tmp_path: Path) -> None:
    broken, photos = tmp_path / "broken", material[1]
    pipe = StableDiffusionPipeline.from_pretrained(material[0])
    pipe.save_pretrained(broken)
    weights = load_file(broken / UNET)
    weights["conv_out.bias"][0] = float("nan")
    save_file(weights, broken / UNET, metadata={"format": "pt"})
    output = tmp_path / "run"
    ended = run(words((broken, photos), output, Settings(), "no", "--max-skipped-steps", "3"))
    assert ended.returncode == 6, ended.stderr
    assert "step 3" in ended.stderr
    assert [line["skipped"] for line in metrics(output)] == [True] * 3
    assert not (output / "model").exists()
    assert json.loads((output / "last_error.json").read_text())["exit_code"] == 6


@pytest.mark.parametrize("stored", ["float32", "float16"])
def test_a_half_precision_run_exports_what_it_did_not_train_as_the_base_has_it(material: tuple[Path, Path], tmp_path: Path,
                                                                               stored: str) -> None:
    """The modules hold rounded text encoders and VAE; the files must not: bytes of the base, or, where it is stored in
    half precision, its values in float32, since diffusers wants one dtype for all parts. Its pipeline takes the result."""
    base = material[0]
    if stored == "float16":
        base = tmp_path / "half"
        StableDiffusionPipeline.from_pretrained(material[0], torch_dtype=torch.float16).save_pretrained(base)
    output = tmp_path / "run"
    ended = run(words((base, material[1]), output, Settings(max_train_steps=1, learning_rate=1e-3), "bf16"))
    assert ended.returncode == 0, ended.stderr
    for part in ("text_encoder/model.safetensors", "vae/diffusion_pytorch_model.safetensors"):
        if stored == "float32":
            assert (output / "model" / part).read_bytes() == (base / part).read_bytes(), part
        # transformers 5 writes no "text_model."
        found, wanted = ({name.removeprefix("text_model."): tensor for name, tensor in load_file(file / part).items()}
                         for file in (output / "model", base))
        assert all(torch.equal(found[name], wanted[name].float()) for name in found), part
    assert (output / "model" / UNET).read_bytes() != (base / UNET).read_bytes()
    pipe = StableDiffusionPipeline.from_pretrained(output / "model")
    pipe.set_progress_bar_config(disable=True)
    assert pipe("a photo", num_inference_steps=1, height=32, width=32, output_type="np").images.shape == (1, 32, 32, 3)


def test_a_trained_text_encoder_is_not_the_bases(material: tuple[Path, Path], tmp_path: Path) -> None:
    output, encoder = tmp_path / "run", "text_encoder/model.safetensors"
    settings = Settings(learning_rate=1e-3, max_train_steps=1, train_text_encoder=True)
    ended = run(words(material, output, settings, "bf16"))
    assert ended.returncode == 0, ended.stderr
    assert (output / "model" / encoder).read_bytes() != (material[0] / encoder).read_bytes()
