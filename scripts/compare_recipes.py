#!/usr/bin/env python3
"""Compares options of `sdtune train` on reserved people that no figure is reported on, and writes FILE.json with the means of each.

    scripts/compare_recipes.py --base portrait-64 --output FILE.json "--learning-rate 3e-4 --max-train-steps 650" "..."

Each RECIPE is options of train beside the base's defaults. One that differs from another in --max-train-steps alone resumes its run, where a
constant rate makes the same model; fewer steps than were trained already begin a run of their own. The class images are generated once and
shared. What is done already is not done again: stop and go on at will. The folder's settings.json says with what, and other settings are refused
(scripts/eval_settings.py). The recipe that is taken goes into configs/, and into FILE.json with --chosen RECIPE.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from eval_settings import detail_of_base, keep_settings, settings_of
from eval_table import COLUMNS

ROOT = Path(__file__).resolve().parents[1]
REPORTED = range(10)  # scripts/eval_subjects.sh
STEPS = "--max-train-steps"


@dataclass(frozen=True)
class Recipe:
    """Options of train, and how many steps of them."""

    options: tuple[str, ...]
    steps: int

    @staticmethod
    def parse(text: str) -> Recipe:
        words = shlex.split(text)
        if words.count(STEPS) != 1 or words[-1] == STEPS or not words[words.index(STEPS) + 1].isdigit():
            raise SystemExit(f"compare_recipes: {text!r} must name {STEPS} once, with a number")
        at = words.index(STEPS)
        return Recipe((*words[:at], *words[at + 2:]), int(words[at + 1]))

    def __str__(self) -> str:
        return shlex.join([*self.options, STEPS, str(self.steps)])


@dataclass(frozen=True)
class Work:
    """Where runs are, with what program, and how their models are read."""

    program: str
    base: str
    folder: Path
    eval_flags: tuple[str, ...]
    detail: str  # of the people that the base generates

    def call(self, *words: str | Path) -> None:
        ended = subprocess.run([self.program, *map(str, words)], cwd=ROOT, env={"OMP_NUM_THREADS": "1", **os.environ}, capture_output=True,
                               text=True, check=False)
        if ended.returncode != 0:
            raise SystemExit(f"sdtune {shlex.join(map(str, words))} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")

    def photos(self, subject: int) -> Path:
        return self.folder / "photos" / str(subject)

    def prepare(self, subjects: list[int]) -> None:
        """Photos of the people, and the class images."""
        for subject in subjects:
            if not (self.photos(subject) / "labels.jsonl").is_file():  # written last
                self.call("render", "--subject", str(subject), "--detail", self.detail, "--views", "5", "--size", "256", "--no-captions",
                          "--output", self.photos(subject), "--overwrite")
        self.call("prepare", "--images", self.photos(subjects[0]), "--base", self.base, "--output", self.folder / "prepared",
                  "--class-data-dir", self.folder / "class")

    def evaluate(self, options: tuple[str, ...], all_steps: list[int], subject: int) -> None:
        """Trains to each number of steps in turn, and reads each model."""
        for steps in all_steps:
            result = self.result(options, steps, subject)
            if result.is_file():
                continue
            run, words = run_for(result.parent.parent, steps)
            self.call("train", "--images", self.photos(subject), "--base", self.base, "--output", run, "--class-data-dir",
                      self.folder / "class", "--report-to", "none", "--checkpointing-steps", "25", *options, STEPS, str(steps), *words)
            self.call("eval", "--model", run, "--base", self.base, "--images", self.photos(subject), "--output", result.parent,
                      *self.eval_flags)

    def result(self, options: tuple[str, ...], steps: int, subject: int) -> Path:
        return self.folder / name_of(options) / str(subject) / f"eval_{steps}" / "eval.json"


def name_of(options: tuple[str, ...]) -> str:
    """A folder's: readable, and another one for every list of options (1e-4 and 1e4 differ in a sign that is left out)."""
    if not options:
        return "defaults"
    readable = "_".join(options).replace("-", "").replace("/", "")[:100]
    return f"{readable}_{hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]}"


def trained_steps(here: Path) -> int:
    """The most that the run in here/run was trained for, as its checkpoints and evaluations say; 0 where there is none."""
    named = [*(here / "run" / "checkpoints").glob("step-*"), *here.glob("eval_*")]
    return max((int(number) for number in (re.split("[-_]", path.name)[-1] for path in named) if number.isdigit()), default=0)


def run_for(here: Path, steps: int) -> tuple[Path, list[str]]:
    """The folder to train so many steps in, and train's options for it: a run of its own where here/run did more of them."""
    if trained_steps(here) > steps:
        return here / f"run_{steps}", ["--overwrite"]
    if any((here / "run" / "checkpoints").glob("step-*")):
        return here / "run", ["--resume-from-checkpoint", "auto"]
    return here / "run", ["--overwrite"] if (here / "run").is_dir() else []  # fewer steps than --checkpointing-steps


def judge_of(eval_flags: str) -> str:
    """The classifier that they name; nothing: the bundled one."""
    words = shlex.split(eval_flags.replace("=", " "))
    named = [value for word, value in zip(words, words[1:]) if word in ("--judge", "--classifier")]
    return named[-1] if named else ""


def figures(evaluation: dict) -> dict[str, float]:
    """The columns of eval_table.py that were measured."""
    values = {column.name: column.read(evaluation) for column in COLUMNS}
    return {name: round(value, 4) for name, value in values.items() if not math.isnan(value)}


def summarize(work: Work, recipe: Recipe, subjects: list[int]) -> dict[str, object]:
    """Means over the people, with the figures of each."""
    found = [figures(json.loads(work.result(recipe.options, recipe.steps, subject).read_text())) for subject in subjects]
    names = sorted({name for each in found for name in each})
    means = {name: round(statistics.mean(each[name] for each in found if name in each), 4) for name in names}
    return {"options": str(recipe), "mean": means, "subjects": [{"subject": subject, **each} for subject, each in zip(subjects, found, strict=True)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", metavar="RECIPE", type=Recipe.parse)
    parser.add_argument("--base", default="portrait-128")
    parser.add_argument("--subjects", type=int, nargs="+", default=[20, 21, 22])
    parser.add_argument("--folder", type=Path, help="of the runs (default: runs/recipes_BASE)")
    parser.add_argument("--eval-flags", default="--quick")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="people at a time, a thread each")
    parser.add_argument("--chosen", type=Recipe.parse, help="of the recipes: the one that was taken")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    if set(options.subjects) & set(REPORTED):
        raise SystemExit("compare_recipes: --subjects 0 to 9 are those that figures are reported on: nothing is chosen on them")
    if options.chosen and options.chosen not in options.recipes:
        raise SystemExit(f"compare_recipes: --chosen {options.chosen} is none of the recipes")
    folder = (options.folder or ROOT / "runs" / f"recipes_{Path(options.base).name}").resolve()
    detail = detail_of_base(options.base)
    keep_settings(folder, settings_of(options.base, {"detail": detail, "eval_flags": options.eval_flags, "judge": judge_of(options.eval_flags)}))
    work = Work(os.environ.get("SDTUNE_PROGRAM", str(ROOT / ".venv/bin/sdtune")), options.base, folder, tuple(shlex.split(options.eval_flags)),
                detail)
    work.prepare(options.subjects)
    steps: dict[tuple[str, ...], list[int]] = {}
    for recipe in options.recipes:
        steps.setdefault(recipe.options, []).append(recipe.steps)
    with ThreadPoolExecutor(options.workers) as pool:
        jobs = [pool.submit(work.evaluate, chosen, sorted(counts), subject) for chosen, counts in steps.items() for subject in options.subjects]
        for job in jobs:
            job.result()
    record = {"command": f"scripts/compare_recipes.py --base {options.base} --eval-flags '{options.eval_flags}' RECIPE ...",
              "subjects": options.subjects, "chosen": str(options.chosen) if options.chosen else None,
              "recipes": [summarize(work, recipe, options.subjects) for recipe in options.recipes]}
    options.output.write_text(json.dumps(record, indent=1) + "\n")
    for each in record["recipes"]:
        print(each["options"], json.dumps(each["mean"]))


if __name__ == "__main__":
    sys.exit(main())
