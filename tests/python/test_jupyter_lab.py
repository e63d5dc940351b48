"""A run in JupyterLab in Chromium: started, watched, stopped from another cell, resumed, stopped by its button, compared.

SDTUNE_SCREENSHOTS=1 trains as long as a portrait takes and writes the screenshots that docs/python.md shows.
"""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import open_chromium
from jupyter_lab import Notebook, lab
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/pictures"
KEEP = os.environ.get("SDTUNE_SCREENSHOTS") == "1"
STEPS, EVERY = (300, 60) if KEEP else (60, 12)
LARGEST = 160_000  # bytes of a screenshot
CELLS = [
    f"""import sdtune

config = sdtune.TrainConfig(images="me", base="./portrait-64", output="runs/me", max_train_steps={STEPS}, seed=0,
                            with_prior_preservation=False, validation_prompt="a photo of sks person on a beach",
                            validation_steps={EVERY}, num_validation_images=4, validation_inference_steps=10,
                            identity_steps={EVERY}, num_identity_images=4)
config""",
    "run = sdtune.start(config)",
    "run.stop()\nrun.wait().step",
    'run = sdtune.start(config, resume_from_checkpoint="latest")',
    'run = sdtune.start(config, resume_from_checkpoint="latest")\nresult = run.wait()\nresult.step',
    "sdtune.plan(config)",
    "result.metrics",
    """prompts = ["a photo of sks person", "a photo of sks person wearing a green hat", "a photo of sks person on a beach",
           "a photo of sks person in a forest", "a pencil sketch of sks person"]
settings = {"seed": [1, 2, 3, 4, 5], "sampler": "dpm++2m_sde", "num_inference_steps": 20}
result.pipeline()(prompts, **settings)""",
    """base = sdtune.StableDiffusionPipeline.from_pretrained("portrait-64")
base(prompts, **settings)""",
    "result",
]
CONFIG, START, STOP, RESUME, AGAIN, PLAN, METRICS, TUNED, BASE, REPORT = range(len(CELLS))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Wide enough for the notebook with the side bar closed."""
    chrome = open_chromium(tmp_path_factory.mktemp("profile"), 1100, 1300, "127.0.0.1")
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def notebook(browser: webdriver.Chrome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    (folder / "notebooks/portrait-64").symlink_to(ROOT / "models/portrait-64")  # so that no path of this machine is seen
    shutil.copytree(ROOT / "examples/me", folder / "notebooks/me")
    (folder / "notebooks/me/notes.txt").write_text("a caption that was left behind")  # what the live view is to warn of
    with lab(folder / "notebooks", folder) as address:
        opened = Notebook(browser, address, folder / "notebooks/portraits.ipynb", CELLS)
        browser.get_log("browser")  # JupyterLab's own, until here
        yield opened


def keep(notebook: Notebook, name: str, first: int, last: int) -> None:
    """A screenshot from the cell `first` to the end of `last`, in 256 colours so that it stays small."""
    if not KEEP:
        return
    browser = notebook.browser
    assert browser.execute_script("return document.body.innerText.includes(arguments[0])", str(ROOT)) is False
    box = browser.execute_script("""
        const [first, last] = arguments; first.scrollIntoView({block: 'start'});
        const a = first.getBoundingClientRect(), b = last.getBoundingClientRect();
        return [a.left, a.top, Math.max(a.right, b.right), Math.min(b.bottom, innerHeight - 24)];""",
                                 notebook.cell(first), notebook.cell(last))
    image = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB").crop([round(side) for side in box])
    image.quantize(256, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


def bar(notebook: Notebook, index: int) -> float:
    """What the live view's bar of a cell shows, as a share of all steps; 0 before it knows."""
    found: Any = notebook.browser.execute_script(
        "const p = arguments[0].querySelector('progress'); return p && p.hasAttribute('value') ? [p.value, p.max] : [0, 1]",
        notebook.output(index))
    return float(found[0] / found[1]) if found[1] == STEPS else 0.0


def widths_of_curves(notebook: Notebook, index: int) -> list[int]:
    """Of the lines in a live view's charts, the narrowest first, in px. A curve of a single point is 0 px wide."""
    widths: list[int] = notebook.browser.execute_script(
        "return [...arguments[0].querySelectorAll('svg polyline')].map(line => Math.round(line.getBoundingClientRect().width))",
        notebook.output(index))
    return sorted(widths)


def images_step(notebook: Notebook, index: int) -> int:
    """The step of the validation images that a live view shows; 0 before the first."""
    found = re.search(r"images of step (\d+)", notebook.text(index))
    return int(found[1]) if found else 0


def test_a_run_is_watched_stopped_from_another_cell_and_resumed(notebook: Notebook) -> None:
    notebook.finish(CONFIG)
    assert "validation_prompt" in notebook.text(CONFIG) and "set here" in notebook.text(CONFIG)
    notebook.finish(START)
    notebook.until(lambda: bar(notebook, START) > 0, "the bar of the first step")
    early = bar(notebook, START)
    notebook.until(lambda: bar(notebook, START) > early, "the bar advances")
    notebook.until(lambda: len(notebook.loaded_images(START)) == 4, "four validation images")
    assert min(notebook.loaded_images(START)) == 64
    notebook.until(lambda: images_step(notebook, START) >= EVERY * (3 if KEEP else 1), "images of a later step")
    assert "ETA" in notebook.text(START) and "loss, smoothed" in notebook.text(START)
    notebook.until(lambda: "likeness" in notebook.text(START), "the curve of likeness")
    notebook.until(lambda: len(widths := widths_of_curves(notebook, START)) >= 2 and widths[0] > 10, "curves of more than one point")
    assert "a caption without a photo" in notebook.text(START), "the warning is shown"
    keep(notebook, "live_view", START, START)
    notebook.finish(STOP)
    step = int(notebook.text(STOP).strip().splitlines()[-1].split()[-1])
    assert 0 < step < STEPS
    notebook.until(lambda: "stopped; state saved" in notebook.text(START), "the live view says how it ended")
    notebook.run(RESUME)
    notebook.until(lambda: bar(notebook, RESUME) > step / STEPS, "the resumed run goes on behind the step that was saved")
    (button,) = notebook.find(RESUME, "button")
    assert button.text == "Stop and save"
    button.click()
    notebook.until(lambda: "stopped; state saved" in notebook.text(RESUME), "the button stopped it")
    keep(notebook, "live_view_resumed", RESUME, RESUME)
    notebook.finish(AGAIN, 600)
    assert notebook.text(AGAIN).strip().splitlines()[-1].split()[-1] == str(STEPS)
    notebook.until(lambda: f"done after step {STEPS}" in notebook.text(AGAIN) and bar(notebook, AGAIN) == 1, "the last run's end")


@pytest.mark.long
def test_results_are_compared(notebook: Notebook) -> None:
    for index in (PLAN, METRICS, TUNED, BASE):
        notebook.finish(index)
    assert len(notebook.find(PLAN, "table")) == 2 and "H100" in notebook.text(PLAN)
    assert len(notebook.find(METRICS, "svg polyline")) >= 3 and "steps" in notebook.text(METRICS)
    for index in (TUNED, BASE):
        notebook.until(lambda index=index: notebook.loaded_images(index) == [64] * 5, "five images")
        assert "seed 2" in notebook.text(index) and "green hat" in notebook.text(index)
    sources = [[image.get_attribute("src") for image in notebook.find(index, "img")] for index in (TUNED, BASE)]
    assert not set(sources[0]) & set(sources[1]), "the base's images are others"
    keep(notebook, "notebook_results", METRICS, BASE)
    keep(notebook, "notebook_config", CONFIG, CONFIG)
    keep(notebook, "notebook_plan", PLAN, PLAN)


def test_the_report_is_in_the_notebook(notebook: Notebook) -> None:
    notebook.finish(REPORT)
    (frame,) = notebook.find(REPORT, "iframe")
    keep(notebook, "notebook_report", REPORT, REPORT)
    notebook.browser.switch_to.frame(frame)
    try:
        headings = notebook.until(lambda: [item.text for item in notebook.browser.find_elements(By.TAG_NAME, "h2")], "its headings", 30)
        assert headings[:2] == ["Photos", "Base and model, same prompt and seeds"]
        assert notebook.browser.execute_script("return document.images.length && [...document.images].every(i => i.naturalWidth > 0)")
    finally:
        notebook.browser.switch_to.default_content()


def test_the_browser_s_console_has_no_errors(notebook: Notebook) -> None:
    assert [entry for entry in notebook.browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("name", ["live_view", "live_view_resumed", "notebook_results", "notebook_report", "notebook_config", "notebook_plan"])
def test_screenshots_are_small_and_shown_in_the_documents(name: str) -> None:
    path = PICTURES / f"{name}.png"
    assert path.stat().st_size <= LARGEST
    with Image.open(path) as image:
        assert image.width > 500 and image.height > 100 and len(image.convert("RGB").getcolors(1 << 20)) > 16
    assert f"pictures/{name}.png" in (ROOT / "docs/python.md").read_text()


def test_the_container_has_the_versions_that_are_tested() -> None:
    tested, shipped = ((ROOT / "requirements" / name).read_text().splitlines() for name in ("test.txt", "workbench.txt"))
    pins = [line for line in shipped if line and not line.startswith("#")]
    assert any(line.startswith("jupyterlab==") for line in pins) and set(pins) <= set(tested)
