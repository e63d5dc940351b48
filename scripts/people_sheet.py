#!/usr/bin/env python3
"""Shows the reserved people of a folder of scripts/eval_subjects.sh: of each one photo and three images of the tuned model.

    scripts/people_sheet.py runs/subjects docs/pictures/people.png

The photo is the first of the five; the images are of "a photo of sks person" with seeds 0, 1 and 2 and the base's own sampler. Nothing is chosen
by its look. Two people stand in a row, with their numbers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[1]
PROMPT = "a photo of sks person"
IMAGES = 3
SIDE, GAP, LABEL, BETWEEN = 128, 4, 14, 24  # px
PEOPLE_IN_A_ROW = 2


def images_of(home: Path) -> list[Image.Image]:
    """The photo, then what the run's model generates."""
    output = home / "people_sheet"
    words = ["sample", "--model", str(home / "run"), "--prompt", PROMPT, "--num-images", str(IMAGES), "--seed", "0", "--output", str(output)]
    program = os.environ.get("SDTUNE_PROGRAM", str(ROOT / ".venv/bin/sdtune"))
    if len(list(output.glob("*.png"))) != IMAGES:
        subprocess.run([program, *words], check=True, stderr=subprocess.DEVNULL)
    photo = Image.open(sorted((home / "photos").glob("*.png"))[0]).convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return [photo, *(Image.open(path).convert("RGB").resize((SIDE, SIDE)) for path in sorted(output.glob("*.png")))]


def sheet_of(people: dict[int, list[Image.Image]]) -> Image.Image:
    """White, two people a row, a number above each."""
    across = (IMAGES + 1) * (SIDE + GAP)
    rows = -(-len(people) // PEOPLE_IN_A_ROW)
    sheet = Image.new("RGB", (PEOPLE_IN_A_ROW * across + (PEOPLE_IN_A_ROW - 1) * BETWEEN + GAP, rows * (SIDE + GAP + LABEL) + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for place, (number, images) in enumerate(people.items()):
        left, top = GAP + place % PEOPLE_IN_A_ROW * (across + BETWEEN), GAP + place // PEOPLE_IN_A_ROW * (SIDE + GAP + LABEL)
        draw.text((left, top), f"person {number}: photo, then images", fill="black")
        for column, image in enumerate(images):
            sheet.paste(image, (left + column * (SIDE + GAP), top + LABEL))
    return sheet


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of scripts/eval_subjects.sh")
    parser.add_argument("output", type=Path, help="the PNG to write")
    options = parser.parse_args()
    homes = {int(home.name): home for home in options.folder.iterdir() if home.name.isdigit() and (home / "run" / "model").is_dir()}
    if not homes:
        print(f"people_sheet: {options.folder} holds no NUMBER/run/model", file=sys.stderr)
        return 2
    options.output.parent.mkdir(parents=True, exist_ok=True)
    sheet_of({number: images_of(homes[number]) for number in sorted(homes)}).save(options.output, optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
