"""Whatever the options, each photo's file is opened once, and sdtune-faces with a recognition network is started once.

Only report.html opens the photos that it shows once more: it is made of the run folder when the run is over, as by `sdtune report`.
Openings are counted by the kernel, starts by a program in the place of sdtune-faces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import face_networks
import numpy as np
import pytest
from face_networks import smooth_image
from file_opens import FileOpens
from PIL import Image
from program import ROOT, SDTUNE
from tiny_models import make_pipeline
from training_reference import write_base

ME = ROOT / "examples" / "me"
COUNTED_FACES = """#!/bin/sh
echo start >> "{note}"
exec "{faces}" "$@"
"""
OPENINGS = {"train": {2}, "check": {1}, "prepare": {1}, "doctor": {1}}
Program = Callable[..., tuple[set[int], int]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """program(photos, *words): how often each photo was opened, and how often sdtune-faces was started."""
    programs, note = tmp_path / "bin", tmp_path / "starts"
    programs.mkdir()
    shutil.copy(SDTUNE, programs / "sdtune")
    (programs / "sdtune-faces").write_text(COUNTED_FACES.format(note=note, faces=SDTUNE.parent / "sdtune-faces"))
    (programs / "sdtune-faces").chmod(0o755)

    def called(photos: Path, *words: str) -> tuple[set[int], int]:
        images = [path.name for path in photos.iterdir() if path.suffix in (".png", ".jpg", ".webp")]
        with FileOpens(photos) as opens:
            ended = subprocess.run([str(programs / "sdtune"), *words, "--images", str(photos)], text=True, capture_output=True,
                                   timeout=300, check=False, cwd=tmp_path,
                                   env={**os.environ, "OMP_NUM_THREADS": "1", "SDTUNE_SHARE": str(ROOT)})
        assert ended.returncode == 0, ended.stderr
        starts = note.read_text().count("start") if note.exists() else 0
        return {opens.count[name] for name in images}, starts

    return called


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Photos of "one person" as PNG, JPEG and WebP, a base, a detector and a network, made by hand."""
    folder = tmp_path_factory.mktemp("read_once")
    photos = folder / "photos"
    photos.mkdir()
    random = np.random.default_rng(7)
    for ending in ("png", "jpg", "webp"):
        noise = random.normal(0, 25, (face_networks.SIDE, face_networks.SIDE, 3))
        Image.fromarray((smooth_image(0) + noise).clip(0, 255).astype(np.uint8)).save(photos / f"photo.{ending}")
    return {"images": photos, "base": write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base"),
            "face_model": face_networks.detector(folder / "yunet.onnx"),
            "identity_model": face_networks.recognizer(folder / "network.onnx")}


def test_openings_are_counted(tmp_path: Path) -> None:
    """Also two in a row of the same file."""
    for name in ("once", "twice", "never"):
        (tmp_path / name).write_text(name)
    with FileOpens(tmp_path) as opens:
        for name in ("twice", "twice", "once"):
            (tmp_path / name).read_text()
    assert opens.count == {"once": 1, "twice": 2}


@pytest.mark.parametrize("crop", ["center", "face"])
@pytest.mark.parametrize("command", OPENINGS)
def test_with_a_recognition_network(command: str, crop: str, parts: dict[str, Path], program: Program, tmp_path: Path) -> None:
    named = [f"--{name.replace('_', '-')}={path}" for name, path in parts.items() if name != "images"]
    words = [command, *named, "--identity-steps", "1", "--num-identity-images", "8", "--identity-inference-steps", "1",
             "--max-train-steps", "1", "--device", "cpu", "--report-to", "none", "--crop-style", crop]
    if command == "doctor":
        words += ["--contact-sheet", "sheet.png"]
    else:
        words += ["--output", str(tmp_path / "run")]
    assert program(parts["images"], *words) == (OPENINGS[command], 1)
    assert command != "train" or len((tmp_path / "run" / "identity.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("command", OPENINGS)
def test_renders_that_the_portrait_classifier_reads(command: str, program: Program, tmp_path: Path) -> None:
    words = [command, "--identity-steps", "1", "--num-identity-images", "1", "--identity-inference-steps", "1", "--max-train-steps",
             "1", "--device", "cpu", "--report-to", "none", "--num-class-images", "1", "--class-num-inference-steps", "1"]
    if command != "doctor":
        words += ["--output", str(tmp_path / "run")]
    assert program(ME, *words)[0] == OPENINGS[command]
    assert command != "train" or (tmp_path / "run" / "identity.jsonl").is_file()
