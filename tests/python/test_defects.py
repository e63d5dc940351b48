"""Defects of commit 68da9cb that a user meets and no other file covers; docs/measurements/house_defects.md lists them all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from program import SDTUNE
from training_reference import write_photos

import sdtune

# Notes its process group, and says that it cannot be used.
FACES = """#!{python}
import os
open("{note}", "w").write(str(os.getpgrp()))
print('{{"error": "a stand-in"}}', flush=True)
"""


def test_ctrl_c_does_not_reach_the_face_program(tmp_path: Path) -> None:
    """A terminal signals the program's process group; sdtune-faces must not be in it."""
    note, programs = tmp_path / "group", tmp_path / "bin"
    programs.mkdir()
    shutil.copy(SDTUNE, programs / "sdtune")
    (programs / "sdtune-faces").write_text(FACES.format(python=sys.executable, note=note))
    (programs / "sdtune-faces").chmod(0o755)
    photos = write_photos(tmp_path / "photos", 2, seed=0)
    program = subprocess.Popen([str(programs / "sdtune"), "doctor", "--images", str(photos)], start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    program.wait(60)
    assert int(note.read_text()) != program.pid


def test_a_second_pass_keeps_no_copy_of_the_callback(tiny_sd1: Path) -> None:
    """A copy of the request would count a reference of a Python object up without the interpreter's lock."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    counts: list[int] = []

    def on_step(event: sdtune.SampleEvent) -> None:
        counts.append(sys.getrefcount(on_step))

    pipe("a cat", num_inference_steps=2, hires_scale=2.0, hires_strength=1.0, output_type="np", on_step=on_step)
    assert len(counts) >= 4 and len(set(counts)) == 1, counts
