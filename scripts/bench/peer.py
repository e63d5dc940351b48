"""Sampling at SD 1.5's size and 512 px against stable-diffusion.cpp, which scripts/stable_diffusion_cpp.sh builds: whole programs take turns.

That both generate the same image is what tests/python/test_stable_diffusion_cpp.py shows. A step's time is what more steps take longer, so
that loading and decoding are left out; each step computes the UNet twice, for guidance.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from .models import MODELS, write_full_pipeline
from .ratios import summarize

ROOT = Path(__file__).resolve().parents[2]
FEW, MORE = 1, 5  # steps
PROMPT = "a photo of a person on a beach"


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{(ended.stdout + ended.stderr)[-2000:]}")
    return time.perf_counter() - started


def a_step(command: list[str]) -> float:
    """Seconds, of a command that lacks the number of steps at its end. A first run is not counted: behind the other program, which has
    pushed its files out of memory, it takes seconds longer, and they would be subtracted."""
    _, few, more = (seconds([*command, str(steps)]) for steps in (FEW, FEW, MORE))
    return (more - few) / (MORE - FEW)


def measure_peer(folder: Path, rounds: int) -> dict[str, object]:
    program = os.environ.get("SDTUNE_STABLE_DIFFUSION_CPP", "")
    if not Path(program).is_file():
        raise SystemExit("SDTUNE_STABLE_DIFFUSION_CPP names the program that scripts/stable_diffusion_cpp.sh built")
    base, file = write_full_pipeline(MODELS["sd15"], folder), folder / "sd15.safetensors"
    sdtune = str(ROOT / ".venv/bin/sdtune")
    if not file.is_file():
        seconds([sdtune, "convert", "--model", str(base), "--output", str(file)])
    ours = [sdtune, "sample", "--model", str(base), "--prompt", PROMPT, "--seed", "1", "--guidance-scale", "7.5", "--sampler", "euler",
            "--width", "512", "--height", "512", "--device", "cpu", "--dtype", "bfloat16", "--output", str(folder / "images"), "--steps"]
    theirs = [program, "-m", str(file), "-p", PROMPT, "-s", "1", "--cfg-scale", "7.5", "-W", "512", "-H", "512", "--sampling-method", "euler",
              "--type", "f16", "-t", str(os.cpu_count()), "-o", str(folder / "peer.png"), "--steps"]
    our_times, their_times = [], []
    for _ in range(rounds):
        our_times.append(a_step(ours))
        their_times.append(a_step(theirs))
    pair = {"ours": "bfloat16", "theirs": "float16", **summarize(our_times, their_times)}
    return {"what": "a sampling step with guidance, SD 1.5 size, 512 px", "peer": "stable-diffusion.cpp, without BLAS", "each_at_its_best": pair}
