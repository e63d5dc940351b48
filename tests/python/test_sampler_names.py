"""The tables of docs/samplers.md that map sampler names hold what the program has and writes."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import get_args

from PIL import Image
from program import ROOT, run

import sdtune

PAGE = (ROOT / "docs" / "samplers.md").read_text()
# What stable-diffusion.cpp allows for --sampling-method and --scheduler.
METHODS = {"euler", "euler_a", "heun", "dpm2", "dpm++2s_a", "dpm++2m", "dpm++2mv2", "ipndm", "ipndm_v", "lcm", "ddim_trailing", "tcd",
           "res_multistep", "res_2s", "er_sde", "euler_cfg_pp", "euler_a_cfg_pp", "euler_ge", "dpm++2m_sde", "dpm++2m_sde_bt", "lms"}
SCHEDULERS = {"discrete", "karras", "exponential", "ays", "gits", "smoothstep", "sgm_uniform", "simple", "kl_optimal", "lcm", "bong_tangent"}


def table(head: str) -> dict[str, list[str]]:
    """The rows of the table with this first column: other cells by the first."""
    (block,) = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    cells = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in block.splitlines()]
    return {row[0].strip("`"): row[1:] for row in cells}


SOLVERS, CURVES = table("sdtune"), table("schedule behind a name")


def written(tiny_sd1: Path, folder: Path, sampler: str) -> str:
    """What an image's metadata call a sampler."""
    done = run(["sample", "--model", str(tiny_sd1), "--prompt", "a", "--steps", "1", "--width", "32", "--height", "32",
                "--sampler", sampler, "--output", str(folder / sampler), "--device", "cpu"])
    assert done.returncode == 0, done.stderr
    (path,) = (folder / sampler).glob("*.png")
    text = Image.open(path).info["parameters"]
    return re.search(r"Sampler: (.*?), CFG scale", text)[1]


def test_the_rows_are_the_program_s_own_list() -> None:
    names = set(get_args(sdtune.types.Sampler))
    assert len(SOLVERS) == 13 and set(SOLVERS) <= names
    made = {solver + curve for solver in SOLVERS for curve in ("", *CURVES)}
    assert names <= made and {name for name in made if name.startswith("dpm++2m")} <= names


def test_a1111_s_names_are_those_that_images_carry(tiny_sd1: Path, tmp_path: Path) -> None:
    for solver, (_, theirs, _) in SOLVERS.items():
        assert written(tiny_sd1, tmp_path, solver) == theirs
    for curve, (_, theirs, _) in CURVES.items():
        assert written(tiny_sd1, tmp_path, f"dpm++2m{curve}") == f"DPM++ 2M, Schedule type: {theirs}"


def test_diffusers_classes_are_there() -> None:
    import diffusers
    for name, (theirs, _, _) in SOLVERS.items():
        class_name = theirs.split(",")[0]
        assert hasattr(diffusers, class_name) and hasattr(sdtune, class_name), name
    for key in (cell[0] for cell in CURVES.values() if ":" in cell[0]):
        assert key.strip("`").split(":")[0] in diffusers.EulerDiscreteScheduler.from_config({}).config


def test_solvers_that_do_not_know_zero_snr_are_warned_of(tmp_path: Path) -> None:
    import diffusers
    model = ROOT / "models/portrait-64"
    assert json.loads((model / "scheduler/scheduler_config.json").read_text())["rescale_betas_zero_snr"]
    told = set()
    for name, (theirs, _, _) in SOLVERS.items():
        knows = "rescale_betas_zero_snr" in inspect.signature(getattr(diffusers, theirs.split(",")[0])).parameters
        done = run(["sample", "--model", str(model), "--prompt", "a person", "--steps", "4", "--sampler", name, "--output", str(tmp_path)])
        assert done.returncode == 0, done.stderr
        warned = f"--sampler: begins below the noisiest level of this model (got {name})" in done.stderr
        assert warned != knows, (name, done.stderr)
        told.add(warned)
    assert told == {False, True}


def test_stable_diffusion_cpp_s_names_are_its_own() -> None:
    for cells, known in ((SOLVERS, METHODS), (CURVES, SCHEDULERS)):
        for name, (*_, theirs) in cells.items():
            assert theirs == "none" or set(re.findall(r"`(.*?)`", theirs)) <= known | {"ddim_trailing"}, name
