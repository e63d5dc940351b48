#!/usr/bin/env python3
"""A model of scale: the efficiency of training on 8, 64 and 512 GPUs over stated networks, with and without ZeRO.

    .venv/bin/python scripts/scale_model.py record   which buckets a rank sends, and when, at SD 1.5 and SDXL size: minutes, 14 GB of memory
    .venv/bin/python scripts/scale_model.py check    the model against 2 and 4 Gloo ranks over a cable of a set rate (root, network namespaces)
    .venv/bin/python scripts/scale_model.py page     docs/measurements/scale.md and scale.svg from what the others wrote (--check compares)

Nothing of it was measured on GPUs. Everything goes through docs/measurements/scale.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from scale.page import write_page  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "measurements" / "scale.json"
RANKS = (8, 64, 512)
# In float32, as gradients are summed in any case; cells: of the latents, a side.
MODELS: dict[str, dict[str, Any]] = {
    "SD 1.5": {"family": "sd15", "precision": "no", "cells": 32, "recomputed": False},
    "SDXL": {"family": "sdxl", "precision": "no", "cells": 16, "recomputed": True},
}


def read() -> dict[str, Any]:
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else {}


def write(figures: dict[str, Any]) -> None:
    FIGURES.write_text(json.dumps(figures, separators=(",", ":")) + "\n")


def processor() -> str:
    return next(line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))


def record(build: Path) -> None:
    subprocess.run(["ninja", "-C", str(build), "--quiet", "record_buckets"], check=True)
    found: dict[str, Any] = {"processor": processor()}
    for name, model in MODELS.items():
        plan = ["plan", "--family", model["family"], "--method", "full", "--photos", "10", "--train-batch-size", "1", "--micro-batch", "1",
                "--with-prior-preservation", "false", "--train-text-encoder", "false", "--savings", "false", "--json", "--mixed-precision", "no",
                "--gradient-checkpointing", str(model["recomputed"]).lower()]
        planned = json.loads(subprocess.run([str(build / "app/sdtune"), *plan], check=True, capture_output=True, text=True).stdout)
        found[name] = {"command": "sdtune " + " ".join(plan), "flops_of_a_photo": planned["flops"]["step"], "cells": model["cells"],
                       "recomputed": model["recomputed"], "layouts": {}}
        for ranks in RANKS:
            for shard in ("none", "optimizer"):
                if shard == "none" and ranks != RANKS[0]:
                    continue  # the same for all numbers of ranks
                words = [model["family"], "full", model["precision"], str(model["cells"]), str(model["recomputed"]).lower(), str(ranks), shard]
                done = subprocess.run([str(build / "tests/scale/record_buckets"), *words], check=True, capture_output=True, text=True)
                layout = json.loads(done.stdout)
                found[name]["layouts"]["none" if shard == "none" else f"optimizer {ranks}"] = layout
                print(f"{name}, {ranks} ranks, shard {shard}: {len(layout['buckets'])} buckets, backward {layout['backward_seconds']:.1f} s, "
                      f"{layout['overlapped_share']:.3f} of the bytes before its last fifth", flush=True)
                write({**read(), "recorded": {**read().get("recorded", {}), **found}})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "check", "page"))
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--check", action="store_true", help="page: only compare; exit 1 when a file differs")
    options = parser.parse_args()
    if options.what == "record":
        record(options.build)
    elif options.what == "check":
        from scale.gloo_check import measure  # needs the tests' hosts

        with tempfile.TemporaryDirectory() as folder:
            write({**read(), "gloo": {"processor": processor(), "rows": measure(Path(folder), options.build / "app/sdtune")}})
    else:
        return write_page(read(), FIGURES.parent, RANKS, options.check)
    return 0


if __name__ == "__main__":
    sys.exit(main())
