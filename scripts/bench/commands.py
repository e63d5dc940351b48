"""Whole commands against diffusers' scripts: class images, encoding of photos, the start of an image and of `import`, a checkpoint, an
export. Each is a process of its own, and both sides take turns; loading counts, but for checkpoint and export."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .environment import ENVIRONMENTS, PLAIN, fastest_environment, variables_of
from .models import MODELS, write_full_pipeline, write_photos
from .patience import time_each, time_limit
from .ratios import summarize

ROOT = Path(__file__).resolve().parents[2]
SDTUNE = str(ROOT / ".venv/bin/sdtune")
BUNDLED, PEOPLE = ROOT / "models" / "portrait-64", ROOT / "examples" / "me"
COMMANDS = ["class-images", "encode", "checkpoint", "export", "start", "start-before", "dreambooth-before", "import"]
CLASS_IMAGES, PHOTOS = 32, 20
DTYPES = {"float32": "no", "bfloat16": "bf16"}
LAYOUTS = ("contiguous", "channels_last")
PROMPT = "a photo of a person"


@dataclass(frozen=True)
class Sides:
    """Seconds of one call of each side, by its candidates: number formats, and of diffusers also layouts. Theirs is called with the name of the
    environment of its process."""

    what: str
    ours: dict[str, Callable[[], float]]
    theirs: dict[str, Callable[[str], float]]
    is_diffusers: bool = True  # theirs, of which the environment is a candidate too


def said(command: list[str], environment: str = PLAIN) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Seconds and output. Python may keep its compiled modules, as on a user's machine: the first call, before the rounds, writes them."""
    variables = {name: value for name, value in variables_of(environment).items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    ended = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=time_limit())
    seconds = time.perf_counter() - started
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{(ended.stdout + ended.stderr)[-2000:]}")
    return seconds, ended


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def their_task(task: str, base: Path, folder: Path, *words: str) -> list[str]:
    return [sys.executable, str(ROOT / "scripts/bench/diffusers_tasks.py"), task, "--base", str(base), "--output",
            str(emptied(folder / "theirs")), *words]


def prepare_sides(what: str, base: Path, photos: Path, folder: Path, our_words: list[str], their_words: list[str]) -> Sides:
    """`sdtune prepare`, which computes in float32 on a CPU, and the same by diffusers."""
    def ours() -> float:
        home = emptied(folder / "ours")
        return said([SDTUNE, "prepare", "--base", str(base), "--images", str(photos), "--output", str(home / "run"), "--cache-dir",
                     str(home / "cache"), "--class-data-dir", str(home / "class"), "--device", "cpu", *our_words])[0]

    def theirs(dtype: str, layout: str, environment: str) -> float:
        return said(their_task(what, base, folder, "--photos", str(photos), "--dtype", dtype, "--layout", layout, *their_words), environment)[0]

    return Sides(what, {"float32": ours}, {f"{dtype}, {layout}": partial(theirs, dtype, layout) for dtype in DTYPES for layout in LAYOUTS})


def class_images(folder: Path) -> Sides:
    return prepare_sides("class-images", BUNDLED, PEOPLE, folder, ["--num-class-images", str(CLASS_IMAGES), "--train-text-encoder=false"],
                         ["--count", str(CLASS_IMAGES)])


def encode(folder: Path) -> Sides:
    return prepare_sides("encode", write_full_pipeline(MODELS["sd15"], folder), write_photos(MODELS["sd15"], folder, PHOTOS), folder,
                         ["--with-prior-preservation=false", "--train-text-encoder=false", "--resolution", "512"], [])


def checkpoint(folder: Path) -> Sides:
    """Seconds that the run says of its writes, of weights and AdamW's state in float32."""
    base, photos = write_full_pipeline(MODELS["sd15"], folder), write_photos(MODELS["sd15"], folder)

    def ours() -> float:
        _, ended = said([SDTUNE, "train", "--base", str(base), "--images", str(photos), "--output", str(emptied(folder / "ours") / "run"),
                         "--with-prior-preservation=false", "--train-text-encoder=false", "--max-train-steps", "2", "--checkpointing-steps", "1", "--train-batch-size", "1",
                         "--resolution", "64", "--device", "cpu", "--report-to", "none"])
        return float(re.findall(r"saved .* in ([\d.]+) s", ended.stderr)[-1])

    return Sides("checkpoint", {"float32": ours},
                 {"float32": lambda environment: json.loads(said(their_task("checkpoint", base, folder), environment)[1].stdout)["seconds"]})


def export(folder: Path) -> Sides:
    base = write_full_pipeline(MODELS["sd15"], folder)
    code = ("import json, sys, time, sdtune\npipeline = sdtune.StableDiffusionPipeline.from_pretrained(sys.argv[1], dtype='float32', device='cpu')\n"
            "started = time.perf_counter()\npipeline.save_pretrained(sys.argv[2])\nprint(json.dumps(time.perf_counter() - started))")

    def ours() -> float:
        return float(said([sys.executable, "-c", code, str(base), str(emptied(folder / "ours") / "model")])[1].stdout)

    return Sides("export", {"float32": ours},
                 {"float32": lambda environment: json.loads(said(their_task("export", base, folder), environment)[1].stdout)["seconds"]})


def image_command(program: str, folder: Path) -> list[str]:
    return [program, "sample", "--model", str(BUNDLED), "--prompt", PROMPT, "--seed", "0", "--device", "cpu", "--output", str(folder / "images")]


def start(folder: Path) -> Sides:
    """One image of the bundled base from its words: `sdtune sample` with its defaults, and diffusers in a process of its own."""
    ours = {dtype: lambda dtype=dtype: said([*image_command(SDTUNE, folder), "--dtype", dtype])[0] for dtype in DTYPES}
    theirs = {f"{dtype}, {layout}": their_task("start", BUNDLED, folder, "--dtype", dtype, "--layout", layout) for dtype in DTYPES for layout in LAYOUTS}
    return Sides("start", ours, {key: lambda environment, command=command: said(command, environment)[0] for key, command in theirs.items()})


def older_program() -> str:
    before = os.environ.get("SDTUNE_BEFORE", "")
    if not Path(before).is_file():
        raise SystemExit("SDTUNE_BEFORE names an older build's program, for example build/app/sdtune in a worktree of commit 68da9cb")
    return before


def start_before(folder: Path) -> Sides:
    """The same against an older program, which SDTUNE_BEFORE names."""
    before = older_program()
    return Sides("start, against an older program", {"defaults": lambda: said(image_command(SDTUNE, folder))[0]},
                 {"defaults": lambda environment: said(image_command(before, folder), environment)[0]}, is_diffusers=False)


def dreambooth_before(folder: Path) -> Sides:
    """A whole `sdtune train` of portrait-64 with its defaults, class images included; the older program with the defaults of its own tree,
    which may be of more steps: what a user waits for, and not how fast a step is."""
    before = older_program()
    their_base = Path(before).resolve().parents[2] / "models" / BUNDLED.name
    if not their_base.is_dir():
        raise SystemExit(f"SDTUNE_BEFORE is build/app/sdtune in the older tree, which has the older base: {their_base} is missing")

    def train(program: str, base: Path, environment: str = PLAIN) -> float:
        home = emptied(folder / "dreambooth")
        return said([program, "train", "--base", str(base), "--images", str(PEOPLE), "--output", str(home / "run"), "--class-data-dir",
                     str(home / "class"), "--cache-dir", str(home / "cache"), "--device", "cpu"], environment)[0]

    return Sides("DreamBooth with defaults, against an older program", {"defaults": lambda: train(SDTUNE, BUNDLED)},
                 {"defaults": partial(train, before, their_base)}, is_diffusers=False)


def importing(folder: Path) -> Sides:
    del folder
    return Sides("import", {"sdtune": lambda: said([sys.executable, "-c", "import sdtune"])[0]},
                 {"diffusers": lambda environment: said([sys.executable, "-c", "from diffusers import StableDiffusionPipeline"], environment)[0]})


def measure_command(name: str, folder: Path, rounds: int) -> dict[str, object]:
    """Each candidate once, for the fastest, diffusers' in each environment; then both in turn."""
    makers = [class_images, encode, checkpoint, export, start, start_before, dreambooth_before, importing]
    sides = dict(zip(COMMANDS, makers, strict=True))[name](folder)
    times, ended_after = {}, {}
    for side, candidates in (("ours", sides.ours), ("theirs", {key: partial(call, PLAIN) for key, call in sides.theirs.items()})):
        first = time_each(dict(list(candidates.items())[:1]))  # brings the files into memory
        times[side], ended_after[side] = time_each(candidates) if len(candidates) > 1 else first
    best = {side: min(found, key=found.get) for side, found in times.items()}
    our_call, their_call = sides.ours[best["ours"]], sides.theirs[best["theirs"]]
    environment, seconds_in = fastest_environment(their_call) if sides.is_diffusers else (PLAIN, {})
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(our_call())
        theirs.append(their_call(environment))
    return {"what": sides.what, "candidates_s": {side: {key: round(value, 4) for key, value in found.items()} for side, found in times.items()},
            "ended_after_s": {f"{side}, {key}": value for side, found in ended_after.items() for key, value in found.items()},
            **({"environments": ENVIRONMENTS, "environments_s": seconds_in} if sides.is_diffusers else {}),
            "each_at_its_best": {**best, **({"environment": environment} if sides.is_diffusers else {}), **summarize(ours, theirs)}}
