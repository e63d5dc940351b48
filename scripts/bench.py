#!/usr/bin/env python3
"""Measures sdtune against diffusers on this machine: processes of both sides take turns; prints and writes JSON.

    .venv/bin/python scripts/bench.py forward --model sd15       # the UNet alone
    .venv/bin/python scripts/bench.py vae-decode                 # SD's autoencoder at 512 px, the first call included; vae-encode too
    .venv/bin/python scripts/bench.py text                       # SD 1.5's text encoder
    .venv/bin/python scripts/bench.py picture                    # an image of the bundled base, words to pixels; --model sd15 too
    .venv/bin/python scripts/bench.py train --model sd15         # whole training steps; --method lora; --model portrait-128: its defaults
    .venv/bin/python scripts/bench.py stable-diffusion.cpp       # sampling, against that program
    .venv/bin/python scripts/bench.py class-images               # whole commands; encode, checkpoint, export, start, import too
    .venv/bin/python scripts/bench.py dreambooth-before          # a whole training with defaults, against an older program; start-before too
    .venv/bin/python scripts/bench.py growth                     # how time grows with batch, resolution, photos and ranks
    .venv/bin/python scripts/bench.py plan                       # what `sdtune plan` predicts, against the runs

Both sides are measured in float32, but for an image at SD 1.5's size and for whole commands, and each at its best: every number format and
memory layout of either is timed first and the fastest is kept, that of diffusers with settings of memory beside glibc's defaults too
(bench/environment.py). Of the first four lines above the results of both sides are compared before that, and the JSON has relative_errors
(bench/compare.py). Of train, whole commands and stable-diffusion.cpp nothing is compared here: the tests compare what both sides compute
(tests/python).
A figure is the median of the ratios of neighbouring rounds (above 1: sdtune is faster) with the spread of equal runs beside it: the
same side against itself in neighbouring rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench.commands import COMMANDS, measure_command
from bench.compare import Measurement, measure
from bench.growth import measure_growth, write_plot
from bench.machine import describe_commit, describe_machine
from bench.models import MODELS
from bench.peer import measure_peer
from bench.plan import measure_plan
from bench.train import BUNDLED, measure_training
from bench.works import WORKS

# What a flag is for: it would change nothing of the rest, and the record would name it.
TAKES = {"batch": ("forward", "vae-decode", "vae-encode", "text", "train"), "steps": (*WORKS, "train"), "method": ("train",)}

# Timed calls of a process, by work; of the UNet's the model says how many.
CALLS = {"vae-decode": 3, "vae-encode": 3, "text": 20, "picture": 5}


def command_of(options: argparse.Namespace) -> str:
    """What repeats the measurement; where its files were does not matter, and is no business of readers."""
    if options.what == "plan":
        return "scripts/bench.py plan"
    given = {"model": options.model, "batch": options.batch, "rounds": options.rounds, "steps": options.steps}
    if options.what not in ("forward", "train", "picture"):
        del given["model"]
    if options.what == "train":
        given["method"] = options.method
    compiled = ["--compile"] if options.compile else []
    return " ".join(["scripts/bench.py", options.what, *(f"--{name} {value}" for name, value in given.items() if value is not None), *compiled])


def run(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    if options.what == "plan":
        return measure_plan(folder)
    if options.what == "growth":
        return measure_growth(folder, options.rounds)
    if options.what in COMMANDS:
        return measure_command(options.what, folder, options.rounds)
    if options.what == "stable-diffusion.cpp":
        return measure_peer(folder, options.rounds)
    if options.what == "train":
        return measure_training(options.model, options.method, options.batch, options.steps, folder, options.rounds, options.compile)
    if options.model in BUNDLED:
        raise SystemExit(f"--model {options.model} is for train; picture takes portrait-64 without --model")
    model = MODELS[options.model].with_overrides(options.batch, options.steps)
    if options.what == "picture" and options.model == "sd15":  # a minute an image: two seeds are compared, one is timed, its first call
        return measure(Measurement("picture", "sd15", 1, folder, calls=2, first_call=True, round_calls=1, float32_too=False,
                                   compiled_too=options.compile), options.rounds)
    calls = 1 + (options.steps or CALLS.get(options.what, model.steps))
    return measure(Measurement(options.what, options.model, options.batch or (model.batch if options.what == "forward" else 1), folder, calls,
                               first_call=options.what.startswith("vae"), compiled_too=options.compile), options.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*WORKS, "train", "stable-diffusion.cpp", *COMMANDS, "growth", "plan"])
    parser.add_argument("--model", choices=[*sorted(MODELS), *BUNDLED], default="10m")
    parser.add_argument("--method", choices=["full", "lora"], default=None, help="of train (default: full)")
    parser.add_argument("--batch", type=int, default=None, help="images a step (default: the model's; 1 of other works)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=None, help="timed calls or steps a round (default: the work's or the model's)")
    parser.add_argument("--compile", action="store_true", help="also against diffusers under torch.compile, whose compilation is not counted; not of "
                        "whole commands")
    parser.add_argument("--folder", type=Path, help="keep the model folders here instead of a temporary place")
    parser.add_argument("--output", type=Path, help="write the JSON here, for example under docs/measurements/")
    options = parser.parse_args()
    for name, takers in TAKES.items():
        if getattr(options, name) is not None and options.what not in takers:
            parser.error(f"--{name} is for {', '.join(takers)}")
    if options.model in BUNDLED and (options.batch or options.method == "lora"):
        parser.error(f"--model {options.model} measures its base's defaults, which --batch and --method do not change")
    options.method = options.method or "full"
    if options.compile and options.what not in (*WORKS, "train"):
        parser.error(f"--compile is for {', '.join(WORKS)} and train")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        result = run(options, folder)
    result = {"command": command_of(options), "commit": describe_commit(), "machine": describe_machine(), **result}
    text = json.dumps(result, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")
    if options.what == "growth":  # after the commit is described, which a changed file would make another
        write_plot(json.loads(text))


if __name__ == "__main__":
    main()
