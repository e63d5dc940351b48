#!/usr/bin/env python3
"""How much longer trainings take that share this machine's cores: one alone, two and three side by side; prints a table.

    .venv/bin/python scripts/bench/side_by_side.py [--runs 5] [--most 3] [--output FILE.json]

A training is 40 steps of portrait-64 on examples/me without class images. Time is taken from the start of the first process
to the end of the last; "unbounded" sets GOMP_SPINCOUNT to libgomp's own value, which is what ran before the
program bounded the spin. Runs of the rows take turns, so that a slow minute of the machine falls on all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SDTUNE = Path(os.environ.get("SDTUNE_PROGRAM", ROOT / "build" / "app" / "sdtune"))
LIBGOMPS_OWN = "300000"  # what libgomp takes where no more threads than cores run


def train_together(count: int, steps: int, spin: str | None) -> float:
    """Seconds until `count` trainings, started at once, have ended."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    if spin is not None:
        environment["GOMP_SPINCOUNT"] = spin
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        running = [subprocess.Popen(
            [str(SDTUNE), "train", "--base", "portrait-64", "--images", str(ROOT / "examples" / "me"), "--max-train-steps", str(steps),
             "--no-with-prior-preservation", "--output", f"{folder}/{index}"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for index in range(count)]
        for process in running:
            _, errors = process.communicate()
            if process.returncode != 0:
                raise SystemExit(f"side_by_side: a training ended with {process.returncode}: {errors[-500:]}")
        return time.monotonic() - start


def processor() -> str:
    """The processor's name and family, and how many of its cores there are."""
    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return f"{fields.get('model name')} (family {fields.get('cpu family')}), {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each row; the table has their medians")
    parser.add_argument("--most", type=int, default=3, help="trainings side by side, at most")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--unbounded-most", type=int, default=1, help="side by side without the bound, at most")
    parser.add_argument("--output", type=Path, help="write the JSON here, for example under docs/measurements/")
    options = parser.parse_args()
    cases = [(count, "bounded", None) for count in range(1, options.most + 1)]
    cases += [(count, "unbounded", LIBGOMPS_OWN) for count in range(1, options.unbounded_most + 1)]
    seconds: dict[tuple[int, str], list[float]] = {(count, name): [] for count, name, _ in cases}
    for _ in range(options.runs):
        for count, name, spin in cases:
            seconds[count, name].append(round(train_together(count, options.steps, spin), 2))
    alone = statistics.median(seconds[1, "bounded"])
    print(f"{processor()}; {options.steps} steps, medians of {options.runs}")
    print("trainings  spin       seconds  times one alone  runs")
    rows = []
    for (count, name), values in seconds.items():
        median = statistics.median(values)
        rows.append({"trainings": count, "spin": name, "seconds": median, "times_alone": round(median / alone, 2), "runs": values})
        print(f"{count:9}  {name:9}  {median:7.2f}  {median / alone:15.2f}  {' '.join(map(str, values))}")
    if options.output:
        record = {"command": f"scripts/bench/side_by_side.py --runs {options.runs}", "machine": processor(), "steps": options.steps,
                  "rows": rows}
        options.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
