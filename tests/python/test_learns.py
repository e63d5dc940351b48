"""Training on photos teaches the model that subject: the fall of the loss on a photo it never saw, against another subject.

Everything that is random is fixed: the same noise and timesteps before and after, so a frozen model's loss does not move.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import sdtune

ROOT = Path(__file__).resolve().parents[2]
OTHER_SUBJECT = ROOT.parent / "shared/data/dreambooth/cat2"
PROMPT = "a photo of sks backpack"
# Little noise, where the photo itself decides the loss. At much noise it falls by 85 % for photos of anything, because a
# base of random weights has to learn first what any image is like; the subject adds little to that.
TIMESTEPS = np.linspace(50, 400, 8).astype(np.int64)
NEEDED_FALL = 0.10


def load_photo(path: Path, size: int) -> np.ndarray:
    """[1, 3, size, size] in [-1, 1], by Pillow, so that the measure does not lean on our own reader."""
    from PIL import Image, ImageOps
    image = ImageOps.fit(Image.open(path).convert("RGB"), (size, size), Image.Resampling.LANCZOS)
    return np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 127.5 - 1


def loss_on(pipe: sdtune.StableDiffusionPipeline, photos: list[Path]) -> float:
    """Mean squared error of the predicted noise over fixed noise and timesteps, averaged over the photos."""
    context = pipe.text_encoder(pipe.tokenizer(PROMPT))[0]
    alphas = np.cumprod(1 - np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2)[TIMESTEPS].reshape(-1, 1, 1, 1)
    losses = []
    for index, photo in enumerate(photos):
        latents = pipe.vae.encode(load_photo(photo, 64))[0] * pipe.vae.config["scaling_factor"]
        noise = np.random.default_rng(index).standard_normal((len(TIMESTEPS), *latents.shape[1:]))
        noisy = np.sqrt(alphas) * latents + np.sqrt(1 - alphas) * noise
        prediction = pipe.unet(noisy.astype(np.float32), TIMESTEPS, np.repeat(context, len(TIMESTEPS), axis=0))
        losses.append(np.mean((prediction - noise) ** 2))
    return float(np.mean(losses))


def falls(before: Path, after: Path, seen: list[Path], other: list[Path]) -> tuple[float, float]:
    """How far the loss fell, as a share, on photos of the subject and on the other subject's."""
    base, tuned = (sdtune.StableDiffusionPipeline.from_pretrained(str(folder)) for folder in (before, after))
    return tuple(1 - loss_on(tuned, photos) / loss_on(base, photos) for photos in (seen, other))


def learned(fall_subject: float, fall_other: float) -> bool:
    """The bar of the test, in one place, so that the frozen model meets the same one."""
    return fall_subject >= NEEDED_FALL and fall_subject > fall_other


@pytest.mark.long
@pytest.mark.skipif(not OTHER_SUBJECT.is_dir(), reason="photos of another subject are not beside this checkout")
def test_training_teaches_the_subject_and_a_frozen_model_does_not_pass(tiny_base: Path, tmp_path: Path) -> None:
    photos = sorted((ROOT / "examples/backpack_dog").glob("*.jpg"))
    training, held_out = tmp_path / "training", photos[-1:]
    training.mkdir()
    for photo in photos[:-1]:
        shutil.copy(photo, training)
    config = sdtune.TrainConfig(
        images=str(training), base=str(tiny_base), output=str(tmp_path / "run"), instance_prompt=PROMPT,
        with_prior_preservation=False, train_text_encoder=False, train_batch_size=4, learning_rate=2e-4,
        max_train_steps=150, seed=0)
    result = sdtune.train(config)
    others = sorted(OTHER_SUBJECT.glob("*.jpg"))
    subject, other = falls(tiny_base, Path(result.model_path), held_out, others)
    print(f"fall of the loss: subject {subject:.2%}, another subject {other:.2%}")
    assert learned(subject, other)
    assert not learned(*falls(tiny_base, tiny_base, held_out, others))
