"""`auto_caption_rate`: what the portrait classifier sees besides the subject stands behind the instance prompt of a photo without a caption."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import sdtune
from PIL import Image
from program import run

ROOT = Path(__file__).resolve().parents[2]
PHOTOS = ROOT / "examples" / "me"
PROMPT = "a photo of sks person"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for photo in sorted(PHOTOS.glob("*.png"))[:3]:
        shutil.copy(photo, folder)
    return folder


def captions(folder: Path) -> list[str]:
    return [photo.get("auto_caption", photo["caption"]) for photo in json.loads((folder / "run.json").read_text())["images"]]


def train(photos: Path, output: Path, *options: str) -> tuple[int, str]:
    done = run(["train", "--images", str(photos), "--base", "portrait-128", "--output", str(output), "--device", "cpu", "--no-with-prior-preservation", "--report-to", "none",
                *([] if "--max-train-steps" in options else ["--max-train-steps", "1"]), *options])
    return done.returncode, done.stderr


def test_renders_are_captioned_by_what_they_show(photos: Path, tmp_path: Path) -> None:
    """As labels.jsonl of the renders says it."""
    code, told = train(photos, tmp_path / "run", "--auto-caption-rate", "1")
    assert code == 0 and "automatic captions of 3 photos" in told, told
    labels = [json.loads(line) for line in (PHOTOS / "labels.jsonl").read_text().splitlines()]
    for caption, label in zip(captions(tmp_path / "run"), labels, strict=False):
        shown = label["context"]
        assert caption.startswith(f"{PROMPT} wearing a"), caption
        assert f" {shown['clothes_color']} " in caption and (shown["hat"] == "none" or f" {shown['hat_color']} " in caption), (caption, shown)


def test_without_it_photos_have_the_instance_prompt(photos: Path, tmp_path: Path) -> None:
    assert train(photos, tmp_path / "run", "--auto-caption-rate", "0")[0] == 0
    assert captions(tmp_path / "run") == [PROMPT] * 3


def test_a_caption_of_its_own_stays(photos: Path, tmp_path: Path) -> None:
    own = "a photo of sks person in the rain"
    first = min(photos.glob("*.png"))
    first.with_suffix(".txt").write_text(own)
    assert train(photos, tmp_path / "run", "--auto-caption-rate", "1")[0] == 0
    found = captions(tmp_path / "run")
    assert found[0] == own and all(caption.startswith(f"{PROMPT} wearing ") for caption in found[1:])


def test_what_it_cannot_read_is_refused_where_it_was_asked_for(photos: Path, tmp_path: Path) -> None:
    """A camera's photo by name; without the words on the command line it keeps the instance prompt."""
    Image.open(min(photos.glob("*.png"))).convert("RGB").save(photos / "camera.jpg")
    code, error = train(photos, tmp_path / "run", "--auto-caption-rate", "1")
    assert code == 2 and "auto_caption_rate" in error and "camera.jpg" in error, error
    assert not (tmp_path / "run").exists()
    (photos / "camera.txt").write_text("a photo of sks person at home")
    assert train(photos, tmp_path / "run", "--auto-caption-rate", "1")[0] == 0


def test_a_missing_classifier_is_named(photos: Path, tmp_path: Path) -> None:
    code, error = train(photos, tmp_path / "run", "--auto-caption-rate", "1", "--identity-classifier", str(tmp_path / "nowhere"))
    assert code == 2 and "nowhere" in error and "auto_caption_rate" in error, error
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_a_rate_shows_photos_with_and_without(photos: Path, tmp_path: Path) -> None:
    """Half is between all and none, each a loss of its own; the same command gives the same bits."""
    losses = {}
    for rate in ("0", "0.5", "1"):
        for attempt in range(2):
            folder = tmp_path / f"{rate}-{attempt}"
            assert train(photos, folder, "--auto-caption-rate", rate, "--max-train-steps", "3", "--learning-rate", "0")[0] == 0
            losses[rate, attempt] = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert losses[rate, 0] == losses[rate, 1]
    assert losses["0", 0] != losses["0.5", 0] != losses["1", 0] != losses["0", 0]


def test_a_run_resumes_with_the_rate_it_began_with(photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert train(photos, folder, "--auto-caption-rate", "0.5", "--checkpointing-steps", "1", "--max-train-steps", "2")[0] == 0
    code, error = train(photos, folder, "--auto-caption-rate", "1", "--max-train-steps", "3", "--resume-from-checkpoint", "latest")
    assert code == 2 and "auto_caption_rate" in error, error
    assert train(photos, folder, "--auto-caption-rate", "0.5", "--max-train-steps", "3", "--resume-from-checkpoint", "latest")[0] == 0


def test_one_that_the_model_would_not_see_to_its_end_is_refused(photos: Path, tmp_path: Path) -> None:
    """`check` says what `train` says; without the description the same prompt fits."""
    prompt = ["--instance-prompt", "a photo of sks person" + " on a beach" * 20]
    assert train(photos, tmp_path / "fits", "--auto-caption-rate", "0", *prompt)[0] == 0
    for command in ("train", "check"):
        done = run([command, "--images", str(photos), "--base", "portrait-128", "--output", str(tmp_path / "run"), "--auto-caption-rate", "1", *prompt])
        assert done.returncode == 2, done.stderr
        for photo in photos.glob("*.png"):
            assert f"automatic caption of {photo}" in done.stdout + done.stderr and "too long" in done.stdout + done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


def test_check_of_a_resumed_run_sees_the_same_captions(photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert train(photos, folder, "--auto-caption-rate", "0.5", "--checkpointing-steps", "1", "--max-train-steps", "2")[0] == 0
    resumed = {"images": str(photos), "base": "portrait-128", "output": str(folder), "device": "cpu", "with_prior_preservation": False,
               "max_train_steps": 3, "resume_from_checkpoint": "latest"}
    assert not sdtune.check(sdtune.TrainConfig(**resumed, auto_caption_rate=0.5))
    assert any("auto_caption_rate" in problem.where + problem.what for problem in sdtune.check(sdtune.TrainConfig(**resumed, auto_caption_rate=1.0)))
