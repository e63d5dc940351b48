#!/usr/bin/env python3
"""Writes what presets need on a GPU, as `sdtune plan` calculates it: configs/preset_memory.yaml and the table of docs/weights.md.

    .venv/bin/python scripts/make_memory_table.py [--check] [--only PRESET]

--check writes nothing; exit 1 where the two are not of one mind. --only plans one preset anew and keeps the others.

The plan traces the product's own steps at full size without weights (docs/plan.md); driver and kernels are in it with an assumed
0.9 GiB. It takes a few seconds a preset.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SDTUNE = Path(os.environ.get("SDTUNE_PROGRAM", ROOT / "build" / "app" / "sdtune"))
MEMORY = ROOT / "configs" / "preset_memory.yaml"
PAGE = ROOT / "docs" / "weights.md"
GIB = 1 << 30
# Preset -> how plan is asked for it.
PRESETS = {
    "full_sd15.yaml": ["--family", "sd15"],
    "full_sd15_16gb.yaml": ["--family", "sd15", "--config", "full_sd15_16gb.yaml"],
    "lora_sd15.yaml": ["--family", "sd15", "--method", "lora"],
    "full_sd21.yaml": ["--family", "sd21"],
    "full_sd21_16gb.yaml": ["--family", "sd21", "--config", "full_sd21_16gb.yaml"],
    "lora_sd21.yaml": ["--family", "sd21", "--method", "lora"],
    "full_sdxl.yaml": ["--family", "sdxl"],
    "lora_sdxl.yaml": ["--family", "sdxl", "--method", "lora"],
}
CARDS = [8, 12, 16, 24, 40, 48, 80]
# Of a card that a run may take, as `plan`, `check` and `train` have it.
USABLE_SHARE = float(re.search(r"kUsableShare = ([0-9.]+);", (ROOT / "train" / "config" / "preset_memory.h").read_text())[1])
HEADER = """# What presets need on a GPU, GiB: written by scripts/make_memory_table.py from `sdtune plan`. `check` and `train` warn where a GPU
# has less.
"""


def needed_gib(words: list[str]) -> tuple[float, str]:
    """What a preset's highest phase needs on a GPU, and which phase that is."""
    command = [str(SDTUNE), "plan", *words, "--photos", "10", "--no-savings", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"make_memory_table: {' '.join(command)}: {done.stderr}")
    memory = json.loads(done.stdout)["gpu"]
    return memory["peak_bytes"] / GIB, memory["peak_phase"]


def read_memory() -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^(\S+\.yaml): ([0-9.]+)$", MEMORY.read_text(), re.MULTILINE)}


def table(needs: dict[str, float]) -> str:
    """The table of docs/weights.md."""
    lines = ["| preset | needs, GiB | smallest usual GPU |", "|---|---|---|"]
    for name, gib in needs.items():
        card = next((str(card) for card in CARDS if gib <= USABLE_SHARE * card), "more than 80")
        lines.append(f"| {name} | {gib:.1f} | {card} GB |")
    return "\n".join(lines)


def page_with(text: str) -> str:
    """The page with its table replaced; ends where the page has no place for it."""
    page, places = re.subn(r"<!-- memory table -->\n.*?<!-- end -->", lambda _: f"<!-- memory table -->\n{text}\n<!-- end -->",
                           PAGE.read_text(), flags=re.DOTALL)
    if places != 1:
        raise SystemExit(f"make_memory_table: {PAGE} has {places} places for the table (allowed: one)")
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the page with configs/preset_memory.yaml; run nothing")
    parser.add_argument("--only", choices=list(PRESETS), help="plan this preset alone")
    options = parser.parse_args()
    if options.check:
        good = page_with(table(read_memory())) == PAGE.read_text() and set(read_memory()) == set(PRESETS)
        print("memory table: ok" if good else "memory table: docs/weights.md differs; run scripts/make_memory_table.py")
        return 0 if good else 1
    needs = read_memory() if options.only else {}
    for name, words in PRESETS.items():
        if options.only not in (None, name):
            continue
        needs[name], phase = needed_gib(words)
        print(f"{name}: {needs[name]:.2f} GiB, {phase}", flush=True)
    MEMORY.write_text(HEADER + "".join(f"{name}: {gib:.2f}\n" for name, gib in needs.items()))
    PAGE.write_text(page_with(table(read_memory())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
