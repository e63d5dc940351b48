"""Validation during training: the base beside the tuned one, and the loss on photos that are held out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from program import run
from tiny_models import make_pipeline
from training_reference import (INSTANCE_PROMPT, LATENT, NOISE, Reference, Settings, testing,
                                write_base, write_photos)

TOLERANCE = 1e-5
HELD_OUT_STEP, TIMESTEPS = 2**42, 8


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path, Path]]:
    """material(family): base, photos, held-out photos; made once."""
    made: dict[str, tuple[Path, Path, Path]] = {}

    def of(family: str) -> tuple[Path, Path, Path]:
        if family not in made:
            folder = tmp_path_factory.mktemp("validation")
            made[family] = (write_base(make_pipeline(family, folder / "vocabulary"), folder / "base"),
                            write_photos(folder / "photos", 4, seed=0), write_photos(folder / "held_out", 3, seed=5))
        return made[family]

    return of


def train(material: tuple[Path, Path, Path], output: Path, *options: str) -> Path:
    base, photos, held_out = material
    ended = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
                 "--report-to", "none", "--learning-rate", "1e-3", "--seed", "3", "--max-train-steps", "8",
                 "--validation-steps", "4", "--validation-data-dir", str(held_out), *options])
    assert ended.returncode == 0, ended.stderr
    return output


def losses_of(output: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in (output / "validation.jsonl").read_text().splitlines()]
    assert len({line["step"] for line in lines}) == len(lines)
    return {line["step"]: line["loss"] for line in lines}


@torch.no_grad()
def stated_loss(model: Path, held_out: Path, settings: Settings) -> float:
    """The plain statement: each photo at eight even timesteps, noise keyed by the photo and the place."""
    reference = Reference(model, held_out, None, settings)
    count = reference.noise_scheduler.config.num_train_timesteps
    losses = []
    for photo, (mean, std) in enumerate(reference.moments):
        for place in range(TIMESTEPS):
            key = {"seed": settings.seed, "step": HELD_OUT_STEP + place, "sample": photo, "class_image": False}
            latent_noise, noise = (torch.from_numpy(np.array(testing.draw_normal(purpose=purpose, shape=list(mean.shape),
                                                                                 **key))) for purpose in (LATENT, NOISE))
            latent = ((mean + std * latent_noise) * reference.pipe.vae.config.scaling_factor)[None]
            timestep = torch.tensor([(2 * place + 1) * count // (2 * TIMESTEPS)])
            noisy = reference.noise_scheduler.add_noise(latent, noise[None], timestep)
            is_v = reference.noise_scheduler.config.prediction_type == "v_prediction"
            target = reference.noise_scheduler.get_velocity(latent, noise[None], timestep) if is_v else noise[None]
            predicted = reference.predict(noisy, timestep, [INSTANCE_PROMPT])
            losses.append(reference.errors(predicted - target, timestep).mean().item())
    return sum(losses) / len(losses)


@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_the_held_out_loss_is_what_diffusers_says(family: str, material: Callable, tmp_path: Path) -> None:
    """Of the base at step 0 and of the result at the end."""
    output = train(material(family), tmp_path / "run")
    losses = losses_of(output)
    assert list(losses) == [0, 4, 8]
    base, _, held_out = material(family)
    for step, model in ((0, base), (8, output / "model")):
        assert losses[step] == pytest.approx(stated_loss(model, held_out, Settings(seed=3)), rel=TOLERANCE)
    assert abs(losses[8] - losses[0]) > 10 * TOLERANCE * losses[0]
    wrong = stated_loss(base, held_out, Settings(seed=4))
    assert abs(wrong - losses[0]) > 10 * TOLERANCE * losses[0]


def test_validation_changes_nothing(material: Callable, tmp_path: Path) -> None:
    looked = train(material("sd1"), tmp_path / "looked", "--validation-prompt", "a photo", "--num-validation-images", "1",
                   "--validation-inference-steps", "2")
    plain = train(material("sd1"), tmp_path / "plain", "--validation-data-dir", "")
    weights = "model/unet/diffusion_pytorch_model.safetensors"
    assert (looked / weights).read_bytes() == (plain / weights).read_bytes()
    assert not (plain / "validation.jsonl").exists()


def test_a_resumed_run_has_each_validation_once(material: Callable, tmp_path: Path) -> None:
    whole = train(material("sd1"), tmp_path / "whole")
    half = train(material("sd1"), tmp_path / "half", "--max-train-steps", "7", "--checkpointing-steps", "6")
    assert list(losses_of(half)) == [0, 4, 7]
    train(material("sd1"), half, "--resume-from-checkpoint", "latest")
    assert losses_of(half) == losses_of(whole)


def test_a_loss_that_a_kill_left_out_is_made_up_for(material: Callable, tmp_path: Path) -> None:
    """The images of a validation are written before its loss: those of step 4 are there, its line is not."""
    images = ["--validation-prompt", "a photo", "--num-validation-images", "1", "--validation-inference-steps", "2"]
    whole = train(material("sd1"), tmp_path / "whole", *images)
    half = train(material("sd1"), tmp_path / "half", "--max-train-steps", "7", "--checkpointing-steps", "4", *images)
    lines = (half / "validation.jsonl").read_text().splitlines(keepends=True)
    (half / "validation.jsonl").write_text(lines[0])
    assert len(lines) == 3 and (half / "samples" / "step-00000004").is_dir()
    train(material("sd1"), half, "--resume-from-checkpoint", "latest", *images)
    assert losses_of(half) == losses_of(whole)


def test_the_base_stands_above_the_tuned(material: Callable, tmp_path: Path) -> None:
    """In one grid, with the same seeds; the base's images are those of step 0."""
    output = train(material("sd1"), tmp_path / "run", "--validation-prompt", "a photo", "--num-validation-images", "2",
                   "--validation-inference-steps", "2")
    first, last = (sorted((output / "samples" / f"step-0000000{step}").glob("*seed*.png")) for step in (0, 8))
    assert [path.name for path in first] == [path.name for path in last] == ["00_seed-3.png", "01_seed-4.png"]
    drawn = run(["sample", "--model", str(material("sd1")[0]), "--prompt", "a photo", "--steps", "2", "--seed", "3",
                 "--prompt-syntax", "plain", "--output", str(tmp_path / "base")])
    assert np.array_equal(Image.open(drawn.stdout.strip()), Image.open(first[0])), drawn.stderr
    grid = np.asarray(Image.open(output / "samples" / "step-00000008" / "grid.png"))
    for path in (*first, *last):
        assert holds(grid, np.asarray(Image.open(path))), path
    alone = np.asarray(Image.open(output / "samples" / "step-00000000" / "grid.png"))
    assert alone.shape[0] < grid.shape[0] and alone.shape[1] == grid.shape[1]


def holds(grid: np.ndarray, image: np.ndarray) -> bool:
    """Whether the image is somewhere in the grid, pixel for pixel."""
    height, width = image.shape[:2]
    return any(np.array_equal(grid[y:y + height, x:x + width], image)
               for y in range(grid.shape[0] - height + 1) for x in range(grid.shape[1] - width + 1)
               if np.array_equal(grid[y, x], image[0, 0]))


def test_held_out_photos_need_a_prompt_that_is_trained(material: Callable, tmp_path: Path) -> None:
    """Trained by a folder of kohya's, or with several subjects, photos without captions would have another prompt."""
    base, photos, held_out = material("sd1")
    shutil.copytree(photos, tmp_path / "me" / "10_ohwx man")
    shutil.copytree(held_out, tmp_path / "named" / "1_ohwx man")
    captioned = shutil.copytree(held_out, tmp_path / "captioned")
    for photo in list(captioned.glob("*.png")):
        photo.with_suffix(".txt").write_text("ohwx man laughs")
    words = ["--base", str(base), "--output", str(tmp_path / "run")]
    kohya = ["--images", str(tmp_path / "me")]
    several = [word for folder in ("me", "named") for word in ("--concepts", json.dumps({"images": str(tmp_path / folder)}))]
    for subjects, folder, said in (
            (kohya, held_out, "3 of 3 photos have no caption, and no photo is trained with the prompt \"a photo of sks person\""),
            (several, held_out, "3 of 3 photos have no caption that says which of 2 subjects they show"),
            (kohya, tmp_path / "named", ""), (kohya, captioned, ""), (several, tmp_path / "named", ""), (several, captioned, ""),
            ([*kohya, "--instance-prompt", "ohwx man"], held_out, "")):
        for command in ("check", "train") if said else ("check",):
            ended = run([command, *words, *subjects, "--validation-data-dir", str(folder)])
            assert ended.returncode == (2 if said else 0), ended.stderr
            assert said in ended.stderr and ended.stderr.count("validation_data_dir") == (1 if said else 0), ended.stderr
    assert not (tmp_path / "run").exists()


def test_held_out_captions_that_the_model_would_cut_are_refused(material: Callable, tmp_path: Path) -> None:
    """As those of the photos that are trained on: the loss would be that of other words."""
    base, photos, held_out = material("sd1")
    captioned = shutil.copytree(held_out, tmp_path / "held_out")
    caption = sorted(captioned.glob("*.png"))[1].with_suffix(".txt")
    words = ["--base", str(base), "--images", str(photos), "--output", str(tmp_path / "run"), "--validation-data-dir", str(captioned)]
    for count, refused in ((75, False), (76, True)):
        caption.write_text("a " * count)
        for command in ("check", "train") if refused else ("check",):
            ended = run([command, *words])
            assert ended.returncode == (2 if refused else 0), ended.stderr
            assert (f"caption of {caption.with_suffix('.png')}: is too long (got 76 tokens; allowed: 75)" in ended.stderr) == refused
    assert not (tmp_path / "run").exists()


def test_held_out_photos_that_are_trained_on_too_are_named(material: Callable, tmp_path: Path) -> None:
    """By their bytes, whatever their names; and what is wrong with the files beside them."""
    base, photos, held_out = material("sd1")
    more = shutil.copytree(held_out, tmp_path / "held_out")
    trained = sorted(photos.glob("*.png"))[2]
    shutil.copyfile(trained, more / "other.png")
    (more / "gone.txt").write_text("a caption")
    words = ["--base", str(base), "--images", str(photos), "--output", str(tmp_path / "run"), "--device", "cpu", "--report-to", "none",
             "--max-train-steps", "1"]
    for command in ("check", "train"):
        ended = run([command, *words, "--validation-data-dir", str(more)])
        assert ended.returncode == 0, ended.stderr
        assert f"{more / 'other.png'}: is trained on too, as {trained}" in ended.stderr and ended.stderr.count("trained on too") == 1
        assert ended.stderr.count(f"{more / 'gone.txt'}: a caption without a photo of the same name") == 1
    assert "trained on too" not in run(["check", *words, "--overwrite", "--validation-data-dir", str(held_out)]).stderr


def test_held_out_photos_that_cannot_be_read_are_skipped(material: Callable, tmp_path: Path) -> None:
    """With on_bad_image: skip, as those that are trained on."""
    base, photos, held_out = material("sd1")
    more = shutil.copytree(held_out, tmp_path / "held_out")
    (more / "broken.png").write_bytes(b"no image")
    words = ["--max-train-steps", "1", "--on-bad-image", "skip"]
    whole, skipped = (train((base, photos, folder), tmp_path / f"run{i}", *words) for i, folder in enumerate((held_out, more)))
    assert losses_of(skipped) == losses_of(whole)
    ended = run(["train", "--base", str(base), "--images", str(photos), "--output", str(tmp_path / "again"), "--device", "cpu",
                 "--validation-data-dir", str(more), *words])
    assert ended.returncode == 0 and "broken.png" in ended.stderr, ended.stderr
    for photo in held_out.glob("*.png"):
        (more / photo.name).unlink()
    ended = run(["check", "--base", str(base), "--images", str(photos), "--validation-data-dir", str(more), *words])
    assert ended.returncode == 2 and "broken.png" in ended.stderr, ended.stderr


def test_held_out_photos_are_checked_first(material: Callable, tmp_path: Path) -> None:
    base, photos, _ = material("sd1")
    words = ["--base", str(base), "--images", str(photos), "--output", str(tmp_path / "run")]
    for folder, said in ((tmp_path / "nowhere", "nowhere"), (tmp_path / "bad", "broken.png")):
        if folder.name == "bad":
            folder.mkdir()
            (folder / "broken.png").write_bytes(b"no picture")
        for command in ("check", "train"):
            ended = run([command, *words, "--validation-data-dir", str(folder)])
            assert ended.returncode == 2 and said in ended.stderr + ended.stdout, ended.stderr
            assert not (tmp_path / "run").exists()
