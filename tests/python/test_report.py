"""report.html: one file with what a run did, that needs nothing else."""

from __future__ import annotations

import base64
import io
import json
import re
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from program import SDTUNE, run
from tiny_models import make_pipeline
from training_reference import write_base, write_photos


class Page(HTMLParser):
    """What the page shows: text, images by their description, polylines, and everything it points to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text, self.tags, self.sources, self.pictures = "", [], [], {}
        self.open: list[str] = []
        self.feed(path.read_text())
        assert self.open == [], "a tag is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag == "img":
            self.pictures[values["alt"]] = base64.b64decode(values["src"].removeprefix("data:image/png;base64,"), validate=True)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("report")
    return (write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base"),
            write_photos(folder / "photos", 3, seed=0), write_photos(folder / "held_out", 2, seed=5))


def words(material: tuple[Path, Path, Path], output: Path, *options: str) -> list[str]:
    base, photos, held_out = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--validation-data-dir", str(held_out), "--validation-prompt", "a <b>photo</b> & \"more\"",
            "--validation-steps", "30", "--num-validation-images", "2", "--validation-inference-steps", "2",
            "--report-to", "none", *options]


def test_the_page_holds_the_run(material: tuple[Path, Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "me & you"
    ended = run(words(material, output, "--max-train-steps", "60", "--price-per-hour", "36000"))
    assert ended.returncode == 0, ended.stderr
    text = (output / "report.html").read_text()
    page = Page(output / "report.html")
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert not re.search(r"https?://|url\(|@import|<script", text)
    photos = [Path(photo["path"]).name for photo in json.loads((output / "run.json").read_text())["images"]]
    assert list(page.pictures)[:3] == [f"photo {name}" for name in photos]
    pairs = [f"{whose}, seed {seed}" for whose in ("base", "step 60") for seed in (0, 1)]
    assert list(page.pictures)[3:7] == pairs
    for name, file in zip(pairs, [f"step-{step:08d}/{seed:02d}_seed-{seed}.png" for step in (0, 60) for seed in (0, 1)]):
        assert pixels(page.pictures[name]).tobytes() == pixels((output / "samples" / file).read_bytes()).tobytes()
    assert (output / "config.yaml").read_text() in page.text
    assert "me & you" in page.text and "done after step 60 of 60" in page.text
    shown = re.findall(r'aria-label="(.*?): lowest', text)
    assert {"validation loss", "loss", "loss of the photos", "gradient norm", "speed (photos/s)"} <= set(shown)
    assert not {"learning rate", "loss of the class images"} & set(shown)  # a constant, and none
    [attempt] = json.loads((output / "run.json").read_text())["attempts"]
    cost = float(re.search(r"([\d.]+) at 36000.00 an hour", page.text)[1])
    assert cost == pytest.approx(10 * (attempt["ended"] - attempt["started"]), abs=0.006)
    assert "max_train_steps60--max-train-steps" in page.text and "train_batch_size" not in page.text.split("config.yaml")[0]


def pixels(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def test_a_rate_that_changes_has_a_curve(material: tuple[Path, Path, Path], tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "run", "--max-train-steps", "60", "--lr-scheduler", "cosine"))
    assert ended.returncode == 0, ended.stderr
    assert 'aria-label="learning rate: lowest' in (tmp_path / "run" / "report.html").read_text()


def test_a_curve_shows_its_numbers(material: tuple[Path, Path, Path], tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "run", "--max-train-steps", "60"))
    assert ended.returncode == 0, ended.stderr
    losses = [json.loads(line)["loss"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    text = (tmp_path / "run" / "report.html").read_text()
    figure = re.search(r'aria-label="loss: (.*?)">(.*?)</svg>', text)
    told = [float(number) for number in re.findall(r"(?:lowest|highest|last) ([-\d.e+]+)", figure[1])]
    assert told == pytest.approx([min(losses), max(losses), losses[-1]], rel=1e-3)
    thin, bold = (re.search(rf'class="{style}" points="(.*?)"', figure[2])[1].split() for style in ("thin", "bold"))
    assert len(thin) == 60 and len(bold) == 60
    heights = [float(point.split(",")[1]) for point in thin]
    lowest, highest = losses.index(min(losses)), losses.index(max(losses))
    assert heights.index(max(heights)) == lowest and heights.index(min(heights)) == highest  # y grows downwards


def test_a_stopped_run_has_its_page(material: tuple[Path, Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "run"
    process = subprocess.Popen([str(SDTUNE), *words(material, output, "--max-train-steps", "100000")],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (output / "metrics.jsonl").exists() or not (output / "metrics.jsonl").read_text().count("\n"):
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 143
    page = Page(output / "report.html")
    assert "by SIGTERM; it can be resumed" in page.text and "SIGTERM (exit code 143)" in page.text
