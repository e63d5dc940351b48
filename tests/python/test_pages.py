"""Pages that are made from the code are those of this code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

import sdtune

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_english  # noqa: E402
import check_layers  # noqa: E402
import make_performance_table  # noqa: E402
import model_card  # noqa: E402
from bench.models import MODELS  # noqa: E402

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("models/**/*.md"), *ROOT.glob("examples/**/*.md")]
OF_EARLIER_COMMITS = {ROOT / "docs" / "measurements" / "house.md"}  # its table has a column of files that are gone
# Folders of other programs, a place for a model that git ignores, patterns.
NO_FILES_OF_OURS = {"models/Lora", "models/loras", "models/tiny-random", "tests/LAYER/ROOM/x_test.cpp", "scripts/docker/NAME"}
# kohya's, Hugging Face's, CMake's and build's.
FLAGS_OF_OTHERS = {"--mpi", "--ss", "--ds", "--local-dir", "--include", "--preset", "--install", "--wheel", "--help", "--version",
                   "--read-only", "--shm-size", "--rng", "--sampling-method", "--scheduler", "--push-to-hub", "--hub-token", "--fsdp",
                   "--deepspeed", "--multi_gpu", "--num_processes", "--num_machines", "--mixed_precision", "--no_python",
                   "--gpus-per-task", "--gpu-bind", "--http-put-response-hop-limit", "--system-site-packages", "--ignore-installed"}
FOLDERS = "app|cmake|configs|docs|examples|model|models|python|requirements|scripts|tests|train"


def named_files(text: str) -> list[str]:
    """The paths from the root that a page names outside of links; each name of a list in braces by itself."""
    found = re.findall(rf"(?<![\w./~-])(?:{FOLDERS})/[\w./*{{}},-]+", re.sub(r"\]\([^)]*\)", "]", text))
    paths = []
    for path in (word.rstrip(".,-") for word in found):
        whole = re.match(r"(.*)\{(.*)\}(.*)", path)
        paths += [whole[1] + name + whole[3] for name in whole[2].split(",")] if whole else [path]
    return paths


@pytest.mark.parametrize("script", ["make_api_pages.py", "draw_map.py", "make_performance_table.py"])
def test_pages_are_not_stale(script: str) -> None:
    package = str(Path(sdtune.__file__).parent.parent)
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / script), "--check"], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": package}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_row_of_another_batch_than_its_name_is_refused() -> None:
    """A training's file says its batch, a forward pass's command does, or bench.py's default stands: 8 of 10 M."""
    of_training, of_command = {"command": "train", "model": {"batch": 8}}, {"command": "forward --batch 4"}
    for measured, batch in ((of_training, 8), (of_command, 4), ({"command": "forward --model 10m"}, 8)):
        make_performance_table.check_batch("file", f"train_10m_b{batch}", measured)
        with pytest.raises(SystemExit, match=f"is of batch {batch}"):
            make_performance_table.check_batch("file", f"train_10m_b{batch + 1}", measured)
    assert {name: model.batch for name, model in MODELS.items()} == make_performance_table.OWN_BATCH


def test_model_cards_are_those_of_the_records() -> None:
    assert [str(path) for path, card in model_card.cards().items() if path.read_text() != card] == []


def test_every_public_name_stands_in_a_page() -> None:
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    missing = [name for name in sdtune.__all__ if name != "testing" and f"## {name}\n" not in pages]
    assert not missing


def test_links_of_the_documents_lead_somewhere() -> None:
    broken = [f"{page.relative_to(ROOT)}: {target}" for page in PAGES for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text())
              if "://" not in target and not (page.parent / target).exists()]
    assert not broken


def test_files_that_the_documents_name_are_there() -> None:
    gone = [f"{page.relative_to(ROOT)}: {path}" for page in PAGES if page not in OF_EARLIER_COMMITS
            for path in named_files(page.read_text()) if path not in NO_FILES_OF_OURS and not any(ROOT.glob(path))]
    assert not gone


def test_files_that_comments_name_are_there() -> None:
    texts = chain(check_english.comment_texts(), check_english.docstring_texts(), check_english.stub_texts())
    gone = [f"{place}:{line}: {path}" for place, line, text in texts for path in named_files(text)
            if path not in NO_FILES_OF_OURS and not any(ROOT.glob(path))]
    assert not gone


def test_files_of_brace_lists_and_globs_are_named_one_by_one() -> None:
    text = "see model/base/error.h, docs/{plan,gone}.md and (tests/python/test_*.py). [link](model/none.h); runs/model/x; a/docs/y"
    assert named_files(text) == ["model/base/error.h", "docs/plan.md", "docs/gone.md", "tests/python/test_*.py"]


def test_flags_that_the_documents_name_are_there() -> None:
    """Of the program, in docs/reference.md; or of a script."""
    known = set(re.findall(r"--[a-z][\w-]+", (ROOT / "docs" / "reference.md").read_text())) | FLAGS_OF_OTHERS
    for script in (ROOT / "scripts").rglob("*"):
        if script.suffix in {".py", ".sh"}:
            known |= set(re.findall(r"--[a-z][\w-]+", script.read_text()))
    gone = [f"{page.relative_to(ROOT)}: {flag}" for page in PAGES for flag in re.findall(r"(?<![\w-])--[a-z][\w-]+", page.read_text())
            if flag not in known and flag.replace("--no-", "--", 1) not in known]
    assert not gone


def test_every_room_stands_in_the_map_s_tables() -> None:
    rows = "\n".join(line for line in (ROOT / "docs" / "architecture.md").read_text().splitlines() if line.startswith("| "))
    rooms = [room.split("/")[1] for room in check_layers.ALLOWED if room.startswith(("model/", "train/")) and room.count("/") == 1]
    missing = [room for room in rooms if not re.search(rf"(?:\| |, ){room}(?:,| \|)", rows) and room != "portrait"]
    assert len(rooms) > 25 and not missing
