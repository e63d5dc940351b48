"""Both sides of a work, in processes that take turns: equal results first, then the same number format, then each at its best."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .ratios import summarize
from .works import OURS, THEIRS, Candidate

SCRIPTS = Path(__file__).resolve().parents[1]
FLOAT32_BOUND = 1e-5  # relative error of our float32 results against diffusers'


@dataclass(frozen=True)
class Measurement:
    """A work at a size, and how long it is looked at. With `first_call` a round counts all its calls, else those behind the first."""

    work: str
    model: str
    batch: int | None
    folder: Path
    calls: int
    first_call: bool

    def run(self, side: str, candidate: Candidate, keep: Path | None = None) -> dict[str, object]:
        command = [sys.executable, "-m", "bench.one_side", self.work, side, "--candidate", str(candidate), "--model", self.model,
                   "--folder", str(self.folder.resolve()), "--calls", str(self.calls)]
        command += ["--batch", str(self.batch)] if self.batch else []
        command += ["--keep", str(keep.resolve())] if keep else []
        ended = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        return json.loads(ended.stdout.splitlines()[-1])

    def seconds(self, result: dict[str, object]) -> float:
        calls = result["calls_s"]
        return statistics.mean(calls) if self.first_call else statistics.median(calls[1:])


def relative_errors(results: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Of each call."""
    return np.array([np.linalg.norm(result - reference) / np.linalg.norm(reference) for result, reference in zip(results, references, strict=True)])


def time_candidates(measurement: Measurement, side: str, candidates: list[Candidate]) -> tuple[dict[Candidate, float], dict[Candidate, np.ndarray]]:
    """Seconds a call and the result, of each candidate in a process of its own."""
    times, results = {}, {}
    for candidate in candidates:
        keep = measurement.folder / f"{side}.npy"
        times[candidate] = measurement.seconds(measurement.run(side, candidate, keep))
        results[candidate] = np.load(keep)
    return times, results


def check_results(ours: dict[Candidate, np.ndarray], theirs: dict[Candidate, np.ndarray]) -> dict[str, float]:
    """Errors against diffusers' float32, means of the calls; refuses to time what does not compute the same: float32 to 1e-5, bfloat16 no
    worse than diffusers' own bfloat16 in the layout that rounds most. Where calls differ (an image of another seed each) the mean error of
    bfloat16 is itself a random number: ours may lie two standard errors of theirs above it."""
    exact = theirs[THEIRS[0]]
    each = {f"ours, {candidate}": relative_errors(result, exact) for candidate, result in ours.items()}
    each |= {f"theirs, {candidate}": relative_errors(result, exact) for candidate, result in theirs.items()}
    errors = {name: float(values.mean()) for name, values in each.items()}
    worst = max((name for name in errors if name.startswith("theirs, bfloat16")), key=errors.get)
    allowed = errors[worst] + 2 * float(each[worst].std(ddof=1)) / len(each[worst]) ** 0.5
    if errors["ours, float32"] > FLOAT32_BOUND or errors["ours, bfloat16"] > allowed:
        raise SystemExit(f"the results differ, so times mean nothing: {json.dumps(errors)}")
    return errors


def alternate(measurement: Measurement, ours: Candidate, theirs: Candidate, rounds: int) -> dict[str, object]:
    """Rounds of ours, theirs, ours, theirs."""
    results = {"ours": [], "theirs": []}
    for _ in range(rounds):
        results["ours"].append(measurement.run("ours", ours))
        results["theirs"].append(measurement.run("theirs", theirs))
    seconds = {side: [measurement.seconds(each) for each in runs] for side, runs in results.items()}
    peaks = {f"peak_memory_gib_{side}": round(max(each["peak_bytes"] for each in runs) / 2**30, 3) for side, runs in results.items()}
    first = {f"first_call_s_{side}": round(statistics.median(each["calls_s"][0] for each in runs), 5) for side, runs in results.items()}
    return {"ours": str(ours), "theirs": str(theirs), **summarize(seconds["ours"], seconds["theirs"]), **first, **peaks}


def measure(measurement: Measurement, rounds: int) -> dict[str, object]:
    our_times, our_results = time_candidates(measurement, "ours", OURS)
    their_times, their_results = time_candidates(measurement, "theirs", THEIRS)
    errors = check_results(our_results, their_results)
    best = min(our_times, key=our_times.get), min(their_times, key=their_times.get)
    same = Candidate("float32"), min((each for each in THEIRS if each.dtype == "float32"), key=their_times.get)
    at_best = alternate(measurement, *best, rounds)
    return {"work": measurement.work, "first_call_counts": measurement.first_call, "relative_errors": errors,
            "candidates_s": {"ours": {str(key): round(value, 5) for key, value in our_times.items()},
                             "theirs": {str(key): round(value, 5) for key, value in their_times.items()}},
            "each_at_its_best": at_best,
            "both_float32": at_best if best == same else alternate(measurement, *same, rounds)}
