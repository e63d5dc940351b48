"""What `sdtune plan` predicts of runs on this CPU, against the same runs: peak memory from the layers, time from a probe."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from .peak import watch_peak

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "app" / "sdtune"
PHOTOS = ROOT / "examples" / "me"

BASE = ["--base", "portrait-64"]
FULL = [*BASE, "--num-class-images", "16"]
ALONE = [*BASE, "--with-prior-preservation", "false", "--train-text-encoder", "false"]
LORA = [*BASE, "--method", "lora", "--num-class-images", "16"]
GRID: dict[str, list[str]] = {
    "full, defaults": [*FULL, "--max-train-steps", "60"],
    "full, batch 1, UNet alone": [*ALONE, "--train-batch-size", "1", "--max-train-steps", "200"],
    "full, batch 8, UNet alone": [*ALONE, "--train-batch-size", "8", "--max-train-steps", "60"],
    "full, batch 8": [*FULL, "--train-batch-size", "8", "--max-train-steps", "40"],
    "full, batch 8, micro-batch 2": [*FULL, "--train-batch-size", "8", "--micro-batch", "2", "--max-train-steps", "40"],
    "full, 128 px": [*FULL, "--resolution", "128", "--max-train-steps", "25"],
    "full, 128 px, recomputed": [*FULL, "--resolution", "128", "--gradient-checkpointing", "--max-train-steps", "20"],
    "full, 192 px, UNet alone": [*ALONE, "--resolution", "192", "--max-train-steps", "20"],
    "full, 8-bit states": [*FULL, "--use-8bit-adam", "--max-train-steps", "60"],
    "full, lion, averaged weights": [*FULL, "--optimizer", "lion", "--use-ema", "--max-train-steps", "60"],
    "full, accumulated": [*FULL, "--gradient-accumulation-steps", "2", "--max-train-steps", "40"],
    "lora, defaults": [*LORA, "--max-train-steps", "80"],
    "lora, rank 64, 128 px": [*LORA, "--rank", "64", "--resolution", "128", "--max-train-steps", "25"],
    "lora, batch 8, recomputed": [*LORA, "--train-batch-size", "8", "--gradient-checkpointing",
                                  "--max-train-steps", "40"],
}


def predicted(options: list[str], folder: Path) -> dict:
    words = [str(PROGRAM), "plan", "--images", str(PHOTOS), "--probe", "--json", "--savings", "false",
             "--output", str(folder / "probe"), *options]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(options)}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def measured(options: list[str], output: Path) -> tuple[int, float]:
    """Peak resident bytes and seconds of the whole process."""
    words = [str(PROGRAM), "train", "--images", str(PHOTOS), "--output", str(output), *options]
    start = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = watch_peak(child)
    seconds = time.monotonic() - start
    if child.returncode != 0:
        sys.exit(f"{' '.join(options)}: train ended with {child.returncode}")
    return peak, seconds


def measure_plan(folder: Path) -> dict:
    """Each configuration is predicted, then run."""
    rows = []
    for number, (name, options) in enumerate(GRID.items()):
        plan = predicted(options, folder)
        peak, seconds = measured(options, folder / f"run{number}")
        row = {"configuration": name, "options": " ".join(options),
               "peak_mb": {"predicted": round(plan["cpu"]["peak_bytes"] / 1e6), "measured": round(peak / 1e6)},
               "seconds": {"predicted": round(plan["this_machine"]["total_s"], 1), "measured": round(seconds, 1)}}
        for key in ("peak_mb", "seconds"):
            row[key]["error"] = round(row[key]["predicted"] / row[key]["measured"] - 1, 3)
        print(json.dumps(row), file=sys.stderr)
        rows.append(row)
    def errors(key: str) -> list[float]:
        return [abs(row[key]["error"]) for row in rows]

    return {"configurations": len(rows), "rows": rows,
            "peak_error": {"median": statistics.median(errors("peak_mb")), "worst": max(errors("peak_mb"))},
            "time_error": {"median": statistics.median(errors("seconds")), "worst": max(errors("seconds"))}}
