"""Both sides of a work, in processes that take turns: equal results first, then the same number format, then each at its best."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .environment import ENVIRONMENTS, fastest_environment, variables_of
from .patience import time_each, time_limit
from .ratios import summarize
from .works import OURS, THEIRS, Candidate

SCRIPTS = Path(__file__).resolve().parents[1]
FLOAT32_BOUND = 1e-5  # relative error of our float32 results against diffusers'
NOISY = ("picture",)  # works that draw noise in their number format: in bfloat16 a seed's is another than in float32


@dataclass(frozen=True)
class Measurement:
    """A work at a size, and how long it is looked at: `calls` of each candidate, whose results are compared, and as many a round unless
    `round_calls` says fewer. With `first_call` all of them count, else those behind the first, as of what torch.compile compiles in it.
    `float32_too`: rounds of float32 against float32 as well, where that is not what is fastest. `compiled_too`: rounds against diffusers
    under torch.compile as well."""

    work: str
    model: str
    batch: int | None
    folder: Path
    calls: int
    first_call: bool
    round_calls: int | None = None
    float32_too: bool = True
    compiled_too: bool = False

    def run(self, side: str, candidate: Candidate, calls: int, keep: Path | None = None) -> dict[str, object]:
        command = [sys.executable, "-m", "bench.one_side", self.work, side, "--candidate", str(candidate), "--model", self.model,
                   "--folder", str(self.folder.resolve()), "--calls", str(calls)]
        command += ["--batch", str(self.batch)] if self.batch else []
        command += ["--keep", str(keep.resolve())] if keep else []
        ended = subprocess.run(command, cwd=SCRIPTS, env=variables_of(candidate.environment), capture_output=True, text=True, check=False,
                               timeout=time_limit())
        if ended.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        return json.loads(ended.stdout.splitlines()[-1])

    def seconds(self, result: dict[str, object], is_compiled: bool) -> float:
        calls = result["calls_s"]
        return statistics.mean(calls) if self.first_call and not is_compiled else statistics.median(calls[1:])


def relative_errors(results: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Of each call."""
    return np.array([np.linalg.norm(result - reference) / np.linalg.norm(reference) for result, reference in zip(results, references, strict=True)])


@dataclass(frozen=True)
class Candidates:
    """Of one side: seconds a call and the result of each, and after how many seconds those were ended that are far slower than float32."""

    seconds: dict[Candidate, float]
    results: dict[Candidate, np.ndarray]
    ended_after: dict[Candidate, float]

    def best(self) -> Candidate:
        return min(self.seconds, key=self.seconds.get)

    def described(self) -> dict[str, float]:
        return {str(key): round(value, 5) for key, value in self.seconds.items()}


def time_candidates(measurement: Measurement, side: str, candidates: list[Candidate]) -> Candidates:
    """Each in a process of its own; those that are timed again, in as many calls as a round has, since their results are there."""
    results, keep = {}, measurement.folder / f"{side}.npy"

    def call(candidate: Candidate) -> float:
        if candidate in results:
            return measurement.seconds(measurement.run(side, candidate, measurement.round_calls or measurement.calls), candidate.is_compiled)
        seconds = measurement.seconds(measurement.run(side, candidate, measurement.calls, keep), candidate.is_compiled)
        results[candidate] = np.load(keep)
        return seconds

    seconds, ended = time_each({candidate: lambda candidate=candidate: call(candidate) for candidate in candidates})
    return Candidates(seconds, results, ended)


def exact_results(measurement: Measurement, theirs: dict[Candidate, np.ndarray]) -> dict[str, np.ndarray]:
    """By number format, diffusers' float32 results that those of the format are compared with. Of works that draw noise, bfloat16's are of
    bfloat16's noise: an image of another noise is another image, beside which a wrong one is as near as the right one."""
    exact = theirs[THEIRS[0]]
    if measurement.work not in NOISY or all(candidate.dtype == "float32" for candidate in theirs):
        return {"float32": exact, "bfloat16": exact}
    keep = measurement.folder / "noise.npy"
    measurement.run("theirs", replace(THEIRS[0], noise="bfloat16"), measurement.calls, keep)
    return {"float32": exact, "bfloat16": np.load(keep)}


def check_results(ours: dict[Candidate, np.ndarray], theirs: dict[Candidate, np.ndarray], exact: dict[str, np.ndarray]) -> dict[str, float]:
    """Errors against exact_results, means of the calls; refuses to time what does not compute the same: float32 to 1e-5, bfloat16 no
    worse than diffusers' own bfloat16 in the layout that rounds most. Where calls differ (an image of another seed each) the mean error of
    bfloat16 is itself a random number: ours may lie two standard errors of theirs above it. Where theirs was ended, ours is not looked at."""
    each = {f"ours, {candidate}": relative_errors(result, exact[candidate.dtype]) for candidate, result in ours.items()}
    each |= {f"theirs, {candidate}": relative_errors(result, exact[candidate.dtype]) for candidate, result in theirs.items()}
    errors = {name: float(values.mean()) for name, values in each.items()}
    worst = max((name for name in errors if name.startswith("theirs, bfloat16")), key=errors.get, default=None)
    allowed = errors[worst] + 2 * float(each[worst].std(ddof=1)) / len(each[worst]) ** 0.5 if worst else float("inf")
    is_close = errors["ours, float32"] <= FLOAT32_BOUND and errors.get("ours, bfloat16", 0) <= allowed
    if not is_close:  # nor is NaN
        raise SystemExit(f"the results differ, so times mean nothing: {json.dumps(errors)}")
    return errors


def alternate(measurement: Measurement, ours: Candidate, theirs: Candidate, rounds: int) -> dict[str, object]:
    """Rounds of ours, theirs, ours, theirs."""
    results, calls = {"ours": [], "theirs": []}, measurement.round_calls or measurement.calls
    calls += theirs.is_compiled  # its compilation is not counted, so neither is the first call of ours
    for _ in range(rounds):
        results["ours"].append(measurement.run("ours", ours, calls))
        results["theirs"].append(measurement.run("theirs", theirs, calls))
    seconds = {side: [measurement.seconds(each, theirs.is_compiled) for each in runs] for side, runs in results.items()}
    peaks = {f"peak_memory_gib_{side}": round(max(each["peak_bytes"] for each in runs) / 2**30, 3) for side, runs in results.items()}
    first = {f"first_call_s_{side}": round(statistics.median(each["calls_s"][0] for each in runs), 5) for side, runs in results.items()}
    return {"ours": str(ours), "theirs": str(theirs), "environment": theirs.environment, **summarize(seconds["ours"], seconds["theirs"]),
            **first, **peaks}


def try_environments(measurement: Measurement, theirs: Candidate) -> tuple[str, dict[str, object]]:
    """The fastest environment of diffusers' fastest candidate, and what is to be recorded of it."""
    fastest, seconds = fastest_environment(lambda name: measurement.seconds(
        measurement.run("theirs", replace(theirs, environment=name), measurement.round_calls or measurement.calls), is_compiled=False))
    return fastest, {"environments": ENVIRONMENTS, "environments_s": seconds}


def measure_compiled(measurement: Measurement, ours: Candidate, theirs: Candidates, exact: dict[str, np.ndarray], environment: str,
                     rounds: int) -> dict[str, object]:
    """Ours at its best against diffusers under torch.compile: of each number format in the layout that is fastest without it."""
    fastest: dict[str, Candidate] = {}
    for candidate in sorted(theirs.seconds, key=theirs.seconds.get):
        fastest.setdefault(candidate.dtype, candidate)
    compiled = [replace(candidate, is_compiled=True, environment=environment) for candidate in fastest.values()]
    seconds, errors, keep = {}, {}, measurement.folder / "compiled.npy"
    for candidate in compiled:
        seconds[candidate] = measurement.seconds(measurement.run("theirs", candidate, measurement.calls, keep), is_compiled=True)
        errors[str(candidate)] = float(relative_errors(np.load(keep), exact[candidate.dtype]).mean())
    return {"compiled_s": {str(candidate): round(value, 5) for candidate, value in seconds.items()}, "compiled_relative_errors": errors,
            "against_compiled": alternate(measurement, ours, min(seconds, key=seconds.get), rounds)}


def measure(measurement: Measurement, rounds: int) -> dict[str, object]:
    theirs = time_candidates(measurement, "theirs", THEIRS)
    has_both = any(each.dtype == "bfloat16" for each in theirs.seconds)
    ours = time_candidates(measurement, "ours", OURS if has_both else OURS[:1])
    exact = exact_results(measurement, theirs.results)
    errors = check_results(ours.results, theirs.results, exact)
    environment, tried = try_environments(measurement, theirs.best())
    best = ours.best(), replace(theirs.best(), environment=environment)
    result = {"work": measurement.work, "first_call_counts": measurement.first_call, "relative_errors": errors,
              "candidates_s": {"ours": ours.described(), "theirs": theirs.described()},
              "ended_after_s": {f"theirs, {key}": value for key, value in theirs.ended_after.items()}, **tried,
              "each_at_its_best": alternate(measurement, *best, rounds)}
    of_float32 = min((each for each in theirs.seconds if each.dtype == "float32"), key=theirs.seconds.get)
    same = Candidate("float32"), replace(of_float32, environment=environment)
    if best == same:
        result["both_float32"] = result["each_at_its_best"]
    elif measurement.float32_too:
        result["both_float32"] = alternate(measurement, *same, rounds)
    if measurement.compiled_too:
        result |= measure_compiled(measurement, best[0], theirs, exact, environment, rounds)
    return result
