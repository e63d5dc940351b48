#!/usr/bin/env python3
"""What --report-to costs a step: the run's own processor time and time with and without wandb, mlflow and trackio.

    .venv/bin/python scripts/bench/trackers.py [--rounds 5] [--steps 300] [--output FILE.json]

A run is the bundled base on four photos of examples/me at batch 1 without class images, validation or checkpoints, so that a step is
short. Its modes take turns. "cpu_ms" is processor time of a step of the process that trains, all its threads, without the side process;
"of_none" are the ratios of cpu_ms and of step_ms to the run without trackers of the same round, and "of_itself" the lowest and highest
ratio of neighbouring runs without trackers: a difference inside it is noise. The trackers are those of .venv/trackers, offline.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import machine, ratios  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "trackers" / "bin" / "python"
MODES = {"none": ["none"], "wandb": ["wandb"], "all three": ["wandb", "mlflow", "trackio"]}
RUN = """
import json, resource, sdtune
config = sdtune.TrainConfig(images={photos!r}, base="portrait-64", output={output!r}, max_train_steps={steps}, seed=0, train_batch_size=1,
                            with_prior_preservation=False, report_images=0, report_to={trackers!r}, checkpointing_steps=100000)
seen = []
def on_step(event):
    own = resource.getrusage(resource.RUSAGE_SELF)
    seen.append((event.time, own.ru_utime + own.ru_stime))
sdtune.train(config, on_step=on_step, progress=False)
(began, cpu_began), (ended, cpu_ended) = seen[4], seen[-1]  # the first ones wait for caches
print(json.dumps({{"step_ms": 1e3 * (ended - began) / (len(seen) - 5), "cpu_ms": 1e3 * (cpu_ended - cpu_began) / (len(seen) - 5)}}))
"""


def measure(mode: str, steps: int) -> dict[str, float]:
    """One run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        photos.mkdir()
        for photo in sorted((ROOT / "examples" / "me").glob("*.png"))[:4]:
            (photos / photo.name).symlink_to(photo)
        places = {"SDTUNE_PYTHON": str(PYTHON), "WANDB_MODE": "offline", "WANDB_SILENT": "true", "TRACKIO_DIR": f"{folder}/trackio",
                  "MLFLOW_TRACKING_URI": f"file://{folder}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true",
                  "HF_HUB_OFFLINE": "1", "GIT_PYTHON_REFRESH": "quiet", "OMP_NUM_THREADS": "1"}
        code = RUN.format(photos=str(photos), output=f"{folder}/run", steps=steps, trackers=MODES[mode])
        ended = subprocess.run([sys.executable, "-c", code], env=os.environ | places, capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(ended.stderr)
    result: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return result


def row_of(mode: str, runs: dict[str, list[dict[str, float]]]) -> dict[str, object]:
    row: dict[str, object] = {"mode": mode}
    for name in ("step_ms", "cpu_ms"):
        row[name] = round(statistics.median(run[name] for run in runs[mode]), 3)
    row["of_none"] = {name: [round(run[name] / none[name], 4) for run, none in zip(runs[mode], runs["none"])]
                      for name in ("cpu_ms", "step_ms")}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    for index in range(options.rounds):
        for mode in MODES:
            runs[mode].append(measure(mode, options.steps))
            print(index, mode, {name: round(value, 3) for name, value in runs[mode][-1].items()}, flush=True)
    rows = [row_of(mode, runs) for mode in MODES]
    report = {"command": f"scripts/bench/trackers.py --rounds {options.rounds} --steps {options.steps}",
              "machine": machine.describe_machine(), "load_average": [round(value, 1) for value in os.getloadavg()],
              "of_itself": {name: ratios.spread([run[name] for run in runs["none"]]) for name in ("cpu_ms", "step_ms")}, "rows": rows}
    print(json.dumps(report, indent=1))
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
