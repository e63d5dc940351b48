"""report.html in a real browser without a network: every image decodes, every curve has a size, nothing is requested.

SDTUNE_SCREENSHOTS=1 trains as docs/report.md says and writes the screenshot that it and the README show.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import open_chromium
from PIL import Image
from program import ROOT, run
from selenium import webdriver
from tiny_models import make_pipeline
from training_reference import write_base, write_photos

WIDTH, PHONE_WIDTH = 1200, 390
PICTURE, PICTURE_WIDTH, PICTURE_HEIGHT = ROOT / "docs/pictures/report.png", 1100, 1330
LARGEST = 320_000  # bytes of the screenshot: images of 128 px do not compress as those of 64 px did
COMMAND = ("train --images examples/me --max-train-steps 400 --lr-scheduler cosine --identity-steps 100 "
           '--validation-prompt "a photo of sks person" --validation-steps 100')


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Headless Chromium of scripts/apt-test-packages.txt; every host name leads nowhere."""
    chrome = open_chromium(tmp_path_factory.mktemp("profile"), WIDTH, 900)
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with images, held-out photos and a title that is no markup, alone in a folder."""
    folder = tmp_path_factory.mktemp("report")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base")
    photos, held_out = write_photos(folder / "photos", 3, seed=0), write_photos(folder / "held_out", 2, seed=5)
    output = folder / "me <b>& you"
    ended = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
                 "--validation-data-dir", str(held_out), "--validation-prompt", "a <b>photo</b>", "--validation-steps", "20",
                 "--num-validation-images", "2", "--validation-inference-steps", "2", "--max-train-steps", "60",
                 "--price-per-hour", "2"])
    assert ended.returncode == 0, ended.stderr
    alone = folder / "elsewhere" / "report.html"
    alone.parent.mkdir()
    shutil.copy(output / "report.html", alone)
    return alone


def open_page(browser: webdriver.Chrome, report: Path, width: int, height: int = 900, scheme: str = "light") -> None:
    """As a screen of this size shows it: a window cannot be narrower than 500 px."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width == PHONE_WIDTH})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.get(report.as_uri())


@pytest.fixture
def page(browser: webdriver.Chrome, report: Path) -> webdriver.Chrome:
    open_page(browser, report, WIDTH)
    return browser


def test_every_image_decodes_and_every_curve_has_a_size(page: webdriver.Chrome) -> None:
    widths = page.execute_script("return [...document.images].map(i => i.complete ? i.naturalWidth : 0)")
    assert widths and min(widths) > 0
    squeezed = page.execute_script("return [...document.images].filter(i => !i.closest('.photos')).map(i => "
                                   "i.width / i.height * i.naturalHeight / i.naturalWidth)")
    assert squeezed == pytest.approx([1] * len(squeezed), rel=0.02)  # of the shape that they have
    boxes = page.execute_script("return [...document.querySelectorAll('polyline')].map(p => {"
                                "const b = p.getBoundingClientRect(); return [b.width, b.height]})")
    assert len(boxes) >= 5 and all(width > 100 for width, _ in boxes)
    assert sum(height > 10 for _, height in boxes) >= 3  


def test_nothing_is_asked_for_and_nothing_complains(page: webdriver.Chrome) -> None:
    assert page.execute_script("return performance.getEntriesByType('resource').filter("
                               "e => !e.name.startsWith('data:')).map(e => e.name)") == []
    assert [entry for entry in page.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")] == []
    assert page.execute_script("return document.scripts.length") == 0


def test_the_title_is_text_and_the_sections_are_there(page: webdriver.Chrome) -> None:
    assert page.title == "sdtune: me <b>& you"
    assert page.execute_script("return document.querySelectorAll('b').length") == 0
    headings = page.execute_script("return [...document.querySelectorAll('h2')].map(h => h.textContent)")
    assert headings == ["Photos", "Base and model, same prompt and seeds", "Likeness and validation over the steps", "Curves",
                        "The run", "What was set, and where it came from", "Cost", "Attempts"]


@pytest.mark.parametrize("width", [WIDTH, PHONE_WIDTH])
def test_it_fits_the_window(browser: webdriver.Chrome, report: Path, width: int) -> None:
    """No image or curve is wider than the page, on a telephone either."""
    open_page(browser, report, width)
    page = browser
    assert page.execute_script("return innerWidth") == width
    widest = page.execute_script("return Math.max(...[...document.querySelectorAll('img, svg')].map("
                                 "e => e.getBoundingClientRect().right))")
    assert widest <= page.execute_script("return document.documentElement.clientWidth")
    assert page.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(browser: webdriver.Chrome, report: Path, scheme: str) -> None:
    """As the system has it: WCAG's contrast of every text is at least 4.5."""
    open_page(browser, report, WIDTH, scheme=scheme)
    worst, is_dark = browser.execute_script("""
        const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
            .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
            return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
        const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
            if (!/rgba\\(.*, 0\\)/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
        const ratios = [...document.querySelectorAll('h1, h2, p, td, th, figcaption, small, svg text, summary')].map(e => {
            const style = getComputedStyle(e), ink = light(e.namespaceURI.endsWith('svg') ? style.fill : style.color);
            const paper = light(behind(e)); return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); });
        return [Math.min(...ratios), light(getComputedStyle(document.body).backgroundColor) < 0.2];""")
    assert is_dark == (scheme == "dark") and worst >= 4.5


def test_the_screenshot_of_the_documents(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """A wide screen in light beside a telephone in dark; of the run whose command docs/report.md names."""
    if os.environ.get("SDTUNE_SCREENSHOTS") == "1":
        ended = run([*shlex.split(COMMAND), "--output", str(tmp_path / "me"), "--device", "cpu"], cwd=ROOT, timeout=3000)
        assert ended.returncode == 0, ended.stderr
        parts = []
        for width, scheme in ((PICTURE_WIDTH, "light"), (PHONE_WIDTH, "dark")):
            open_page(browser, tmp_path / "me" / "report.html", width, PICTURE_HEIGHT, scheme)
            parts.append(Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB"))
        picture = Image.new("RGB", (sum(part.width for part in parts), PICTURE_HEIGHT))
        picture.paste(parts[0], (0, 0))
        picture.paste(parts[1], (parts[0].width, 0))
        picture.quantize(256, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    with Image.open(PICTURE) as picture:
        assert abs(picture.width - PICTURE_WIDTH - PHONE_WIDTH) <= 20 and picture.height == PICTURE_HEIGHT
    assert PICTURE.stat().st_size <= LARGEST
    document = " ".join((ROOT / "docs/report.md").read_text().split())
    assert COMMAND in document and f"{PICTURE_WIDTH} px" in document and f"{PHONE_WIDTH} px" in document
    assert "pictures/report.png" in document and "docs/pictures/report.png" in (ROOT / "README.md").read_text()
