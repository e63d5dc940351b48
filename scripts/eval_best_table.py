#!/usr/bin/env python3
"""Paired differences of the best step's model and the last step's: FOLDER/eval_best.json and .md, and the latter on stdout.

    python3 scripts/eval_best_table.py runs/best

FOLDER holds a folder a subject with best/eval.json and last/eval.json of `sdtune eval`, as scripts/eval_best.sh leaves them, and
best-2 and last-2 of other seeds, which are averaged with them where they are there. Means come with the 95 % interval of Student's t over the subjects.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from student import mean_and_half

FIGURES = ["subject_fidelity", "prompt_fidelity", "accepted", "attribute_match", "class_prompt_fidelity", "leak"]
SUM = "subject_fidelity + prompt_fidelity"


def tuned_figures(path: Path) -> dict[str, float]:
    """Figures of the tuned model, of one evaluation."""
    row = json.loads(path.read_text())["rows"]["tuned"]
    figures = {name: row[name]["value"] for name in FIGURES}
    # A likeness beyond that of new renders is no gain.
    figures[SUM] = min(figures["subject_fidelity"], 1.0) + figures["prompt_fidelity"]
    return figures


def mean_figures(home: Path, kind: str) -> dict[str, float]:
    """Of all evaluations of a subject's model."""
    found = [tuned_figures(path) for path in (home / kind / "eval.json", home / f"{kind}-2" / "eval.json") if path.is_file()]
    return {name: sum(one[name] for one in found) / len(found) for name in found[0]}


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean, low and high; the last two NaN of a single value."""
    mean, half = mean_and_half(values)
    return mean, mean - half, mean + half


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    homes = sorted((path.parent.parent for path in folder.glob("*/last/eval.json")), key=lambda home: int(home.name))
    if not homes:
        print(f"{folder} holds no NUMBER/last/eval.json", file=sys.stderr)
        return 2
    best = [mean_figures(home, "best") for home in homes]
    last = [mean_figures(home, "last") for home in homes]
    summary, lines = {}, ["| figure | best look | last step | difference (95 %) |", "|---|---|---|---|"]
    for name in [SUM, *FIGURES]:
        mean, low, high = interval([one[name] - other[name] for one, other in zip(best, last, strict=True)])
        means = [sum(one[name] for one in side) / len(side) for side in (best, last)]
        summary[name] = {"best": means[0], "last": means[1], "difference": mean, "interval": None if math.isnan(low) else [low, high]}
        ends = "" if math.isnan(low) else f" ({low:+.3f}..{high:+.3f})"
        lines.append(f"| {name} | {means[0]:.3f} | {means[1]:.3f} | {mean:+.3f}{ends} |")
    subjects = {home.name: {"best": one, "last": other} for home, one, other in zip(homes, best, last, strict=True)}
    (folder / "eval_best.json").write_text(json.dumps({"summary": summary, "subjects": subjects}, indent=2) + "\n")
    text = f"{len(homes)} subjects.\n\n" + "\n".join(lines) + "\n"
    (folder / "eval_best.md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
