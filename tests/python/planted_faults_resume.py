"""Faults of a checkpoint, and what changed since it was written."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from planted_faults import Fault, Place, option
from planted_faults_photos import PNG

STATE = "state.json"
RESUME = ["--resume-from-checkpoint", "latest"]


def prepare(place: Place) -> list[str]:
    """A mask and class images of the user's own; and the options of the run that wrote the checkpoint."""
    first = sorted(place.photos.glob("*.png"))[0]
    Image.new("L", Image.open(first).size, 255).save(first.with_suffix(".mask.png"))
    for index in range(2):
        Image.new("RGB", (32, 32), (90 * index, 20, 20)).save(place.write(f"class/own{index}.png", b""))
    return ["--with-prior-preservation", "--class-data-dir", str(place.folder / "class"), "--num-class-images", "2",
            "--masked-loss", "--resolution", "32", "--train-batch-size", "2", "--max-train-steps", "3",
            "--checkpointing-steps", "2", "--device", "cpu"]


def options_of(place: Place) -> list[str]:
    """The options of that run, for a place that has all its files."""
    return prepare(place)


def checkpoints(place: Place) -> list[Path]:
    found = sorted(path for path in (place.folder / "run" / "checkpoints").iterdir() if path.is_dir())
    assert found
    return found


def damaged(change: Callable[[Path], object]) -> Fault:
    """Every checkpoint, changed."""
    def plant(place: Place) -> list[str]:
        for checkpoint in checkpoints(place):
            change(checkpoint)
        return RESUME
    return plant


def manifest(change: Callable[[dict], object]) -> Fault:
    """Every checkpoint's manifest, changed."""
    def rewrite(checkpoint: Path) -> None:
        path = checkpoint / "manifest.json"
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found))
    return damaged(rewrite)


def state(change: Callable[[dict], object]) -> Fault:
    """Every checkpoint's state, changed with its hash."""
    def rewrite(checkpoint: Path) -> None:
        path = checkpoint / STATE
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found))
        listing = json.loads((checkpoint / "manifest.json").read_text())
        for entry in listing["files"]:
            if entry["name"] == STATE:
                entry |= {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        (checkpoint / "manifest.json").write_text(json.dumps(listing))
    return damaged(rewrite)


def flipped(checkpoint: Path) -> None:
    path = checkpoint / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def one_given(place: Place) -> list[str]:
    checkpoint = checkpoints(place)[-1]
    (checkpoint / STATE).unlink()
    return ["--resume-from-checkpoint", str(checkpoint)]


def beside_another_run(place: Place) -> list[str]:
    """A copy of a checkpoint elsewhere, and in the output's folder those of a run with another seed."""
    newest = checkpoints(place)[-1]
    copy = shutil.copytree(newest, place.folder / "backup" / newest.name)
    state(lambda found: found["settings"].update(seed="5"))(place)
    return ["--resume-from-checkpoint", str(copy)]


def finished_without_checkpoints(place: Place) -> list[str]:
    """What a run leaves that was shorter than checkpointing_steps."""
    shutil.rmtree(place.folder / "run" / "checkpoints")
    return ["--resume-from-checkpoint", "auto"]


def since(change: Callable[[Place], object], *words: str) -> Fault:
    """Something else than the checkpoint changed."""
    def plant(place: Place) -> list[str]:
        change(place)
        return [*RESUME, *words]
    return plant


def first_photo(place: Place) -> Path:
    return sorted(path for path in place.photos.glob("*.png") if not path.stem.endswith("mask"))[0]


def last_photo(place: Place) -> Path:
    return sorted(place.photos.glob("*.png"))[-1]


def rewritten(place: Place) -> None:
    path = place.base / "unet" / "config.json"
    path.write_text(path.read_text() + "\n")


RESUMES: dict[str, Fault] = {
    "checkpoint without a manifest": damaged(lambda checkpoint: (checkpoint / "manifest.json").unlink()),
    "checkpoint whose manifest is not JSON": damaged(lambda checkpoint: (checkpoint / "manifest.json").write_text("{")),
    "checkpoint of another version": manifest(lambda found: found.update(version=2)),
    "checkpoint whose manifest lacks its version": manifest(lambda found: found.pop("version")),
    "checkpoint whose manifest has no list": manifest(lambda found: found.update(files={})),
    "checkpoint whose manifest leads elsewhere": manifest(lambda found: found["files"][0].update(name="../x")),
    "checkpoint whose manifest lacks a file": manifest(lambda found: found["files"].pop()),
    "checkpoint that lacks a file": damaged(lambda checkpoint: (checkpoint / "optimizer.safetensors").unlink()),
    "checkpoint that ends early": damaged(lambda checkpoint: (checkpoint / "optimizer.safetensors").write_bytes(b"")),
    "checkpoint with a wrong byte": damaged(flipped),
    "checkpoint of a later format": state(lambda found: found.update(format_version=9)),
    "checkpoint whose settings are a list": state(lambda found: found.update(settings=[])),
    "checkpoint whose settings hold a number": state(lambda found: found["settings"].update(seed=1)),
    "checkpoint without a choice of operators": state(lambda found: found["implementation"].pop("attention")),
    "checkpoint with an unknown choice of operators": state(lambda found: found["implementation"].update(attention="fast")),
    "checkpoint that is given and damaged": one_given,
    "output with checkpoints of another run": beside_another_run,
    "finished run without checkpoints": finished_without_checkpoints,
    "changed option": option(*RESUME, "--learning-rate", "1e-3"),
    "another optimizer": option(*RESUME, "--optimizer", "lion"),
    "fewer steps than the checkpoint has done": option(*RESUME, "--max-train-steps", "1"),
    "batch that cannot be kept": option(*RESUME, "--train-batch-size", "3"),
    "removed photo": since(lambda place: last_photo(place).unlink()),
    "new photo": since(lambda place: place.write("me/new.png", PNG)),
    "changed photo": since(lambda place: Image.effect_noise((64, 64), 50).convert("RGB").save(last_photo(place))),
    "changed caption": since(lambda place: first_photo(place).with_suffix(".txt").write_text("another caption")),
    "changed mask": since(lambda place: Image.new("L", Image.open(first_photo(place)).size, 9).save(
        first_photo(place).with_suffix(".mask.png"))),
    "changed class image": since(lambda place: Image.new("RGB", (32, 32)).save(place.folder / "class" / "own1.png")),
    "removed class image": since(lambda place: (place.folder / "class" / "own1.png").unlink()),
    "changed base": since(rewritten),
}
