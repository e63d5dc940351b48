"""What a trained model says of itself: the words that call its subject, prompts from a file, and an honest base."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import diffusers
import pytest
from PIL import Image
from program import ROOT, run
from tiny_models import make_pipeline
from training_reference import write_base, write_photos

WARNING = 'sdtune: warning: --prompt: does not say "sks person"'


def train(base: Path, photos: Path, output: Path, *options: str) -> str:
    """One step; what it said on stderr."""
    done = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
                "--no-with-prior-preservation", "--max-train-steps", "1", "--report-to", "none", *options])
    assert done.returncode == 0, done.stderr
    return done.stderr


def sample(model: Path, output: Path, *options: str) -> tuple[str, list[Path]]:
    """stderr and the images of two sampling steps."""
    done = run(["sample", "--model", str(model), "--output", str(output), "--steps", "2", "--device", "cpu", *options])
    assert done.returncode == 0, done.stderr
    return done.stderr, [Path(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trigger")
    return write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base")


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; its model was copied away, as users do."""
    folder = tmp_path_factory.mktemp("trained")
    train(base, write_photos(folder / "photos", 2, seed=0), folder / "run")
    shutil.copytree(folder / "run" / "model", folder / "copied")
    return folder / "copied"


def test_the_result_knows_its_trigger_and_diffusers_loads_it(trained: Path) -> None:
    assert json.loads((trained / "sdtune.json").read_text()) == {"trigger": "sks person", "rendered_people": False}
    inspected = json.loads(run(["inspect", str(trained), "--json"]).stdout)
    assert inspected["trigger"] == "sks person" and inspected["problems"] == [] and "learnt_from" not in inspected
    pipeline = diffusers.StableDiffusionPipeline.from_pretrained(trained, safety_checker=None)
    assert pipeline.unet is not None


def test_a_pipeline_saves_the_trigger_and_replaces_models_alone(trained: Path, tmp_path: Path) -> None:
    """What lies in a folder that is no model, photos or a run, is not ours to delete; a model's folder is replaced."""
    import sdtune

    pipe = sdtune.StableDiffusionPipeline.from_pretrained(trained)
    photos = write_photos(tmp_path / "me", 1, seed=0)
    before = {path.name: path.read_bytes() for path in photos.iterdir()}
    with pytest.raises(sdtune.ConfigError, match="has files in it and is no model") as refused:
        pipe.save_pretrained(photos)
    assert refused.value.exit_code == 2 and {path.name: path.read_bytes() for path in photos.iterdir()} == before
    (tmp_path / "mine").mkdir()
    for _ in range(2):  # into an empty folder, and over the model that is there then
        pipe.save_pretrained(tmp_path / "mine")
        assert json.loads((tmp_path / "mine" / "sdtune.json").read_text()) == json.loads((trained / "sdtune.json").read_text())


def test_sample_warns_when_the_prompt_lacks_the_trigger(trained: Path, base: Path, tmp_path: Path) -> None:
    said, _ = sample(trained, tmp_path, "--prompt", "a photo of a person")
    assert said.count("warning") == 1 and WARNING in said
    assert "warning" not in sample(trained, tmp_path, "--prompt", "SKS person, smiling")[0]
    assert "warning" not in sample(base, tmp_path, "--prompt", "a photo of a person")[0]


def test_captions_without_the_trigger_train_none(base: Path, tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "photos", 2, seed=0)
    for photo in [path for path in photos.iterdir() if path.suffix != ".txt"]:
        photo.with_suffix(".txt").write_text("my neighbour in the garden")
    train(base, photos, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "model" / "sdtune.json").read_text())["trigger"] == ""


def test_prompts_from_a_file(trained: Path, base: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.yaml"
    prompts.write_text('- "a photo of {trigger} on a beach"\n- a photo of a dog\n')
    said, images = sample(trained, tmp_path / "a", "--prompts", str(prompts), "--num-images", "2", "--seed", "4")
    assert [path.name for path in images] == [
        "a-photo-of-sks-person-on-a-beach_4.png", "a-photo-of-sks-person-on-a-beach_5.png",
        "a-photo-of-a-dog_4.png", "a-photo-of-a-dog_5.png"]
    assert '--prompts: 1 of 2 do not say "sks person"' in said
    assert Image.open(images[0]).text["parameters"].startswith("a photo of sks person on a beach\n")
    alone = sample(trained, tmp_path / "b", "--prompt", "a photo of a dog", "--seed", "5")[1][0]
    assert alone.read_bytes() == images[3].read_bytes()
    said, images = sample(base, tmp_path / "c", "--prompts", str(prompts))
    assert images[0].name == "a-photo-of-a-person-on-a-beach_0.png" and "warning" not in said
    images = sample(base, tmp_path / "d", "--prompts", str(prompts), "--trigger", "zwx man")[1]
    assert images[0].name == "a-photo-of-zwx-man-on-a-beach_0.png"


def test_the_installed_prompts_are_found_by_name(trained: Path, tmp_path: Path) -> None:
    said, images = sample(trained, tmp_path, "--prompts", "portraits", "--steps", "1")
    assert len(images) == 20 == len(set(images)) and "warning" not in said
    assert all("sks-person" in path.name for path in images)


@pytest.mark.parametrize(("words", "said"), [
    (["--prompt", "a", "--prompts", "portraits"], "--prompts: does not go with --prompt"),
    (["--prompts", "absent.txt"], "--prompts: there is no such file (got absent.txt)"),
])
def test_wrong_prompts_are_named(words: list[str], said: str) -> None:
    done = run(["sample", *words])
    assert done.returncode == 2 and f"sdtune: error: {said}" in done.stderr


def test_a_base_of_rendered_people_says_what_it_is_for(base: Path, tmp_path: Path) -> None:
    """Once, for photos from elsewhere; never for renders, and never on another base. The result passes it on."""
    rendered = tmp_path / "rendered"
    shutil.copytree(base, rendered)
    (rendered / "sdtune.json").write_text('{"rendered_people": true}')
    renders = tmp_path / "renders"
    assert run(["render", "--output", str(renders), "--subject", "1", "--views", "2", "--no-captions"]).returncode == 0
    photos = write_photos(tmp_path / "photos", 2, seed=0)

    lines = [line for line in train(rendered, photos, tmp_path / "a").splitlines() if "docs/weights.md" in line]
    assert len(lines) == 1 and "2 of 2 photos are not renders" in lines[0] and "--base" in lines[0]
    assert "weights.md" not in train(rendered, renders, tmp_path / "b")
    assert "weights.md" not in train(base, photos, tmp_path / "c")
    note = json.loads((tmp_path / "a" / "model" / "sdtune.json").read_text())
    assert note == {"trigger": "sks person", "rendered_people": True}


def test_the_bundled_base_says_what_it_is() -> None:
    folder = ROOT / "models" / "portrait-64"
    if (folder / "model_index.json").exists():
        assert json.loads((folder / "sdtune.json").read_text())["rendered_people"] is True


def test_a_missing_bundled_base_is_one_line(tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "photos", 2, seed=0)
    for base in ([], ["--base", "portrait-64"]):
        done = run(["train", "--images", str(photos), "--output", str(tmp_path / "run"), *base],
                   SDTUNE_SHARE=str(tmp_path / "empty"))
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "bundled base" in done.stderr and "docs/weights.md" in done.stderr
