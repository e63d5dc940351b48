#!/usr/bin/env python3
"""Writes the model cards of the bundled bases and of their portrait classifiers from the records under docs/measurements/.

    scripts/model_card.py                                   from what is recorded: portrait-*_{training,figures,subjects}*.json
    scripts/model_card.py --base portrait-128 --run RUN --machine "2 cores of ..." [--stage classifier]
                                                            first adds the stages of RUN, a folder of `sdtune pretrain`, to the record
    scripts/model_card.py --base portrait-128 --subjects FOLDER --machine "2 cores of ..."
                                                            first records FOLDER of scripts/eval_subjects.sh

`sdtune pretrain --stage figures` writes the figures; they are recorded with their command and machine by hand.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "measurements"
STAGES = ["features", "vae", "classifier", "text", "base"]  # of `sdtune pretrain`; the first is of portrait-128 alone


@dataclass(frozen=True)
class Base:
    """A bundled base, its classifier, and what is said of it alone."""

    name: str
    classifier: str
    side: int  # px
    recipe: str  # how train's defaults for it were chosen
    limits: str
    history: str  # title of what the training record tells of other attempts
    marks: str = ""  # what is to be known of its figures of marks

    @property
    def folder(self) -> Path:
        return ROOT / "models" / self.name

    @property
    def classifier_folder(self) -> Path:
        return ROOT / "models" / self.classifier

    def record(self, what: str) -> Path:
        """training, figures or subjects."""
        return RECORDS / f"{self.name}_{what}{'' if what == 'training' else '_cpu'}.json"


BASES = {base.name: base for base in (
    Base("portrait-64", "portrait-judge", 64, "The defaults were chosen on four other people (docs/measurements/portrait-64_recipes_cpu.json).\n",
         "Rendered people only, 64 pixels; small marks (moles, scars) often come out blurred.", "History of the versions"),
    Base("portrait-128", "portrait-judge-128", 128,
         "The defaults were chosen on four other people (docs/measurements/portrait-128_recipes_cpu.json). Earlier defaults, chosen on two other people,\n"
         "were rejected after their figure on these ten, a likeness of 0.77: the ten took part in that decision, though not in the choice of today's values.\n",
         "Rendered people only, 128 pixels; freckles and wrinkles are smoothed by the autoencoder.", "What was tried"))}

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
    return {"steps": lines[-1]["step"], "samples": lines[-1]["samples"], "hours": round(seconds / 3600, 2)}


def folder_of(stage: str) -> str:
    """The stage's folder in a run: the classifier's keeps its first name."""
    return "judge" if stage == "classifier" else stage


def share_of(classes: dict[str, dict], names: list[str]) -> float:
    """Of everything that was asked for under these names."""
    counts = [classes[name] for name in names if name in classes]
    return sum(one["right"] for one in counts) / max(1, sum(one["asked"] for one in counts))


def prompt_rows(figures: dict) -> list[Row]:
    """How well the base follows its prompts."""
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


def classifier_table(figures: dict, classifier: dict) -> str:
    """Accuracy by head on unseen renders and behind the autoencoder."""
    lines = ["| attribute | unseen renders | behind the autoencoder | lost |", "|---|---|---|---|"]
    behind = figures["judge"]["reconstructions"] if figures else {}  # the record keeps the key that it was written with
    for name, value in sorted(figures["judge"]["renders"].items() if figures else classifier["figures"]["accuracy"].items()):
        other = f"{behind[name]:.1%} | {100 * (value - behind[name]):.1f} points" if behind else "- | -"
        lines.append(f"| {name} | {value:.1%} | {other} |")
    return "\n".join(lines) + "\n"


def subjects_section(base: Base) -> str:
    """What the ten reserved subjects came to."""
    if not base.record("subjects").is_file():
        return "Not measured yet.\n"
    record = json.loads(base.record("subjects").read_text())
    return (f"`{record['command']}`, five photos each, on {record['device']}.\n"
            f"{base.recipe}"
            "Intervals are Student's t over the people, those of shares within 0 and 1. `accepted` is TAR at\n"
            "FAR 1 %; `copied` is the share of images whose features are as close to a photo as 1 % of new renders of the person are.\n"
            f"{base.marks}\n"
            f"{record['table']}")


def base_card(base: Base, training: dict, figures: dict) -> str:
    """The card of the base."""
    rows = "".join(f"| {one['stage']} | {one['steps']:,} | {one['samples']:,} | {one['hours']:.1f} h |\n" for one in training["stages"])
    megabytes = sum(path.stat().st_size for path in base.folder.rglob("*.safetensors")) / 1e6
    commands = "\n".join(training["commands"])
    prompts = figures["prompts"]
    return f"""# {base.name}

A small Stable Diffusion of rendered people, {base.side} x {base.side} pixels, {megabytes:.0f} MB in float16: the base that is bundled with sdtune so that
everything can be tried without a download. It generates synthetic people only, and its training data hold no real person: every image
was rendered by sdtune's own renderer (`sdtune render`). Made by sdtune alone; licence as the project's.

## How it was made
`sdtune pretrain` (docs/portrait_base.md) on {training['machine']}.
Seeds: training people 0 and up, validation people 2^32 and up, reserved people apart from both; a test keeps them disjoint.

| stage | steps | images | time |
|---|---|---|---|
{rows}
```
{commands}
```

## How well it follows prompts
{prompts['pictures']} full captions of unseen people, {prompts['steps']} steps, guidance {prompts['guidance_scale']:g}; the attributes are read back by the portrait
classifier (`judge` in the table above is its stage).
Autoencoder on {figures['vae']['pictures']} unseen renders: PSNR {figures['vae']['psnr_db']:.2f} dB (bar 28, floor 26.5).

{table(prompt_rows(figures))}
## Fine-tuned on people outside its training data
{subjects_section(base)}
## Limits
{base.limits} Words outside the captions' grammar have
little effect. Real portraits need a Stable Diffusion folder as `--base` (docs/weights.md).

## {base.history}
{training['tried']}
"""


def classifier_card(base: Base, training: dict, figures: dict, classifier: dict) -> str:
    """The card of the base's classifier."""
    stages = [one for one in training["stages"] if one["stage"].startswith("`judge`")]
    samples, steps = (sum(one[key] for one in stages) for key in ("samples", "steps"))
    identity, pair = classifier["figures"]["by_references"], classifier["figures"]["by_pair"]
    return f"""# The portrait classifier

Reads attributes and an identity embedding from a {base.side}-pixel portrait of sdtune's renderer; `sdtune eval` and `train --identity-steps` measure
with it. A small CNN of sdtune's own, float16. The folder `{base.classifier}` and its files `judge.json` and `judge.safetensors` keep their
first names. Trained on {samples:,} renders ({steps:,} steps, as models/{base.name}/README.md says) with blur, noise and the
reconstructions of {base.name}'s autoencoder, never on generated images.

Identity, {classifier['figures']['people']} unseen people of {classifier['figures']['views']} views: by pairs AUC {pair['auc']:.4f} and TAR at FAR 1 % {pair['accepted']:.1%};
against the mean of {classifier['figures']['references']} photos AUC {identity['auc']:.4f} and {identity['accepted']:.1%}.

{classifier_table(figures, classifier)}
Hair under a hat, and expressions and marks of a few pixels, are hard to read; such figures are not used as bars.
"""


def cards() -> dict[Path, str]:
    """Path -> the card that the records give, of the bases that have records."""
    texts = {}
    for base in BASES.values():
        if not base.record("figures").is_file():
            continue
        training, figures = json.loads(base.record("training").read_text()), json.loads(base.record("figures").read_text())["figures"]
        classifier = json.loads((base.classifier_folder / "judge.json").read_text())
        texts |= {base.folder / "README.md": base_card(base, training, figures),
                  base.classifier_folder / "README.md": classifier_card(base, training, figures, classifier)}
    return texts


def record_run(base: Base, run: Path, machine: str, stage: str | None) -> None:
    """Adds the stages that the folder holds to the record; `stage` alone, where it is given, as a training that was continued."""
    training = json.loads(base.record("training").read_text())
    named = [stage] if stage else [name for name in STAGES if (run / folder_of(name) / "metrics.jsonl").is_file()]
    if not stage:
        training = {"machine": machine, "commands": [], "stages": [], "tried": training["tried"]}
    for name in named:
        label = f"`{folder_of(name)}`" + (f", on other people ({machine})" if stage else "")
        training["stages"].append({"stage": label, **stage_summary(run, folder_of(name))})
    training["commands"].append((run / "command.txt").read_text().strip())
    write_record(base.record("training"), training)


def command_of_subjects(folder: Path) -> str:
    """What scripts/eval_subjects.sh was called with, as its settings.json says it: figures of --quick are not those of all images."""
    if (folder / "command.txt").is_file():
        return (folder / "command.txt").read_text().strip()
    if not (folder / "settings.json").is_file():
        raise SystemExit(f"{folder}: has neither settings.json nor command.txt, so what its figures were made with is not known")
    settings = json.loads((folder / "settings.json").read_text())
    names = {"EVAL_FLAGS": "eval_flags", "TRAIN_FLAGS": "train_flags", "BASE": "base", "JUDGE": "judge"}
    given = {name: settings.get(key, "") for name, key in names.items()}
    if given["BASE"] == "portrait-128":  # where none is named
        given["BASE"] = ""
    return " ".join([*(f"{name}={shlex.quote(text)}" for name, text in given.items() if text), "scripts/eval_subjects.sh"])


def record_subjects(base: Base, folder: Path, machine: str) -> None:
    """Takes over the table of scripts/eval_subjects.sh."""
    summary = json.loads((folder / "eval_subjects.json").read_text())
    command = command_of_subjects(folder)
    write_record(base.record("subjects"), {"command": command, "device": machine, "summary": summary["summary"],
                                           "table": (folder / "eval_subjects.md").read_text()})


def write_record(path: Path, record: dict) -> None:
    path.write_text(json.dumps(record, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", choices=sorted(BASES), default="portrait-128")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--machine", default="")
    parser.add_argument("--subjects", type=Path)
    given = parser.parse_args()
    if (given.run or given.subjects) and not given.machine:
        parser.error("--machine says where RUN or FOLDER was made")
    if given.run:
        record_run(BASES[given.base], given.run, given.machine, given.stage)
    if given.subjects:
        record_subjects(BASES[given.base], given.subjects, given.machine)
    for path, card in cards().items():
        path.write_text(card)
    print(shlex.join(map(str, cards())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
