#!/usr/bin/env python3
"""Puts the evaluations of several subjects into one table: FOLDER/eval_subjects.json and .md, and the latter on stdout.

    python3 scripts/eval_table.py runs/subjects [NUMBER ...]

FOLDER holds a folder a subject, named by its number, with eval/eval.json of `sdtune eval` and perhaps train_seconds; NUMBERs behind it
are the subjects of the table, without them all that are there. Means come with the 95 % interval of Student's t over the subjects, that of a
share within 0 and 1.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from student import mean_and_half


@dataclass(frozen=True)
class Column:
    """One figure of a subject: where it stands in eval.json, and what it should reach."""

    name: str
    read: Callable[[dict], float]
    bar: float | None = None  # at least this; at most, where `smaller`
    floor: float | None = None  # what is asked where only CPU hours were to be had
    smaller: bool = False
    most: float | None = None  # beside a bar that is the least: of what should be near 1
    share: bool = False  # of images: within 0 and 1

    def interval(self, mean: float, half: float) -> list[float] | None:
        """Around the mean; none of a single subject."""
        if math.isnan(half):
            return None
        return [max(0.0, mean - half), min(1.0, mean + half)] if self.share else [mean - half, mean + half]

    def meets(self, value: float, bound: float) -> bool:
        within = self.most is None or value <= self.most
        return value <= bound if self.smaller else value >= bound and within

    def verdicts(self, mean: float) -> dict[str, float | bool]:
        """The bounds that it has, and whether they are met."""
        bounds = {"bar": self.bar, "floor": self.floor}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        return given | {f"meets_{name}": self.meets(mean, bound) for name, bound in given.items()} | ({"most": self.most} if self.most else {})


def of_row(row: str, figure: str) -> Callable[[dict], float]:
    """Reads the value of a figure of a row; NaN where it was not measured."""
    return lambda evaluation: evaluation["rows"][row].get(figure, {}).get("value", math.nan)


def beside(name: str, figure: str, rows: str, share: bool = True) -> list[Column]:
    """The same figure of other rows, which have no bar."""
    return [Column(f"{name}, {row}", of_row(row, figure), share=share) for row in rows.split()]


COLUMNS = [
    Column("attribute match", of_row("tuned", "attribute_match"), 0.90, 0.75, share=True),
    *beside("attribute match", "attribute_match", "renders base shuffled"),
    Column("subject fidelity", of_row("tuned", "subject_fidelity"), 0.92, 0.70),
    *beside("subject fidelity", "subject_fidelity", "renders base shuffled", share=False),
    Column("accepted", of_row("tuned", "accepted"), share=True),
    Column("accepted, renders", of_row("renders", "accepted"), share=True),
    Column("accepted, share of renders", lambda evaluation: evaluation["accepted_of_renders"], 0.95, 0.75),
    *beside("accepted", "accepted", "base shuffled"),
    Column("prompt fidelity", of_row("tuned", "prompt_fidelity"), 0.94, 0.75, share=True),
    *beside("prompt fidelity", "prompt_fidelity", "renders base shuffled"),
    Column("diversity kept", lambda evaluation: evaluation["diversity_kept"], 0.95, 0.85),
    Column("leak", of_row("tuned", "leak"), 0.02, 0.08, smaller=True, share=True),
    *beside("leak", "leak", "renders base"),
    Column("copied", of_row("tuned", "copied"), 0.12, smaller=True, share=True),
    *beside("copied", "copied", "renders base"),
    *(Column(f"sharpness, {band}, against renders", of_row("tuned", f"sharpness_{band}"), 0.85, most=1.15) for band in ("fine", "middle", "coarse")),
    Column("marks that the person has", of_row("tuned", "marks_match"), 0.80, share=True),
    *beside("marks", "marks_match", "renders base shuffled"),
    Column("training, s", lambda evaluation: evaluation.get("train_seconds", math.nan), 180, 180, smaller=True),
]


def read_subjects(folder: Path) -> dict[int, dict]:
    """Every evaluated subject's eval.json, by number."""
    subjects = {}
    for path in folder.glob("*/eval/eval.json"):
        home = path.parent.parent
        if not home.name.isdigit():
            continue
        evaluation = json.loads(path.read_text())
        if (home / "train_seconds").is_file():
            evaluation["train_seconds"] = float((home / "train_seconds").read_text())
        subjects[int(home.name)] = evaluation
    return dict(sorted(subjects.items()))


def summary_of(subjects: dict[int, dict]) -> dict[str, dict]:
    """Mean, error, bar and verdict of each column."""
    summary = {}
    for column in COLUMNS:
        values = [value for value in map(column.read, subjects.values()) if not math.isnan(value)]
        if not values:
            continue
        mean, half = mean_and_half(values)
        summary[column.name] = {"mean": mean, "interval": column.interval(mean, half), "subjects": len(values), **column.verdicts(mean)}
    return summary


def markdown(subjects: dict[int, dict], summary: dict[str, dict]) -> str:
    """A row a figure, a column a subject; the mean and the bars at the end."""
    lines = ["| figure | " + " | ".join(str(number) for number in subjects) + " | mean (95 %) | bar | floor |",
             "|---|" + "---|" * (len(subjects) + 3)]
    for column in COLUMNS:
        if column.name not in summary:
            continue
        entry = summary[column.name]
        digits = 0 if column.name.startswith("training") else 2
        values = [column.read(evaluation) for evaluation in subjects.values()]
        cells = ["-" if math.isnan(value) else f"{value:.{digits}f}" for value in values]
        interval = " ({:.{d}f}..{:.{d}f})".format(*entry["interval"], d=digits) if entry["interval"] else ""
        cells.append(f"{entry['mean']:.{digits}f}{interval}")
        for bound, verdict in (("bar", "meets_bar"), ("floor", "meets_floor")):
            to = f" to {entry['most']:g}" if "most" in entry else ""
            cells.append(f"{entry[bound]:g}{to}: {'met' if entry[verdict] else 'missed'}" if bound in entry else "")
        lines.append(f"| {column.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    if len(sys.argv) < 2 or not all(word.isdigit() for word in sys.argv[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    folder, asked = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    subjects = read_subjects(folder)
    missing = [str(number) for number in asked if number not in subjects]
    if missing or not subjects:
        print(f"{folder} holds no {'/eval/eval.json, no '.join(missing or ['NUMBER'])}/eval/eval.json", file=sys.stderr)
        return 2
    if asked:
        subjects = {number: subjects[number] for number in sorted(set(asked))}
    summary = summary_of(subjects)
    (folder / "eval_subjects.json").write_text(json.dumps({"summary": summary, "subjects": subjects}, indent=2) + "\n")
    text = markdown(subjects, summary)
    (folder / "eval_subjects.md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
