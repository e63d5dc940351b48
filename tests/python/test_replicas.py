"""Ranks that start from other files: refused on every rank with one line, and nothing is written."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ports import free_port
from program import SDTUNE
from test_ranks import photos, start_rank  # noqa: F401 (photos is a fixture)

WEIGHTS = "base/unet/diffusion_pytorch_model.safetensors"


def command(*options: str) -> list[str]:
    """The same words on every rank: each finds its own files in its working directory."""
    return [str(SDTUNE), "train", "--images", "photos", "--base", "./base", "--output", "run", "--device", "cpu",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--max-train-steps", "4",
            "--checkpointing-steps", "1", "--train-batch-size", "1", "--peer-timeout", "60", "--start-timeout", "60", *options]


def tree(folder: Path) -> dict[str, str]:
    """Hashes of the files below a folder, but of those that a refused run may leave."""
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in ("last_error.json", "run.lock")}


@pytest.fixture(scope="module")
def earlier(tiny_sd1: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """A working directory with base, photos and a finished run of two ranks."""
    folder = tmp_path_factory.mktemp("earlier")
    shutil.copytree(tiny_sd1, folder / "base")
    shutil.copytree(photos, folder / "photos")
    shutil.copytree(photos, folder / "held_out")
    port = free_port()
    ranks = [start_rank(rank, 2, port, command(), folder) for rank in range(2)]
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    return folder


def change_weight(folder: Path) -> None:
    """The last digit of a float32: a base that loads as well."""
    path = folder / WEIGHTS
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(bytes(data))


def change_photos(folder: Path) -> None:
    """Another photo under the same name, and a caption that the others do not have."""
    shutil.copy(folder / "photos" / "0.png", folder / "photos" / "3.png")
    (folder / "photos" / "1.txt").write_text("a caption")


def change_held_out(folder: Path) -> None:
    """Other pixels in a photo that is only looked at."""
    shutil.copy(folder / "held_out" / "0.png", folder / "held_out" / "3.png")


def nothing(_: Path) -> None:
    """The same files."""


# name: (ranks, the one that differs, what it has otherwise, options of all, options of that one, what the line says)
CASES: dict[str, tuple[int, int, Callable[[Path], None], list[str], list[str], list[str]]] = {
    "base": (2, 1, change_weight, ["--overwrite"], [], ["another base (1 of ", WEIGHTS.removeprefix("base/")]),
    "photos": (4, 2, change_photos, ["--overwrite"], [], ["other images or captions (2 of 5: 1.png, 3.png)"]),
    "held-out photos": (2, 1, change_held_out, ["--overwrite", "--validation-data-dir", "held_out"], [],
                        ["other held-out photos (1 of 5: 3.png)"]),
    "options": (3, 1, nothing, ["--overwrite"], ["--learning-rate", "0.25"],
                ["another configuration", "learning_rate: 0.25 instead of learning_rate: "]),
}


@pytest.mark.parametrize("name", CASES)
def test_other_files_are_refused_on_every_rank(name: str, earlier: Path, tmp_path: Path) -> None:
    ranks, odd, change, options, of_odd, said = CASES[name]
    folders = [tmp_path / f"rank{rank}" for rank in range(ranks)]
    for folder in folders:
        shutil.copytree(earlier, folder)
    change(folders[odd])
    before = [tree(folder / "run") for folder in folders]
    port = free_port()
    processes = [start_rank(rank, ranks, port, command(*options, *(of_odd if rank == odd else [])), folders[rank])
                 for rank in range(ranks)]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [2] * ranks, errors
    lines = [[line for line in text.splitlines() if line.startswith("sdtune: error:")] for text in errors]
    assert all(len(of_rank) == 1 for of_rank in lines), errors
    assert len({of_rank[0] for of_rank in lines}) == 1, lines
    assert f"sdtune: error: rank {odd} (" in lines[0][0]
    assert all(text in lines[0][0] for text in [*said, "rank 0 ("]), lines[0][0]
    assert [tree(folder / "run") for folder in folders] == before
    recorded = json.loads((folders[0] / "run/last_error.json").read_text())
    assert recorded["exit_code"] == 2
    assert f"rank {odd} (" in recorded["problems"][0]["where"]


def test_the_same_files_elsewhere_are_the_same(earlier: Path, tmp_path: Path) -> None:
    """What the cases above would refuse if they compared anything but content."""
    folders = [tmp_path / f"rank{rank}" for rank in range(2)]
    for folder in folders:
        shutil.copytree(earlier, folder)
    port = free_port()
    processes = [start_rank(rank, 2, port, command("--resume-from-checkpoint", "latest", "--max-train-steps", "5"), folder)
                 for rank, folder in enumerate(folders)]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
