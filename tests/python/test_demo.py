"""The promise of the README: five photos, the bundled base and its defaults, and the portrait classifier's figures of what comes out."""

from __future__ import annotations

import base64
import io
import json
import os
import re
from pathlib import Path

import pytest
from PIL import Image
from program import run

ROOT = Path(__file__).resolve().parent.parent.parent
PHOTOS = ROOT / "examples" / "me"

# Far below what the model card says of ten subjects, because this is one subject and one image a prompt.
ACCEPTED_AT_LEAST = 0.3
FIDELITY_AT_LEAST = 0.4
# Alone on the machine: scripts/test.sh runs these by themselves.
THREADS = {"OMP_NUM_THREADS": str(os.cpu_count() or 1)}


@pytest.fixture(scope="module", params=["portrait-64", pytest.param("portrait-128", marks=pytest.mark.long)])
def base(request: pytest.FixtureRequest) -> str:
    """The default base takes twice as long as the smaller one."""
    return request.param


@pytest.fixture(scope="module")
def photos(base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The five of the README are of the people that the default base knows; eval refuses to read them as portrait-64's."""
    if base == "portrait-128":
        return PHOTOS
    output = tmp_path_factory.mktemp("photos") / "me"
    ended = run(["render", "--subject", "3", "--detail", "64", "--views", "5", "--size", "256", "--no-captions", "--output", str(output)])
    assert ended.returncode == 0, ended.stderr
    return output


@pytest.fixture(scope="module")
def tuned(base: str, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("demo") / "me"
    ended = run(["train", "--images", str(photos), "--output", str(output), "--base", base], timeout=1200, **THREADS)
    assert ended.returncode == 0, ended.stderr
    assert "real portraits need" not in ended.stderr
    return output


def test_the_classifier_recognizes_the_person(tuned: Path, photos: Path, tmp_path: Path) -> None:
    """Likeness far above the base's and above a shuffled subject's, and prompts still followed."""
    ended = run(["eval", "--model", str(tuned), "--images", str(photos), "--quick", "--output", str(tmp_path / "eval")],
                timeout=1200, **THREADS)
    assert ended.returncode == 0, ended.stderr
    rows = json.loads((tmp_path / "eval" / "eval.json").read_text())["rows"]
    figures = {name: {figure: value["value"] for figure, value in row.items()} for name, row in rows.items()}
    assert figures["tuned"]["accepted"] >= ACCEPTED_AT_LEAST
    assert figures["tuned"]["subject_fidelity"] >= FIDELITY_AT_LEAST
    assert figures["base"]["accepted"] <= 0.1 and figures["shuffled"]["accepted"] <= 0.1
    assert figures["tuned"]["subject_fidelity"] >= figures["base"]["subject_fidelity"] + 0.3
    assert figures["renders"]["accepted"] >= 0.9


def test_the_report_shows_base_and_model_side_by_side(tuned: Path) -> None:
    """Of a run with nothing but defaults: the same prompts and seeds of both, and the time it took within its share."""
    page = (tuned / "report.html").read_text()
    section = page.split("Base and model, same prompt and seeds")[1].split("<h2")[0]
    images = [base64.b64decode(data, validate=True) for data in re.findall(r'src="data:image/png;base64,([^"]+)"', section)]
    assert len(images) >= 2 and len(set(images)) == len(images)
    for image in images:
        with Image.open(io.BytesIO(image)) as opened:
            assert opened.width >= 64
    assert page.index("<img") < page.index("<polyline")  # portraits before curves


def test_the_sheet_has_the_photos_the_base_and_the_tuned_model(base: str, tuned: Path, photos: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    ended = run(["sample", "--model", str(tuned), "--prompts", "demo", "--steps", "4", "--grid", str(sheet), "--compare",
                 base, "--references", str(photos), "--output", str(tmp_path / "pictures")], **THREADS)
    assert ended.returncode == 0, ended.stderr
    assert sheet.is_file() and len(list((tmp_path / "pictures").glob("*.png"))) >= 6


@pytest.mark.parametrize(("name", "megabytes"), [("portrait-64", 32), ("portrait-128", 60)])
def test_a_base_is_small_enough_for_the_repository(name: str, megabytes: int) -> None:
    """Its weights, float16; the finer base has twice the channels of latents and wider networks. Its card says how they were made."""
    base = ROOT / "models" / name
    weights = list(base.rglob("*.safetensors"))
    assert {path.parent.name for path in weights} == {"unet", "text_encoder", "vae"}
    assert sum(path.stat().st_size for path in weights) <= megabytes * 1024 * 1024
    assert "sdtune pretrain" in (base / "README.md").read_text()
