"""How time grows: of a training step with batch and resolution, against the operations that `sdtune plan` counts; of a run's start with
the number of photos; and of a step's images with ranks of a thread each. sdtune alone, each point several times."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .models import MODELS, write_photos, write_pipeline

ROOT = Path(__file__).resolve().parents[2]
SDTUNE = str(ROOT / ".venv/bin/sdtune")
PAGE = ROOT / "docs" / "measurements" / "growth.svg"
BATCHES, SIDES, PHOTOS, RANKS = (1, 2, 4, 8, 16), (256, 384, 512, 768, 1024), (5, 50, 500, 5000), (1, 2)
ALONE = ["--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate", "1e-5", "--device", "cpu", "--report-to", "none",
         "--checkpointing-steps", "100000"]
STEPS, WARM_UP = 8, 3
RANK_ROUNDS = 3  # times as many of ranks as of the rest: their difference is small


def run(words: list[str], **variables: str) -> str:
    ended = subprocess.run(words, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    return ended.stdout


def train_words(base: Path, photos: Path, *words: str) -> list[str]:
    return ["--base", str(base), "--images", str(photos), *ALONE, *words]


def step_seconds(output: Path) -> float:
    """The median behind the warm-up."""
    times = [json.loads(line)["time"] for line in (output / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(after - before for before, after in list(zip(times, times[1:]))[WARM_UP - 1:])


@dataclass(frozen=True)
class Point:
    """A training: photos, further options, ranks and variables of its processes."""

    photos: Path
    words: list[str]
    ranks: int = 1
    variables: dict[str, str] = field(default_factory=dict)

    def seconds(self, base: Path, output: Path) -> float:
        """Of a step."""
        program = [SDTUNE, "train"] if self.ranks == 1 else [SDTUNE, "launch", "--nproc", str(self.ranks), "--", "train"]
        run([*program, *train_words(base, self.photos, *self.words), "--output", str(output), "--overwrite", "--max-train-steps",
             str(STEPS + WARM_UP)], **self.variables)
        return step_seconds(output)

    def operations(self, base: Path) -> float:
        """Counted for a step of all ranks."""
        plan = json.loads(run([SDTUNE, "plan", *train_words(base, self.photos, *self.words), "--json"]))
        return plan["flops"]["step"] * self.ranks


def step_points(base: Path, output: Path, rounds: int, points: dict[int, Point]) -> dict[int, dict[str, float]]:
    """Seconds of a step, the median of rounds in which the points take turns, and the operations counted for it."""
    seconds: dict[int, list[float]] = {key: [] for key in points}
    for _ in range(rounds):
        for key, point in points.items():
            seconds[key].append(point.seconds(base, output))
    found = {}
    for key, point in points.items():
        found[key] = {"seconds": round(statistics.median(seconds[key]), 5), "operations": point.operations(base)}
        print(f"{' '.join(point.words)}, {point.ranks} rank(s): {found[key]['seconds']:.4f} s a step", file=sys.stderr, flush=True)
    return found


def start_seconds(base: Path, photos: Path, output: Path) -> float:
    """From the command to the end of the first step, of a folder that nothing is cached of."""
    started = time.time()
    run([SDTUNE, "train", *train_words(base, photos, "--train-batch-size", "1", "--max-train-steps", "1"), "--output", str(output), "--overwrite"])
    first = json.loads((output / "metrics.jsonl").read_text().splitlines()[0])
    return first["time"] - started


def start_points(base: Path, folders: dict[int, Path], output: Path, rounds: int) -> dict[int, dict[str, float]]:
    """Seconds of a start by the number of photos, the median of rounds in which the numbers take turns."""
    seconds: dict[int, list[float]] = {count: [] for count in folders}
    for _ in range(rounds):
        for count, photos in folders.items():
            seconds[count].append(start_seconds(base, photos, output))
    return {count: {"seconds": round(statistics.median(times), 4)} for count, times in seconds.items()}


def relative(points: dict[int, dict[str, float]]) -> None:
    """Seconds an operation against those of the first point: at most 1 where cost grows no faster than the operations."""
    first = next(iter(points.values()))
    for point in points.values():
        point["of_counted"] = round(point["seconds"] / first["seconds"] * first["operations"] / point["operations"], 4)


def seconds_a_photo(starts: dict[int, dict[str, float]], fewer: int, more: int) -> float:
    return (starts[more]["seconds"] - starts[fewer]["seconds"]) / (more - fewer)


def measure_growth(folder: Path, rounds: int) -> dict[str, object]:
    model, output = MODELS["10m"], folder / "run"
    base, photos = write_pipeline(model, folder), write_photos(model, folder)
    batches = step_points(base, output, rounds, {batch: Point(photos, ["--train-batch-size", str(batch)]) for batch in BATCHES})
    sides = step_points(base, output, rounds, {
        side: Point(write_photos(model, folder, 4, side), ["--train-batch-size", "1", "--resolution", str(side)]) for side in SIDES})
    starts = start_points(base, {count: write_photos(model, folder, count) for count in PHOTOS}, output, rounds)
    ranks = step_points(base, output, RANK_ROUNDS * rounds, {
        count: Point(photos, ["--train-batch-size", str(8 // count)], count, {"OMP_NUM_THREADS": "1"}) for count in RANKS})
    for points in (batches, sides, ranks):
        relative(points)
    few, many = (seconds_a_photo(starts, *pair) for pair in ((PHOTOS[0], PHOTOS[2]), (PHOTOS[2], PHOTOS[3])))
    return {"what": "growth, 10 M", "steps": STEPS, "rounds": rounds, "rank_rounds": RANK_ROUNDS * rounds, "batch": batches, "resolution": sides,
            "photos": starts, "seconds_a_photo": round(many, 6), "seconds_a_photo_of_few": round(few, 6), "ranks_of_a_thread_at_8_images": ranks}


def write_plot(result: dict[str, object]) -> None:
    PAGE.write_text(plot(result))


def panel(left: int, title: str, label: str, points: list[tuple[float, float]], counted: list[tuple[float, float]]) -> list[str]:
    """One plot with logarithmic axes: measured points, and a line of what was counted."""
    width, height, top = 260, 200, 40
    xs = [math.log(x) for x, _ in points]
    ys = [math.log(y) for _, y in [*points, *counted]]
    if max(ys) - min(ys) < math.log(2):  # else a few percent fill the plot
        ys += [min(ys) - math.log(2), max(ys) + math.log(2)]

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log(x) - min(xs)) / (max(xs) - min(xs) or 1)
        up = (math.log(y) - min(ys)) / (max(ys) - min(ys) or 1)
        return left + 40 + across * (width - 60), top + height - 30 - up * (height - 50)

    parts = [f'<text x="{left + 40}" y="24" font-size="13">{title}</text>',
             f'<rect x="{left + 30}" y="{top}" width="{width - 40}" height="{height - 20}" fill="none" stroke="#999"/>']
    if counted:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in counted))
        parts.append(f'<polyline points="{line}" fill="none" stroke="#888" stroke-dasharray="4 3"/>')
    for x, y in points:
        at = place(x, y)
        parts += [f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3" fill="#1f5fa8"/>',
                  f'<text x="{at[0]:.1f}" y="{top + height - 6}" font-size="10" text-anchor="middle">{x:g}</text>',
                  f'<text x="{at[0]:.1f}" y="{at[1] - 6:.1f}" font-size="10" text-anchor="middle">{y:.3g}</text>']
    return [*parts, f'<text x="{left + 160}" y="{top + height + 12}" font-size="11" text-anchor="middle">{label}</text>']


def plot(result: dict[str, object]) -> str:
    """Seconds over batch, resolution, photos and ranks; dashed: the first point times the operations counted."""
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1060 270" font-family="sans-serif">',
             '<rect width="1060" height="270" fill="white"/>']
    for index, (name, title, label) in enumerate([("batch", "a step, s", "batch"), ("resolution", "a step, s", "px"),
                                                  ("photos", "start, s", "photos"), ("ranks_of_a_thread_at_8_images", "8 images, s", "ranks of a thread each")]):
        points = {int(key): value for key, value in result[name].items()}
        measured = [(x, value["seconds"]) for x, value in points.items()]
        first = next(iter(points.values()))
        counted = [(x, first["seconds"] * value["operations"] / first["operations"]) for x, value in points.items()] if "operations" in first else []
        parts += panel(index * 260, title, label, measured, counted)
    return "\n".join([*parts, "</svg>", ""])
