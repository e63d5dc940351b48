"""scripts/bench: which processes it compares, in which environment, and from when on their memory counts.

Processes are stubbed, but for small ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from program import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from bench import commands, compare, diffusers_loop, environment, peak, plan, train  # noqa: E402

SETTINGS = "memory settings"
SECONDS = {"float32, contiguous": 4.0, "float32, channels_last": 3.0, "bfloat16, contiguous": 6.0, "bfloat16, channels_last": 7.0,
           "float32": 2.0, "bfloat16": 5.0}  # sdtune's are those without a layout
FASTEST = "float32, channels_last"


def has_settings(variables: dict[str, str]) -> bool:
    return environment.ENVIRONMENTS[SETTINGS].items() <= variables.items()


def word_after(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_environments_are_those_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "portrait_base.md").read_text()
    settings = environment.ENVIRONMENTS[SETTINGS]
    assert settings and all(f"{name}={value}" in page for name, value in settings.items())
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    monkeypatch.setenv("UNRELATED", "kept")
    plain = environment.variables_of(environment.PLAIN)
    assert not settings.keys() & plain.keys() and plain["UNRELATED"] == "kept", "what this process was started with is not inherited"
    assert has_settings(environment.variables_of(SETTINGS)) and environment.variables_of(SETTINGS)["UNRELATED"] == "kept"


@pytest.mark.parametrize(("factor", "best"), [(0.5, SETTINGS), (2.0, environment.PLAIN)])
def test_diffusers_fastest_call_is_tried_in_each_environment(factor: float, best: str, monkeypatch: pytest.MonkeyPatch,
                                                             tmp_path: Path) -> None:
    runs: list[tuple[str, str, bool]] = []

    def one_side(command: list[str], env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        candidate, calls = word_after(command, "--candidate"), int(word_after(command, "--calls"))
        runs.append((command[4], candidate, has_settings(env)))
        if "--keep" in command:
            np.save(word_after(command, "--keep"), np.ones((calls, 2)))
        seconds = SECONDS[candidate.removesuffix(", compiled")] * (factor if has_settings(env) else 1)
        said = json.dumps({"load_s": 0, "calls_s": [seconds] * calls, "peak_bytes": 2**30})
        return subprocess.CompletedProcess(command, 0, said + "\n", "")

    monkeypatch.setattr(compare, "subprocess", SimpleNamespace(run=one_side))
    result = compare.measure(compare.Measurement("forward", "10m", None, tmp_path, 3, first_call=False, compiled_too=True), rounds=2)
    assert result["environments_s"] == {environment.PLAIN: 3.0, SETTINGS: 3.0 * factor} and result["environments"] == environment.ENVIRONMENTS
    assert result["candidates_s"]["theirs"] == {name: SECONDS[name] for name in SECONDS if "," in name}, "the first pass is plain"
    for pair in ("each_at_its_best", "both_float32", "against_compiled"):
        assert result[pair]["environment"] == best and result[pair]["theirs"].startswith(FASTEST), pair
    assert {side for side, _, is_set in runs if is_set} == {"theirs"}, "sdtune's processes are plain"
    assert {candidate for _, candidate, is_set in runs if is_set and "compiled" not in candidate} == {FASTEST}, "the fastest of the first pass alone"
    assert result["each_at_its_best"]["ratio"] == pytest.approx(3.0 * min(factor, 1) / 2.0)


def test_close_candidates_are_timed_again_in_the_calls_of_a_round(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs: list[tuple[str, int, bool]] = []

    def run(self: compare.Measurement, side: str, candidate: compare.Candidate, calls: int, keep: Path | None = None) -> dict[str, object]:
        runs.append((str(candidate), calls, keep is not None))
        if keep:
            np.save(keep, np.full((calls, 2), len(runs)))
        return {"calls_s": [SECONDS[str(candidate)]] * calls}

    monkeypatch.setattr(compare.Measurement, "run", run)
    measurement = compare.Measurement("picture", "sd15", 1, tmp_path, calls=2, first_call=True, round_calls=1)
    found = compare.time_candidates(measurement, "theirs", compare.THEIRS)
    again = [("float32, contiguous", 1, False), (FASTEST, 1, False)]
    assert runs == [(str(candidate), 2, True) for candidate in compare.THEIRS] + again * 2, "within CLOSE of the fastest"
    assert [float(found.results[each].mean()) for each in compare.THEIRS] == [1, 2, 3, 4], "of the first pass, two calls each"


def test_a_result_that_is_not_finite_is_not_timed() -> None:
    """No bound is below NaN, so a side that computed nothing passed for equal."""
    exact = np.ones((3, 4))
    theirs = {candidate: exact for candidate in compare.THEIRS}
    equal = {candidate: exact for candidate in compare.OURS}
    assert set(compare.check_results(equal, theirs).values()) == {0.0}
    for candidate in compare.OURS:
        with pytest.raises(SystemExit, match="the results differ"):
            compare.check_results({**equal, candidate: np.full_like(exact, np.nan)}, theirs)


def test_trainings_of_diffusers_are_tried_in_each_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs: list[tuple[str, str, Path]] = []

    def run_child(command: list[str], first_step: Path, name: str = environment.PLAIN) -> int:
        output = Path(word_after(command, "--output"))
        if command[1] == "train":
            output.mkdir()
            steps = int(word_after(command, "--max-train-steps"))
            (output / "metrics.jsonl").write_text("".join(json.dumps({"time": 2.0 * step}) + "\n" for step in range(steps)))
            assert first_step == output / "metrics.jsonl" and name == environment.PLAIN
            runs.append(("ours", word_after(command, "--mixed-precision"), first_step))
            return 2**30
        candidate = f"{word_after(command, '--dtype')}, {word_after(command, '--layout')}"
        output.write_text(json.dumps({"seconds": [SECONDS[candidate] * (0.5 if name == SETTINGS else 1)] * 3}))
        assert word_after(command, "--first-step") == str(first_step) != str(output)
        runs.append((name, candidate, first_step))
        return 2**31

    monkeypatch.setattr(train, "run_child", run_child)
    result = train.measure_training("portrait-64", "full", None, 4, tmp_path, 2, compiled_too=True)
    assert result["environments_s"] == {environment.PLAIN: 3.0, SETTINGS: 1.5}
    for pair in ("each_at_its_best", "both_float32", "against_compiled"):
        assert result[pair]["environment"] == SETTINGS and result[pair]["peak_memory_since"] == "first step", pair
    assert result["each_at_its_best"]["ratio"] == pytest.approx(1.5 / 2.0)
    assert {candidate for name, candidate, _ in runs if name == SETTINGS} <= {FASTEST, "bfloat16, contiguous"}, "the latter under torch.compile"


def test_commands_of_diffusers_are_tried_in_each_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs: list[tuple[str, str]] = []

    def said(command: list[str], name: str = environment.PLAIN) -> tuple[float, subprocess.CompletedProcess[str]]:
        candidate = f"{word_after(command, '--dtype')}, {word_after(command, '--layout')}" if "--layout" in command else "float32"
        runs.append((candidate, name))
        return SECONDS[candidate] * (0.5 if name == SETTINGS else 1), subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(commands, "said", said)
    result = commands.measure_command("start", tmp_path, 2)
    assert result["each_at_its_best"]["environment"] == SETTINGS and result["environments_s"] == {environment.PLAIN: 3.0, SETTINGS: 1.5}
    assert {candidate for candidate, name in runs if name == SETTINGS} == {FASTEST}
    older = tmp_path / "sdtune"
    older.write_text("")
    monkeypatch.setenv("SDTUNE_BEFORE", str(older))
    runs.clear()
    result = commands.measure_command("start-before", tmp_path, 2)
    assert "environment" not in result["each_at_its_best"] and {name for _, name in runs} == {environment.PLAIN}, "the other side is sdtune"


def test_a_command_gets_the_variables_of_its_environment() -> None:
    code = "import os; print(os.environ.get('THP_MEM_ALLOC_ENABLE'), os.environ.get('PYTHONDONTWRITEBYTECODE'))"
    assert commands.said([sys.executable, "-c", code])[1].stdout.split() == ["None", "None"]
    assert commands.said([sys.executable, "-c", code], SETTINGS)[1].stdout.split() == ["1", "None"]


# Has 300 MiB at first, and later 40; says that its first step is over, and goes on once its peak began anew.
EARLY_AND_FREED = """
import os, pathlib, sys, time
early = b"1" * (300 << 20)
del early
first_step, is_awaited = pathlib.Path(sys.argv[1]), sys.argv[2] == "awaited"
first_step.write_text(os.environ.get("THP_MEM_ALLOC_ENABLE", "unset"))
def peak_kib():
    return next(int(line.split()[1]) for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
while is_awaited and peak_kib() > 200 << 10:
    time.sleep(0.01)
late = b"2" * (40 << 20)
time.sleep(1)
"""
MIB = 2**20


def test_memory_that_is_freed_before_the_first_step_does_not_count(tmp_path: Path) -> None:
    first_step = tmp_path / "first_step"
    words = [sys.executable, "-c", EARLY_AND_FREED, str(first_step)]
    with subprocess.Popen([*words, "ignored"]) as child:
        assert peak.watch_peak(child, 120) > 300 * MIB, "of the whole process"
    first_step.unlink()
    assert 40 * MIB < train.run_child([*words, "awaited"], first_step, SETTINGS) < 200 * MIB
    assert first_step.read_text() == "1", "in the environment that was asked for"
    first_step.unlink()
    with subprocess.Popen([sys.executable, "-c", ""]) as child, pytest.raises(RuntimeError, match="had no content"):
        peak.watch_peak(child, 120, first_step)


def test_diffusers_loop_averages_by_lists_and_says_when_its_first_step_is_over(tiny_base: Path, monkeypatch: pytest.MonkeyPatch,
                                                                               tmp_path: Path) -> None:
    options = argparse.Namespace(base=tiny_base, dtype="float32", lora_rank=0, train_text_encoder=True, average=True)
    averages = diffusers_loop.load(options, torch.contiguous_format).averages
    assert len(averages) == 2 and all(average.foreach for average in averages)
    result, first_step = tmp_path / "result.json", tmp_path / "first_step"
    words = ["--base", str(tiny_base), "--batch", "1", "--steps", "1", "--warm-up", "1", "--latent-size", "8", "--dtype", "float32",
             "--layout", "contiguous", "--average", "--output", str(result), "--first-step", str(first_step)]
    monkeypatch.setattr(sys, "argv", ["diffusers_loop.py", *words])
    diffusers_loop.main()
    assert len(json.loads(result.read_text())["seconds"]) == 1 and first_step.read_text()


def test_the_recorded_plans_are_of_the_grid_s_options() -> None:
    """But for --base portrait-64, the default of that time."""
    record = json.loads((ROOT / "docs" / "measurements" / "plan_portrait-64_cpu.json").read_text())
    named = "--base portrait-64 "
    assert all(" ".join(options).startswith(named) for options in plan.GRID.values())
    assert {row["configuration"]: row["options"] for row in record["rows"]} == \
        {name: " ".join(options).removeprefix(named) for name, options in plan.GRID.items()}
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    peaks, times = record["peak_error"], record["time_error"]
    assert (f"at most {100 * peaks['worst']:.1f} % off (median {100 * peaks['median']:.1f} %), the time of a probe at most "
            f"{100 * times['worst']:.1f} %, with the program and the portrait-64 of 2026-11-22") in page
    assert "2026-11-22 in 04a72eb" in record["commit"] and "04a72eb" in page and "model 207" in page and "model 207" in record["machine"]["cpu"]
