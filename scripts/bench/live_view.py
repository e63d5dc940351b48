#!/usr/bin/env python3
"""What the live view of sdtune.train costs: the share of a run's time, with ipywidgets and with HTML, in a real Jupyter kernel.

    .venv/bin/python scripts/bench/live_view.py [--rounds 5] [--steps 120] [--output FILE.json]

A run is the bundled base on examples/me without class images, with four validation images every 40 steps. Its modes take turns,
so that a slow minute of the machine falls on all of them. Of a mode: "share_percent" is, of each round, the time that the run
waited for the view's updates, the one at its end included, divided by the run's; "cpu_s" is processor time of the whole kernel a step,
its other threads' included, and "of_silent" its ratio to the silent run of the same round. One computing thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import machine  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MODES = ("silent", "html", "widgets")
CELL = """
import json, sys, time
if {mode!r} == "html":
    sys.modules["ipywidgets"] = None
import sdtune
from sdtune import _train

views, times = [], []
views_of = _train.views_of
_train.views_of = lambda *arguments, **keywords: views.append(views_of(*arguments, **keywords)) or views[-1]
config = sdtune.TrainConfig(images={photos!r}, base="portrait-64", output={output!r}, max_train_steps={steps}, seed=0, overwrite=True,
                            with_prior_preservation=False, validation_prompt="a photo of sks person", validation_steps=40,
                            num_validation_images=4, validation_inference_steps=5, report_images=0, report_to="none",
                            checkpointing_steps=100000)
began = time.process_time(), time.perf_counter()
sdtune.train(config, on_step=lambda event: times.append(event.time), progress={mode!r} != "silent")
view = views[0][0] if views else None
print("RESULT" + json.dumps({{"cpu_s": (time.process_time() - began[0]) / len(times),
                              "run_s": time.perf_counter() - began[1],
                              "step_s": (times[-1] - times[0]) / (len(times) - 1),
                              "updates": view.updates if view else 0, "updates_s": view.seconds if view else 0.0}}))
"""


def measure(mode: str, steps: int) -> dict[str, float]:
    """One run in a kernel of its own."""
    found: list[str] = []

    def hook(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            found.append(message["content"]["text"])

    with tempfile.TemporaryDirectory() as folder:
        manager, client = start_new_kernel(cwd=folder)
        try:
            code = CELL.format(mode=mode, photos=str(ROOT / "examples" / "me"), output=f"{folder}/run", steps=steps)
            reply = client.execute_interactive(code, timeout=3600, output_hook=hook)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    if reply["content"]["status"] != "ok":
        raise SystemExit("\n".join(reply["content"]["traceback"]))
    result: dict[str, float] = json.loads("".join(found).split("RESULT")[1].splitlines()[0])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for each other would use processor time for nothing
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    for index in range(options.rounds):
        for mode in MODES[index % len(MODES):] + MODES[: index % len(MODES)]:
            runs[mode].append(measure(mode, options.steps))
            print(index, mode, {name: round(value, 5) for name, value in runs[mode][-1].items()}, flush=True)
    rows = []
    for mode in MODES:
        ratios = [one["cpu_s"] / silent["cpu_s"] for one, silent in zip(runs[mode], runs["silent"])]
        rows.append({"mode": mode,
                     "share_percent": [round(100 * one["updates_s"] / one["run_s"], 3) for one in runs[mode]],
                     "updates_a_run": statistics.median(one["updates"] for one in runs[mode]),
                     "update_ms": round(1e3 * statistics.median(one["updates_s"] / max(1, one["updates"]) for one in runs[mode]), 2),
                     "step_s": round(statistics.median(one["step_s"] for one in runs[mode]), 4),
                     "cpu_s": round(statistics.median(one["cpu_s"] for one in runs[mode]), 4),
                     "of_silent": {"median": round(statistics.median(ratios), 4), "runs": [round(ratio, 4) for ratio in ratios]}})
        print(rows[-1])
    report = {"command": f"scripts/bench/live_view.py --rounds {options.rounds} --steps {options.steps}",
              "machine": machine.describe_machine(), "load_average": [round(value, 1) for value in os.getloadavg()],
              "steps": options.steps, "rows": rows}
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
