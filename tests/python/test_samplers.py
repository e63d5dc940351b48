"""--sampler: each name generates, what a name stands for, and names that do not exist."""

from __future__ import annotations

import json
import re
import shutil
from itertools import takewhile
from pathlib import Path

import diffusers
import numpy as np
import pytest
import sdtune
import torch
from diffusers.schedulers.scheduling_utils import AysSchedules
from PIL import Image

from diffusers_schedulers import scheduler_class
from program import ROOT, run


def listed_names() -> list[str]:
    """The names of docs/reference.md, which is generated from the option."""
    row = next(line for line in (ROOT / "docs" / "reference.md").read_text().splitlines() if "`--sampler`" in line)
    return re.search(r"one of ([^|]*) \|", row)[1].split(", ")


def draw(folder: Path, target: Path, sampler: str, *more: str) -> np.ndarray:
    done = run(["sample", "--model", str(folder), "--prompt", "a cat", "--steps", "3", "--seed", "3",
                "--sampler", sampler, "--output", str(target), *more])
    assert done.returncode == 0, done.stderr
    return np.asarray(Image.open(done.stdout.strip()), dtype=int)


# What a name stands for in diffusers' words; the number of steps, or the timesteps.
SAMPLERS = {
    "heun_trailing": ("HeunDiscreteScheduler", {"timestep_spacing": "trailing"}, 3),
    "lms_exponential": ("LMSDiscreteScheduler", {"use_exponential_sigmas": True}, 3),
    "unipc_trailing": ("UniPCMultistepScheduler", {"timestep_spacing": "trailing"}, 3),
    "deis_karras": ("DEISMultistepScheduler", {"use_karras_sigmas": True}, 3),
    "dpm++sde": ("DPMSolverSDEScheduler", {}, 3),
    "lcm": ("LCMScheduler", {}, 3),
    "dpm++2m_ays": ("DPMSolverMultistepScheduler", {}, AysSchedules["StableDiffusionTimesteps"]),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_name_gives_the_image_of_diffusers(tiny_sd1: Path, tmp_path: Path, name: str) -> None:
    class_name, options, steps = SAMPLERS[name]
    pipeline = diffusers.StableDiffusionPipeline.from_pretrained(tiny_sd1, safety_checker=None)
    pipeline.scheduler = scheduler_class(class_name).from_config(pipeline.scheduler.config, **options)
    pipeline.set_progress_bar_config(disable=True)
    of_run = {"timesteps": steps} if isinstance(steps, list) else {"num_inference_steps": steps}
    generator = torch.Generator("cpu").manual_seed(3)
    theirs = np.asarray(pipeline("a cat", generator=generator, **of_run).images[0], dtype=int)
    count = ["--steps", str(len(steps))] if isinstance(steps, list) else []
    assert np.abs(draw(tiny_sd1, tmp_path, name, *count) - theirs).max() <= 1
    solver = name.split("_")[0]
    mutant = draw(tiny_sd1, tmp_path, solver if solver != name else "euler_karras", *count)
    assert np.abs(mutant - theirs).max() > 3


def test_reference_lists_every_schedule() -> None:
    names = listed_names()
    assert len(names) >= 40 and len(set(names)) == len(names)
    page = (ROOT / "docs" / "samplers.md").read_text()
    lines = page.splitlines()
    table = takewhile(lambda line: line.startswith("|"), lines[next(i for i, line in enumerate(lines) if line.startswith("| solver")):])
    header, _, *rows = table
    suffixes = [cell.strip().strip("`") for cell in header.split("|")[5:-1]]
    documented = set()
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        solver = cells[0].strip("`")
        documented |= {solver} | {solver + suffix for suffix, cell in zip(suffixes, cells[4:]) if cell}
    assert documented == set(names)


@pytest.mark.parametrize("name, nearest", [("ddim_karras", ""), ("lcm_trailing", ""), ("uni_pc", "unipc")])
def test_names_that_do_not_exist(tiny_sd1: Path, tmp_path: Path, name: str, nearest: str) -> None:
    """Exit 2 with option, value and all that is allowed; nothing is written."""
    words = ["sample", "--model", str(tiny_sd1), "--prompt", "a", "--sampler", name, "--output", "out"]
    done = run(words, cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    error = done.stderr.splitlines()[-1]
    assert "--sampler" in error and f"got {name};" in error and nearest in error
    assert all(allowed in error for allowed in listed_names())


@pytest.mark.parametrize("name, steps, named", [("lcm", "51", "1..50"), ("euler_ays", "74", "1..73")])
def test_more_steps_than_a_schedule_has(tiny_sd1: Path, tmp_path: Path, name: str, steps: str, named: str) -> None:
    done = run(["sample", "--model", str(tiny_sd1), "--prompt", "a", "--sampler", name, "--steps", steps,
                "--output", "out"], cwd=tmp_path)
    assert done.returncode == 2
    assert "num_inference_steps" in done.stderr and named in done.stderr


def latents(pipe: sdtune.StableDiffusionPipeline, **options: str) -> np.ndarray:
    return pipe("a photo", num_inference_steps=4, guidance_scale=5.0, seed=1, output_type="latent", **options).images


def relative_error(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def test_a_save_changes_no_named_sampler(tiny_sd1: Path, tmp_path: Path) -> None:
    """Neither in the pipeline that is saved nor in what is read: a default that is written is no value that was given."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    names = ("dpm++2m", "dpm++2m_karras", "euler_exponential", "ddim_trailing")
    before = {name: latents(pipe, sampler=name) for name in names}
    assert len({image.tobytes() for image in before.values()}) == len(names)
    pipe.scheduler = sdtune.DPMSolverMultistepScheduler.from_config(pipe.scheduler.config)  # whose curves are defaults
    pipe.save_pretrained(tmp_path / "saved")
    saved = sdtune.StableDiffusionPipeline.from_pretrained(tmp_path / "saved")
    for name in names:
        assert (latents(pipe, sampler=name) == before[name]).all(), name
        assert (latents(saved, sampler=name) == before[name]).all(), name


def test_a_named_sampler_clips_no_latents(tiny_sd1: Path, tmp_path: Path) -> None:
    """The base's scheduler knows no clip_sample; the default of DDIM and DDPM is for pixels."""
    folder = shutil.copytree(tiny_sd1, tmp_path / "base")
    file = folder / "scheduler" / "scheduler_config.json"
    config = {key: value for key, value in json.loads(file.read_text()).items() if key != "clip_sample"}
    file.write_text(json.dumps(config))
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(folder)
    for name, kind in (("ddim", sdtune.DDIMScheduler), ("ddpm", sdtune.DDPMScheduler)):
        named = latents(pipe, sampler=name)
        images = {}
        for clips in (False, True):
            pipe.scheduler = kind.from_config(config, clip_sample=clips)
            images[clips] = latents(pipe)
        assert relative_error(named, images[False]) < 1e-6 and relative_error(named, images[True]) > 1e-2, name
