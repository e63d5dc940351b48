"""The notebooks of examples/notebooks: run in a kernel on a tiny random base, typed, and small as they are committed."""

from __future__ import annotations

import base64
import html
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest
from notebooks import shown
from PIL import Image

import sdtune

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 400_000  # bytes of a committed notebook
MOST_OF_ALL = 800_000
# Without class images and at a rate that is seen after some steps: a base brings its own defaults in such a file.
DEFAULTS = "with_prior_preservation: false\ntrain_batch_size: 1\nlearning_rate: 1.0e-2\n"


def code_of(path: Path) -> list[Any]:
    """The code cells of a notebook."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def run(name: str, folder: Path, **parameters: object) -> list[Any]:
    """The code cells after a run with other parameters, which a cell behind the tagged one sets as papermill does."""
    notebook = nbformat.read(FOLDER / name, as_version=4)
    (at,) = [index for index, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    given = nbformat.v4.new_code_cell("\n".join(f"{key} = {value!r}" for key, value in parameters.items()))
    notebook.cells.insert(at + 1, given)
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell is not given]


def outputs_of(cells: list[Any], source: str) -> list[Any]:
    """The outputs of the one cell that holds `source`."""
    (cell,) = [cell for cell in cells if source in cell.source]
    return list(cell.outputs)


def image_of(outputs: list[Any]) -> np.ndarray[Any, Any]:
    """The image that a cell shows; of a large one a committed notebook keeps the JPEG."""
    (data,) = [output["data"].get("image/png", output["data"].get("image/jpeg")) for output in outputs
               if {"image/png", "image/jpeg"} & set(output.get("data", {}))]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def rows_of(sheet: np.ndarray[Any, Any], side: int, gap: int = 4) -> list[np.ndarray[Any, Any]]:
    """The three rows of a sheet that sdtune.image_grid has made, each from its first image on."""
    return [sheet[gap + row * (side + gap) :][:side, gap:] for row in range(3)]


def text_of(outputs: list[Any]) -> str:
    return "".join(output.get("text", "") for output in outputs if output.output_type == "stream")


@pytest.fixture(scope="module")
def base(tiny_sd1: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny base with defaults of its own, as the bundled base has them."""
    folder = tmp_path_factory.mktemp("base") / "tiny"
    shutil.copytree(tiny_sd1, folder)
    for name in ("sdtune_defaults.yaml", "sdtune_defaults_lora.yaml"):
        (folder / name).write_text(DEFAULTS)
    return folder


def test_the_first_portrait_is_trained_shown_and_compared(base: Path, tmp_path: Path) -> None:
    cells = run("first_portrait.ipynb", tmp_path, photos=str(ROOT / "examples/me"), base=str(base), output="runs/one", steps=6)
    assert "no problems" in shown(outputs_of(cells, "sdtune.check"))
    assert "application/vnd.jupyter.widget-view+json" in outputs_of(cells, "sdtune.train")[0]["data"]
    assert "6 steps" in shown(outputs_of(cells, "result.metrics"))
    sheet = shown(outputs_of(cells, "portraits = pipe"))
    assert sheet.count("<img") == 6 and "seed 5" in sheet and "city at night" in sheet
    compared = image_of(outputs_of(cells, "base_pipe("))
    side = 32
    rows = rows_of(compared, side)
    assert len({row.tobytes() for row in rows}) == 3, "photos, base and tuned model differ"
    photo = sdtune.crop_image(sdtune.load_image(sorted((ROOT / "examples/me").glob("*.png"))[0]), side)
    assert (rows[0][:, :side] == photo).all() and (rows[1][:, :side] != photo).any()
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(base)
    alone = np.asarray(pipe("a photo of sks person", seed=0).images[0])
    differences = [int(np.abs(row[:, :side].astype(int) - alone.astype(int)).max()) for row in rows[1:]]
    assert differences[0] <= 1 < differences[1], differences  # alone and among others sums may be rounded otherwise
    assert (tmp_path / "runs/one/model/model_index.json").is_file()
    report = (tmp_path / "runs/one/report.html").read_text()
    assert html.escape(report, quote=True) in shown(cells[-1].outputs), "the report is shown whole"


@pytest.mark.long
def test_own_photos_are_trained_in_the_background_stopped_and_resumed(base: Path, tmp_path: Path) -> None:
    given = {"device": "cpu", "seed": 1, "validation_steps": 100, "num_validation_images": 2, "validation_inference_steps": 1}
    photos = ROOT / "examples/backpack_dog"
    cells = run("own_photos.ipynb", tmp_path, photos=str(photos), base=str(base), output="runs/me", method="lora",
                class_prompt="a photo of dog", instance_prompt="a photo of sks dog", steps=400, options=given)
    checked = outputs_of(cells, "sdtune.verify_image")
    assert text_of(checked).count("JPEG") == 5 and image_of(checked).shape[1] > 5 * 160
    assert "no problems" in shown(outputs_of(cells, "sdtune.check"))
    assert shown(outputs_of(cells, "sdtune.plan")).count("<table") == 2
    assert "running" in text_of(outputs_of(cells, "run.is_running"))
    assert "RunProgress(phase='training'" in shown(outputs_of(cells, "run.is_running"), "text/plain")
    stopped = shown(outputs_of(cells, "stopped = run.wait()"))
    assert "none: the run was stopped" in stopped
    step = int(re.search(r"optimizer steps</td><td[^>]*>(\d+)<", stopped)[1])
    assert 0 < step < 400, "it was stopped in the middle"
    resumed = shown(outputs_of(cells, 'resume_from_checkpoint="latest"'))
    assert re.search(r"optimizer steps</td><td[^>]*>400<", resumed) and "srcdoc" in resumed
    assert shown(outputs_of(cells, "run.latest_images")).count("<img") == 2
    assert shown(outputs_of(cells, "num_images_per_prompt=4")).count("<img") == 4
    assert image_of(outputs_of(cells, "def keep")).shape[1] > 8 * 96
    undisturbed = sdtune.train(sdtune.TrainConfig(
        images=str(photos), base=str(base), output=str(tmp_path / "whole"), method="lora", class_prompt="a photo of dog",
        instance_prompt="a photo of sks dog", max_train_steps=400, **given | {"validation_steps": 1000}))
    name = "pytorch_lora_weights.safetensors"
    assert (tmp_path / "runs/me/model" / name).read_bytes() == (undisturbed.model_path / name).read_bytes()


@pytest.mark.long
def test_the_lora_gives_the_same_images_in_diffusers(base: Path, tmp_path: Path) -> None:
    cells = run("lora_in_diffusers.ipynb", tmp_path, photos=str(ROOT / "examples/me"), base=str(base), output="runs/lora", steps=60)
    between, changed = map(int, re.search(r"differ by (\d+) of 255 at most; the LoRA changes pixels by up to (\d+)",
                                          text_of(outputs_of(cells, "largest_difference"))).groups())
    assert between <= 2 < 10 < changed, "equal to each other, and the base without the LoRA is not"
    _, ours, theirs = rows_of(image_of(outputs_of(cells, "base_pipe(")).astype(int), 32)
    assert abs(ours - theirs).max() == between, "the images that are shown are those that were compared"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_is_small_and_holds_no_error(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    outputs = [output for cell in code_of(path) for output in cell.outputs]
    assert path.stat().st_size <= LARGEST
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    text = path.read_text()
    assert not re.search(r"/(work|home|root|tmp|usr)/", text), "no paths of a machine"
    assert all(cell.get("execution_count") is None for cell in code_of(path)) and "execution" not in notebook.metadata
    tagged = [cell for cell in code_of(path) if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == code_of(path)[:1], "parameters stand in the first code cell"


def test_the_committed_notebooks_are_small_together_and_show_results() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"first_portrait", "own_photos", "lora_in_diffusers"}
    assert sum(path.stat().st_size for path in NOTEBOOKS) <= MOST_OF_ALL
    for name in ("first_portrait", "lora_in_diffusers"):  # made by scripts/run_notebooks.py
        sheet = image_of(outputs_of(code_of(FOLDER / f"{name}.ipynb"), "base_pipe("))
        assert sheet.shape[0] > 3 * 64 and sheet.std() > 10


@pytest.mark.parametrize("name", ["first_portrait", "lora_in_diffusers"])
def test_the_parameters_as_committed_would_train(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(FOLDER)
    values: dict[str, Any] = {}
    exec(code_of(FOLDER / f"{name}.ipynb")[0].source, values)  # noqa: S102  our own file
    config = sdtune.TrainConfig(images=values["photos"], base=values["base"], output=str(tmp_path / "run"))
    assert sdtune.check(config) == []


def test_own_photos_leaves_the_steps_to_the_preset() -> None:
    """None that is given would count as the user's own value, which no preset replaces."""
    cells = [cell.source for cell in code_of(FOLDER / "own_photos.ipynb")]
    (making,) = [source for source in cells if "config = sdtune.TrainConfig(" in source]
    for steps in (None, 7):
        values: dict[str, Any] = {"sdtune": sdtune}
        exec(cells[0], values)  # noqa: S102  our own file
        values["steps"] = steps
        exec(making, values)  # noqa: S102
        config = values["config"]
        assert ("max_train_steps" in config.origins()) == (steps is not None) and config.class_prompt == values["class_prompt"]
        assert steps is None or config.max_train_steps == steps


SETTINGS = "[mypy]\nstrict = True\n" + "".join(
    f"[mypy-{name}.*]\nfollow_imports = skip\nignore_missing_imports = True\n" for name in ("torch", "diffusers", "PIL"))


def mypy(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """mypy --strict over a notebook's code; of torch and diffusers it knows nothing, of sdtune the stubs."""
    (folder / "notebook.py").write_text(code)
    (folder / "mypy.ini").write_text(SETTINGS)
    package = Path(sdtune.__file__).parent.parent
    place = {} if package.name == "site-packages" else {"MYPYPATH": str(package)}  # mypy reads site-packages by itself
    return subprocess.run([sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "notebook.py"], cwd=folder, capture_output=True,
                          text=True, env=os.environ | place, check=False)


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_mypy_takes_the_code_of_the_notebooks(path: Path, tmp_path: Path) -> None:
    code = "\n".join(cell.source for cell in code_of(path)) + "\n"
    done = mypy(tmp_path, code)
    assert done.returncode == 0, done.stdout
    wrong = code.replace("images=photos", "imagse=photos")
    done = mypy(tmp_path, wrong)
    assert wrong != code and done.returncode == 1 and 'Unexpected keyword argument "imagse"' in done.stdout, done.stdout
