#!/usr/bin/env python3
"""Measures sdtune against diffusers on this machine: both sides alternate in one run; prints and writes JSON.

    .venv/bin/python scripts/bench.py forward --model 10m           # the UNet alone
    .venv/bin/python scripts/bench.py train   --model sd15          # whole training steps
    .venv/bin/python scripts/bench.py picture                     # an image of the bundled base, prompt to pixels
    .venv/bin/python scripts/bench.py plan                          # what `sdtune plan` predicts, against the runs

diffusers runs at its best: every candidate of dtype, memory format and optimizer is timed first and the fastest is kept.
The result is the median of the ratios of neighbouring rounds (above 1: sdtune is faster) with the spread of equal runs
beside it: the same side against itself in neighbouring rounds. The peak memory of both is measured in processes of
their own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench.forward import measure_forward
from bench.machine import describe_machine
from bench.models import MODELS
from bench.picture import measure_image
from bench.plan import measure_plan
from bench.train import measure_training


def command_of(options: argparse.Namespace) -> str:
    """What repeats the measurement; where its files were does not matter, and is no business of readers."""
    if options.what == "plan":
        return "scripts/bench.py plan"
    if options.what == "picture":
        return f"scripts/bench.py picture --rounds {options.rounds}" + (f" --steps {options.steps}" if options.steps else "")
    given = {"model": options.model, "batch": options.batch, "rounds": options.rounds, "steps": options.steps}
    flags = [f"--{name} {value}" for name, value in given.items() if value is not None]
    return " ".join(["scripts/bench.py", options.what, *flags])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["forward", "train", "picture", "plan"])
    parser.add_argument("--model", choices=sorted(MODELS), default="10m")
    parser.add_argument("--batch", type=int, default=None, help="pictures a step (default: the model's)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=None, help="timed steps a round (default: the model's)")
    parser.add_argument("--folder", type=Path, help="keep the model folders here instead of a temporary place")
    parser.add_argument("--output", type=Path, help="write the JSON here, for example under docs/measurements/")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if options.what == "plan":
            result = measure_plan(folder)
        elif options.what == "picture":
            result = measure_image(options.rounds, options.steps or 5)
        else:
            measure = measure_forward if options.what == "forward" else measure_training
            model = MODELS[options.model].with_overrides(options.batch, options.steps)
            result = measure(model, folder, options.rounds)
    result = {"command": command_of(options), "machine": describe_machine(), **result}
    text = json.dumps(result, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
