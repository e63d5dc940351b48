"""Masked loss: twenty steps of the program against the plain loop with the masks written down a second time."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from program import run
from safetensors.torch import load_file
from sdtune._native import testing
from tiny_models import make_pipeline
from training_reference import ORDER, Reference, Settings, update_error, write_base, write_photos

LOSS_TOLERANCE = 1e-5
UPDATE_TOLERANCE = 1e-3
UNET = "unet/diffusion_pytorch_model.safetensors"
SETTINGS = Settings(learning_rate=1e-4, with_prior_preservation=True)


class MaskedReference(Reference):
    """Weighs the errors of each photo by its mask: [H, W] in [0, 1], or None where all of it counts."""

    def __init__(self, base: Path, photos: Path, class_photos: Path, settings: Settings, masks: list[np.ndarray | None],
                 outside: float, normalised: bool) -> None:
        super().__init__(base, photos, class_photos, settings)
        self.outside, self.normalised = outside, normalised
        side = self.moments[0][0].shape[-1]
        self.masks = [torch.ones(1, side, side) if mask is None else
                      torch.from_numpy(mask.reshape(side, mask.shape[0] // side, side, -1).mean((1, 3)))[None].float()
                      for mask in masks]

    def sample_losses(self, step: int, samples: list[int], class_image: bool) -> torch.Tensor:
        count = len(self.moments)
        photos = [testing.draw_permutation(self.settings.seed, ORDER, sample // count, count)[sample % count]
                  for sample in samples]
        masks = [torch.ones_like(self.masks[0]) if class_image else self.masks[photo] for photo in photos]
        self.weights = torch.stack(masks).clamp(min=self.outside)
        return super().sample_losses(step, samples, class_image)

    def errors(self, difference: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
        weighted = super().errors(difference, timesteps) * self.weights
        return weighted / self.weights.mean((1, 2, 3), keepdim=True) if self.normalised else weighted


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path, Path]:
    """A base; photos with masks of every kind; the same as training sees them; class images."""
    folder = tmp_path_factory.mktemp("masks")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base", block_out_channels=(16, 32),
                      layers_per_block=1, attention_head_dim=2)
    photos, seen = write_photos(folder / "photos", 5, seed=0), write_photos(folder / "seen", 5, seed=0)
    for index, mask in enumerate(masks_of()):
        name = f"{index:02d}"
        if index in (1, 3):  # alpha: cut out, and seen on white
            cut = mask if index == 1 else np.roll(masks_of()[1], 9, axis=1)
            pixels = np.array(Image.open(seen / f"{name}.png"))
            Image.fromarray(np.dstack([pixels, (cut * 255).astype(np.uint8)])).save(photos / f"{name}.png")
            Image.fromarray(np.where(cut[..., None] > 0, pixels, 255).astype(np.uint8)).save(seen / f"{name}.png")
        if mask is not None and index != 1:
            Image.fromarray(np.rint(mask * 255).astype(np.uint8)).save(photos / f"{name}.mask.png")
    return base, photos, seen, write_photos(folder / "class", 3, seed=1)


def masks_of() -> list[np.ndarray | None]:
    """Of five photos: grey from a file; alpha; none; a file that wins over alpha; black."""
    draw = np.random.default_rng(3)
    grey = np.rint(draw.uniform(0, 255, (32, 32))) / 255
    alpha = np.zeros((32, 32))
    alpha[5:23, 9:27] = 1
    return [grey, alpha, None, grey[::-1].copy(), np.zeros((32, 32))]


def words(material: tuple[Path, Path, Path, Path], output: Path, settings: Settings, *options: str) -> list[str]:
    base, photos, _, class_photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--class-data-dir", str(class_photos), "--num-class-images", "3", "--report-to", "none", *settings.words(),
            *options]


def compare(output: Path, reference: Reference) -> tuple[float, float]:
    """The largest relative difference of a loss, and the error of the update."""
    result = reference.run()
    losses = [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]
    stored = {f"unet.{key}": tensor for key, tensor in load_file(output / "model" / UNET).items()}
    loss_error = max(abs(ours - theirs) / theirs for ours, theirs in zip(losses, result.losses, strict=True))
    return loss_error, update_error(stored, result)


@pytest.mark.parametrize(("outside", "normalised", "settings"), [
    pytest.param(0.1, False, SETTINGS, marks=pytest.mark.long), (0.3, True, replace(SETTINGS, loss_type="huber", snr_gamma=5.0))])
def test_masked_loss_equals_the_plain_loop(outside: float, normalised: bool, settings: Settings,
                                           material: tuple[Path, Path, Path, Path], tmp_path: Path) -> None:
    base, _, seen, class_photos = material
    options = ["--masked-loss", "--unmasked-weight", str(outside), f"--normalize-masked-area-loss={str(normalised).lower()}"]
    ended = run(words(material, tmp_path / "run", settings, *options))
    assert ended.returncode == 0, ended.stderr
    assert "04.png: has a mask that is black everywhere" in ended.stderr
    assert "02.png: has no mask" in ended.stderr and "01.png: has no mask" not in ended.stderr
    loss_error, weight_error = compare(
        tmp_path / "run", MaskedReference(base, seen, class_photos, settings, masks_of(), outside, normalised))
    print(f"loss {loss_error:.1e}, update {weight_error:.1e}")
    assert loss_error <= LOSS_TOLERANCE
    assert weight_error <= UPDATE_TOLERANCE
    mirrored = [None if mask is None else mask[:, ::-1].copy() for mask in masks_of()]
    for mutant in ((mirrored, outside, normalised), (masks_of(), 0.2, normalised), (masks_of(), outside, not normalised)):
        wrong = compare(tmp_path / "run", MaskedReference(base, seen, class_photos, settings, *mutant))
        assert wrong[0] > 10 * LOSS_TOLERANCE and wrong[1] > UPDATE_TOLERANCE


def test_another_mask_is_another_run(material: tuple[Path, Path, Path, Path], tmp_path: Path) -> None:
    settings, output, mask = replace(SETTINGS, max_train_steps=2), tmp_path / "run", material[1] / "00.mask.png"
    kept = mask.read_bytes()
    options = ("--masked-loss", "--checkpointing-steps", "1")
    assert run(words(material, output, settings, *options)).returncode == 0
    resume = words(material, output, settings, *options, "--resume-from-checkpoint", "latest")
    assert run(resume).returncode == 0
    Image.fromarray(np.zeros((32, 32), np.uint8)).save(mask)
    refused = run(resume)
    mask.write_bytes(kept)
    assert refused.returncode == 2 and "mask of 00.png" in refused.stderr
    for option in ("--unmasked-weight=0.5", "--normalize-masked-area-loss", "--masked-loss=false"):
        refused = run([*resume, option])
        assert refused.returncode == 2 and option[2:].split("=")[0].replace("-", "_") in refused.stderr, refused.stderr


def test_a_mask_is_grey_and_black_where_it_is_transparent(material: tuple[Path, Path, Path, Path], tmp_path: Path) -> None:
    """White on transparent weighs as its alpha as grey does, and colours as Pillow's grey of them."""
    draw = np.random.default_rng(8)
    grey = Image.fromarray(draw.integers(0, 256, (32, 32), dtype=np.uint8))
    colours = Image.fromarray(draw.integers(0, 256, (32, 32, 3), dtype=np.uint8))
    on_transparent = Image.new("RGBA", (32, 32), "white")
    on_transparent.putalpha(grey)
    base, photos, seen, class_photos = material
    settings, digests = replace(SETTINGS, max_train_steps=1), {}
    for name, mask in {"grey": grey, "alpha": on_transparent, "colours": colours, "their grey": colours.convert("L"),
                       "white": Image.new("L", (32, 32), 255)}.items():
        images = shutil.copytree(photos, tmp_path / name / "photos")
        mask.save(images / "00.mask.png")
        for other in ("01.png", "02.png", "03.png", "03.mask.png", "04.png", "04.mask.png"):
            (images / other).unlink()
        ended = run(words((base, images, seen, class_photos), tmp_path / name / "run", settings, "--masked-loss"))
        assert ended.returncode == 0, ended.stderr
        assert ("00.png: has a mask that is white everywhere" in ended.stderr) == (name == "white"), ended.stderr
        digests[name] = (tmp_path / name / "run" / "model" / UNET).read_bytes()
    assert digests["alpha"] == digests["grey"] and digests["colours"] == digests["their grey"]
    assert len(set(digests.values())) == 3


@pytest.mark.parametrize(("options", "said"), [
    (["--unmasked-weight", "2"], ["unmasked-weight", "2", "0 <= x <= 1"]),
    (["--masked-loss=often"], ["masked-loss", "often", "true"]),
    (["--normalize-masked-area-loss=often"], ["normalize-masked-area-loss", "often", "true"])])
def test_bad_values_are_refused_by_name(options: list[str], said: list[str], material: tuple[Path, Path, Path, Path],
                                        tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "run", SETTINGS, *options))
    assert ended.returncode == 2, ended.stderr
    for text in said:
        assert text in ended.stderr, (text, ended.stderr)


def test_photos_without_any_mask_are_refused(material: tuple[Path, Path, Path, Path], tmp_path: Path) -> None:
    base, _, seen, class_photos = material
    ended = run(words((base, seen, seen, class_photos), tmp_path / "run", SETTINGS, "--masked-loss"))
    assert ended.returncode == 2
    assert "masked_loss: no photo has a mask" in ended.stderr
    assert not (tmp_path / "run").exists()
