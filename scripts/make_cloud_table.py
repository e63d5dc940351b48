#!/usr/bin/env python3
"""Writes the prices of docs/cloud.md from docs/measurements/cloud_plans.json. --check only compares (exit 1 when they differ).

    .venv/bin/python scripts/make_cloud_table.py [--check]
    .venv/bin/python scripts/make_cloud_table.py --plan sdxl lora     asks `sdtune plan` anew, which takes minutes on a CPU
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cloud.md"
PLANS = ROOT / "docs" / "measurements" / "cloud_plans.json"
BEGIN, END = "<!-- table of predictions -->\n", "<!-- end of the table -->\n"


def record(family: str, method: str, program: Path) -> dict[str, Any]:
    """What the program predicts, GPU by GPU, and the command."""
    words = ["plan", "--family", family, "--method", method, "--photos", "10", "--savings", "false", "--json"]
    plan = json.loads(subprocess.run([str(program), *words], check=True, capture_output=True, text=True).stdout)
    return {"command": "sdtune " + " ".join(words), "currency": plan["currency"],
            "gpus": [{key: gpu[key] for key in ("name", "fits", "hours", "price")} for gpu in plan["gpus"]]}


def table(plans: dict[str, Any]) -> str:
    """A row a GPU, a column a training."""
    names = [gpu["name"] for gpu in next(iter(plans.values()))["gpus"]]
    rows = ["| GPU | " + " | ".join(plans) + " |", "|---" * (len(plans) + 1) + "|"]
    for index, name in enumerate(names):
        cells = []
        for plan in plans.values():
            gpu = plan["gpus"][index]
            cells.append(f"{gpu['hours'] * 60:.0f} min, {gpu['price']:.2f} {plan['currency']}" if gpu["fits"] else "does not fit")
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def page_with(text: str, plans: dict[str, Any]) -> str:
    """The page with the table of these plans between its marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(plans) + END + rest.split(END)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--plan", nargs=2, metavar=("FAMILY", "METHOD"))
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "app" / "sdtune")
    options = parser.parse_args()
    plans = json.loads(PLANS.read_text()) if PLANS.is_file() else {}
    if options.plan:
        family, method = options.plan
        plans[f"{family} {method}"] = record(family, method, options.program)
        PLANS.write_text(json.dumps(plans, indent=1) + "\n")
    text = PAGE.read_text()
    wanted = page_with(text, plans)
    if options.check:
        if text != wanted:
            print("docs/cloud.md is stale: run scripts/make_cloud_table.py", file=sys.stderr)
        return 0 if text == wanted else 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
