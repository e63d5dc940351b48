#!/usr/bin/env python3
"""Writes a configuration in which every option of train has another value than its default, with the importable sdtune.

    PYTHONPATH=OLD_BUILD/python .venv/bin/python tests/compatibility/write_every_option.py FILE.yaml

Beside FILE.yaml, which is what TrainConfig.to_yaml() printed, FILE.json holds the values of to_dict().
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import sdtune


def other_number(option: dict, default: float) -> float:
    """Inside the bounds that the option's range states, and of its type."""
    low, high = re.match(r"(?:([-\d.e+]+) <=? )?x(?: <=? ([-\d.e+]+))?", option["allowed"] or "x").groups()
    step = 1 if option["type"] == "int" else 0.125
    for value in (default + step, default - step, default / 2):
        if (low is None or value > float(low)) and (high is None or value < float(high)):
            return int(value) if option["type"] == "int" else value
    raise ValueError(f"{option['name']}: {option['allowed']}")


def other_value(option: dict) -> object:
    """Allowed, and not the default."""
    default, allowed = option["default"], option["allowed"] or ""
    if option["type"] == "bool":
        return not default
    if allowed.startswith("one of "):
        return next(word for word in reversed(allowed.removeprefix("one of ").split(", ")) if word != default)
    if option["type"] in ("int", "float"):
        return other_number(option, 512 if default is None and option["type"] == "int" else default or 0)
    return ["to_v", "conv1"] if option["type"].startswith("list") else f"another {option['name']}: \"é\" #1"


SPECIAL = {"micro_batch": "2", "mixed_precision": "bf16", "device": "cpu", "resolution": 768, "min_timestep": 10,
           "max_timestep": 900, "min_bucket_reso": 320, "max_bucket_reso": 1536, "bucket_reso_steps": 128,
           "resume_from_checkpoint": "latest", "concepts": [{"images": "faces/a b", "repeats": 2}, {"images": "c"}]}

config = sdtune.TrainConfig()
for entry in sdtune.TrainConfig.options():
    setattr(config, entry["name"], SPECIAL[entry["name"]] if entry["name"] in SPECIAL else other_value(entry))
path = Path(sys.argv[1])
path.write_text(config.to_yaml())
path.with_suffix(".json").write_text(json.dumps(config.to_dict(), indent=1, default=str) + "\n")
