"""Looks at likeness by a face recognition network: any base, any photos. Detector and network are made by hand
(face_networks.py), base and photos are random."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import face_networks
import numpy as np
import pytest
from face_networks import smooth_picture
from PIL import Image
from program import run
from test_faces import ask
from tiny_models import make_pipeline
from training_reference import write_base

import sdtune

# The prompts of a look, of a subject of two words.
PROMPTS = ["a photo of sks person in front of a blue wall", "a picture of sks person at the beach",
           "a photo of sks person wearing a red t-shirt", "a portrait of sks person in the woods",
           "a photo of sks person wearing a blue jacket", "a portrait of sks person against a green background",
           "a photo of sks person wearing a white cap", "a pencil drawing of sks person"]
STEPS = 4
INFERENCE_STEPS = 2


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A base of camera photos, photos of "one person" (nearly the same picture), a detector and a network."""
    folder = tmp_path_factory.mktemp("identity_model")
    photos = folder / "photos"
    photos.mkdir()
    draw = np.random.default_rng(7)
    for i in range(3):
        noise = draw.normal(0, 25, (face_networks.SIDE, face_networks.SIDE, 3))
        Image.fromarray((smooth_picture(0) + noise).clip(0, 255).astype(np.uint8)).save(photos / f"{i}.png")
    return {"base": write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base"), "images": photos,
            "face_model": face_networks.detector(folder / "yunet.onnx"),
            "identity_model": face_networks.recognizer(folder / "network.onnx")}


def words(parts: dict[str, Path], output: Path, *options: str) -> list[str]:
    named = [f"--{name.replace('_', '-')}={path}" for name, path in parts.items()]
    return ["train", *named, "--output", str(output), "--device", "cpu", "--learning-rate", "1e-2", "--lr-scheduler",
            "constant", "--lr-warmup-steps", "0", "--max-train-steps", str(STEPS), "--identity-steps", "2",
            "--num-identity-images", "8", "--identity-inference-steps", str(INFERENCE_STEPS), *options]


@pytest.fixture(scope="module")
def watched(parts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("watched") / "run"
    ended = run(words(parts, output))
    assert ended.returncode == 0, ended.stderr
    return output


def looks_of(output: Path) -> list[dict]:
    return [json.loads(line) for line in (output / "identity.jsonl").read_text().splitlines()]


def embeddings(parts: dict[str, Path], pictures: list[Image.Image]) -> np.ndarray:
    """Of each picture, small ones enlarged as before they are searched: [n, D]."""
    sent = [np.asarray(picture.convert("RGB").resize((face_networks.SIDE,) * 2, Image.Resampling.BICUBIC))
            if picture.width < face_networks.SIDE else np.asarray(picture.convert("RGB")) for picture in pictures]
    lines, code = ask(["--recognizer", parts["identity_model"], parts["face_model"]], *sent)
    assert code == 0, lines
    return np.array([line["embedding"] for line in lines[1:]])


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_the_curve_of_a_camera_base(parts: dict[str, Path], watched: Path) -> None:
    looks = looks_of(watched)
    assert [look["step"] for look in looks] == [0, 2, 4]
    for look in looks:
        assert look["score"] == pytest.approx(min(look["identity"], 1) + look["prompt_fidelity"] - look["leak"])
        assert look["accepted"] in np.arange(9) / 8 and look["prompt_fidelity"] in np.arange(9) / 8
        assert look["leak"] in np.arange(5) / 4
    assert len({look["identity"] for look in looks}) == 3
    assert (watched / "best" / "best.json").is_file() and "likeness: score" in (watched / "report.html").read_text()


def test_identity_is_the_cosine_between_other_people_and_the_photos(parts: dict[str, Path], watched: Path) -> None:
    """Of the base, stated anew: its pictures drawn by the Python module, the network asked by hand, the rest NumPy."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(parts["base"], device="cpu")

    def draw(prompts: list[str], first_seed: int) -> np.ndarray:
        seeds = [first_seed + i for i in range(len(prompts))]
        return embeddings(parts, pipe(prompts, seed=seeds, num_inference_steps=INFERENCE_STEPS).images)

    photos = embeddings(parts, [Image.open(path) for path in sorted(parts["images"].iterdir())])
    mean = unit(photos.mean(0))
    alike = np.mean([photos[i] @ unit(np.delete(photos, i, 0).mean(0)) for i in range(len(photos))])
    others = np.mean(np.concatenate([draw(["a photo of a person"] * 8, 2_000_000 + 8 * i) for i in range(2)]) @ mean)
    own = draw(PROMPTS, 1_000_000) @ mean
    of_class = draw(["a photo of a person"] * 4, 1_000_000) @ mean
    first = looks_of(watched)[0]
    assert alike > others
    assert first["identity"] == pytest.approx((own.mean() - others) / (alike - others), abs=5e-3)
    halfway = (alike + others) / 2
    assert first["accepted"] == np.mean(own >= halfway) and first["leak"] == np.mean(of_class >= halfway)


def test_it_goes_on_where_it_was_with_the_same_zero(parts: dict[str, Path], watched: Path, tmp_path: Path) -> None:
    """The base's people are drawn by the base again, not by the weights of the checkpoint."""
    output = tmp_path / "run"
    assert run(words(parts, output, "--max-train-steps", "2", "--checkpointing-steps", "1")).returncode == 0
    (output / "identity.jsonl").unlink()
    ended = run(words(parts, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    found = {look["step"]: look for look in looks_of(output)}
    wanted = {look["step"]: look for look in looks_of(watched)}
    assert found[4] == wanted[4]


def test_a_lora_is_watched_the_same_way(parts: dict[str, Path], watched: Path, tmp_path: Path) -> None:
    output = tmp_path / "lora"
    ended = run(words(parts, output, "--method", "lora"))
    assert ended.returncode == 0, ended.stderr
    looks = looks_of(output)
    assert [look["step"] for look in looks] == [0, 2, 4]
    for name in ("identity", "accepted", "prompt_fidelity", "leak"):
        assert looks[0][name] == pytest.approx(looks_of(watched)[0][name], abs=1e-6)
    assert looks[2]["identity"] != looks[0]["identity"]


def test_looking_changes_nothing_of_the_training(parts: dict[str, Path], watched: Path, tmp_path: Path) -> None:
    blind = {name: path for name, path in parts.items() if name != "identity_model"}
    assert run(words(blind, tmp_path / "run", "--identity-steps", "none")).returncode == 0
    losses = [[json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]
              for output in (tmp_path / "run", watched)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize(("change", "said"), [
    ({"identity_model": "nowhere.onnx"}, "identity_model: is no face recognition network (got nowhere.onnx; allowed: an .onnx file)"),
    ({"identity_model": "README.md"}, "identity_model: is no face recognition network (got README.md; allowed: an .onnx file)"),
    ({"identity_steps": "none"}, "identity_model: needs looks to read"),
    ({"identity_judge": "models/portrait-judge"}, "identity_model: looks instead of the judge"),
])
def test_what_cannot_recognize_is_refused(change: dict[str, str], said: str, parts: dict[str, Path], tmp_path: Path) -> None:
    more = [f"--{name.replace('_', '-')}={value}" for name, value in change.items()]
    ended = run(words(parts, tmp_path / "run", *more))
    assert ended.returncode == 2 and said in ended.stderr.replace("--identity-", "identity_"), ended.stderr
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_no_network_is_refused(parts: dict[str, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_text("nothing")
    ended = run(words({**parts, "identity_model": broken}, tmp_path / "run"))
    assert ended.returncode == 2 and f"{broken} is no ONNX network" in ended.stderr, ended.stderr
    assert not (tmp_path / "run").exists()


def test_photos_without_a_face_are_named_before_the_first_step(parts: dict[str, Path], tmp_path: Path) -> None:
    """Cascades see none in a smooth picture."""
    faceless = {name: path for name, path in parts.items() if name != "face_model"}
    ended = run(words(faceless, tmp_path / "run"))
    assert ended.returncode == 2 and "no face was found in any of the 3 photos" in ended.stderr, ended.stderr
    assert not list((tmp_path / "run").glob("checkpoints/*"))


def test_several_subjects_have_their_own_photos(parts: dict[str, Path], tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(parts["images"], second)
    for path in second.iterdir():
        Image.fromarray(smooth_picture(11)).save(path)
    config = tmp_path / "two.yaml"
    config.write_text(f"concepts:\n  - images: {parts['images']}\n    instance_prompt: a photo of sks person\n"
                      f"    class_prompt: a photo of a person\n  - images: {second}\n    instance_prompt: a photo of ohwx dog\n"
                      f"    class_prompt: a photo of a dog\n")
    others = {name: path for name, path in parts.items() if name != "images"}
    ended = run([*words(others, tmp_path / "run"), "--config", str(config)])
    assert ended.returncode == 0, ended.stderr
    assert [look["step"] for look in looks_of(tmp_path / "run")] == [0, 2, 4]
