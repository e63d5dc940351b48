#!/usr/bin/env python3
"""Writes the model card of the embedded base and of its judge from what their training left behind.

    scripts/model_card.py RUN --machine "2 cores of ..." [--subjects FOLDER] [--tried FILE.md]

RUN is the folder of `sdtune pretrain`, after `--stage figures`. FOLDER is that of scripts/eval_subjects.sh; without it the card says
that nobody was tuned on yet. Writes models/portrait-64/README.md and models/portrait-judge/README.md.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE, JUDGE = ROOT / "models" / "portrait-64", ROOT / "models" / "portrait-judge"

# Figure, how it is read from figures.json, bar, and floor where only CPU hours were to be had; shares.
Row = tuple[str, float, float, float]


def lines_of(path: Path) -> list[dict]:
    """The lines of a metrics.jsonl; of a step that was done again, the last one counts."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [*{line["step"]: line for line in lines}.values()]


def stage_summary(run: Path, stage: str) -> dict[str, float]:
    """Samples seen, and hours of it at the pace that was logged."""
    lines = lines_of(run / stage / "metrics.jsonl")
    seconds, before = 0.0, 0
    for line in lines:
        seconds += (line["samples"] - before) / line["pictures_per_s"]
        before = line["samples"]
    return {"samples": lines[-1]["samples"], "steps": lines[-1]["step"], "hours": seconds / 3600, "loss": lines[-1]["loss"]}


def share_of(classes: dict[str, dict], names: list[str]) -> float:
    """Of everything that was asked for under these names."""
    counts = [classes[name] for name in names if name in classes]
    return sum(one["right"] for one in counts) / max(1, sum(one["asked"] for one in counts))


def prompt_rows(figures: dict) -> list[Row]:
    """What the base draws of what it is asked for."""
    heads, classes = figures["prompts"]["heads"], figures["prompts"]["classes"]
    worn = [name for name in classes["hat"] if name != "none"]
    return [("place", heads["place"], 0.98, 0.97), ("colour of the wall", heads["wall_color"], 0.98, 0.97),
            ("colour of the clothes", heads["clothes_color"], 0.98, 0.97),
            ("colour of the hat", heads["hat_color"], 0.98, 0.97), ("style", heads["style"], 0.98, 0.97),
            ("type of clothes", heads["clothes"], 0.90, 0.80), ("type of hat, where one is worn", share_of(classes["hat"], worn), 0.90, 0.80),
            ("sunglasses", share_of(classes["glasses"], ["sunglasses"]), 0.90, 0.80),
            ("beard", share_of(classes["facial_hair"], ["beard"]), 0.90, 0.80),
            ("goatee, moustache", share_of(classes["facial_hair"], ["goatee", "moustache"]), 0.90, 0.80)]


def table(rows: list[Row]) -> str:
    """A row a figure, with its bar and floor."""
    lines = ["| figure | measured | bar | floor |", "|---|---|---|---|"]
    for name, value, bar, floor in rows:
        verdicts = [f"{bound:.0%}: {'met' if value >= bound else 'missed'}" for bound in (bar, floor)]
        lines.append(f"| {name} | {value:.1%} | {verdicts[0]} | {verdicts[1]} |")
    return "\n".join(lines) + "\n"


def judge_table(figures: dict, judge: dict) -> str:
    """Accuracy by head on unseen renders and behind the autoencoder."""
    lines = ["| attribute | unseen renders | behind the autoencoder | lost |", "|---|---|---|---|"]
    behind = figures["judge"]["reconstructions"] if figures else {}
    for name, value in sorted(figures["judge"]["renders"].items() if figures else judge["figures"]["accuracy"].items()):
        other = f"{behind[name]:.1%} | {100 * (value - behind[name]):.1f} points" if behind else "- | -"
        lines.append(f"| {name} | {value:.1%} | {other} |")
    return "\n".join(lines) + "\n"


def base_card(run: Path, figures: dict, subjects: str, machine: str, tried: str) -> str:
    """The card of models/portrait-64."""
    stages = {stage: stage_summary(run, stage) for stage in ("vae", "judge", "text", "base")}
    rows = "".join(f"| {stage} | {one['steps']:,} | {one['samples']:,} | {one['hours']:.1f} h |\n" for stage, one in stages.items())
    megabytes = sum(path.stat().st_size for path in BASE.rglob("*.safetensors")) / 1e6
    return f"""# portrait-64

A small Stable Diffusion of rendered people, 64 x 64 pixels, {megabytes:.0f} MB in float16: the base that sdtune carries so that
everything can be tried without a download. It draws no real person, and nobody is in its data: every picture it learnt from was
rendered by sdtune's own renderer (`sdtune render`). Made by sdtune alone; licence as the project's.

## How it was made
`sdtune pretrain` (docs/portrait_base.md) on {machine}.
Seeds: training people 0 and up, validation people 2^32 and up, reserved people apart from both; a test keeps them disjoint.

| stage | steps | pictures seen | time |
|---|---|---|---|
{rows}
```
{command_of(run)}
```

## What it draws of what it is asked for
{figures['prompts']['pictures']} captions of unseen people that leave nothing out, {figures['prompts']['steps']} steps, guidance {figures['prompts']['guidance_scale']:g}, read back by the judge.
Autoencoder on {figures['vae']['pictures']} unseen renders: PSNR {figures['vae']['psnr_db']:.2f} dB (bar 28, floor 26.5).

{table(prompt_rows(figures))}
## Tuned on people it never saw
{subjects}
## Limits
Rendered people only, 64 pixels; small marks (moles, scars) often come out blurred. Words outside the captions' grammar mean little
to it. Real portraits need a Stable Diffusion folder as `--base` (docs/weights.md).
{tried}"""


def command_of(run: Path) -> str:
    """The command that made it, as the run's own options say where it kept them."""
    path = run / "command.txt"
    return path.read_text().strip() if path.is_file() else "sdtune pretrain --output runs/portrait-64"


def judge_card(run: Path, figures: dict, judge: dict, machine: str) -> str:
    """The card of models/portrait-judge."""
    stage = stage_summary(run, "judge")
    identity, pair = judge["figures"]["by_references"], judge["figures"]["by_pair"]
    return f"""# portrait-judge

Reads attributes and an identity embedding back from a 64-pixel portrait of sdtune's renderer: what `sdtune eval` and
`train --identity-steps` measure with. A small CNN of sdtune's own, float16. Trained on {stage['samples']:,} renders ({stage['steps']:,}
steps, {machine}), blurred, noisy and through the autoencoder of portrait-64; never on pictures that a model of ours drew.

Identity, {judge['figures']['people']} unseen people of {judge['figures']['views']} views: AUC {pair['auc']:.4f} by pairs,
{pair['accepted']:.1%} accepted where 1 % of impostors are; against the mean of {judge['figures']['references']} photos AUC
{identity['auc']:.4f} and {identity['accepted']:.1%}.

{judge_table(figures, judge)}
Hair under a hat, and expressions and marks of a few pixels, are hard to read; such figures are not used as bars.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--subjects", type=Path)
    parser.add_argument("--tried", type=Path)
    given = parser.parse_args()
    figures = json.loads((given.run / "figures.json").read_text())
    judge = json.loads((given.run / "judge" / "model" / "judge.json").read_text())
    subjects = "Not measured yet.\n"
    if given.subjects:
        table_file = given.subjects / "eval_subjects.md"
        subjects = f"`scripts/eval_subjects.sh`: `sdtune train` and `sdtune eval` with their defaults, five photos each.\n\n{table_file.read_text()}"
    tried = "\n## What was tried\n" + given.tried.read_text() if given.tried else ""
    (BASE / "README.md").write_text(base_card(given.run, figures, subjects, given.machine, tried))
    (JUDGE / "README.md").write_text(judge_card(given.run, figures, judge, given.machine))
    print(shlex.join(map(str, (BASE / "README.md", JUDGE / "README.md"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
