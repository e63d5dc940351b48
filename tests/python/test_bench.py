"""scripts/bench: which processes it compares, in which environment, and from when on their memory counts.

Processes are stubbed, but for small ones.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from program import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from bench import commands, compare, diffusers_loop, diffusers_tasks, environment, peak, plan, train, works  # noqa: E402

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
    of_both = {"float32": exact, "bfloat16": exact}
    assert set(compare.check_results(equal, theirs, of_both).values()) == {0.0}
    for candidate in compare.OURS:
        with pytest.raises(SystemExit, match="the results differ"):
            compare.check_results({**equal, candidate: np.full_like(exact, np.nan)}, theirs, of_both)


def test_images_in_bfloat16_are_compared_with_one_of_the_same_noise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A seed's noise is another in bfloat16, so that against float32's image a wrong one was as near as diffusers' own."""
    runs: list[str] = []
    of_float32, of_bfloat16 = np.full((3, 4), 1.0), np.full((3, 4), 2.0)

    def run(self: compare.Measurement, side: str, candidate: compare.Candidate, calls: int, keep: Path | None = None) -> dict[str, object]:
        runs.append(str(candidate))
        assert side == "theirs" and calls == 3 and keep and works.Candidate.parse(str(candidate)) == candidate
        np.save(keep, of_bfloat16)
        return {"calls_s": [1.0] * calls}

    monkeypatch.setattr(compare.Measurement, "run", run)
    theirs = {each: of_float32 if each.dtype == "float32" else 1.01 * of_bfloat16 for each in compare.THEIRS}
    picture, forward = (compare.Measurement(work, "10m", 1, tmp_path, calls=3, first_call=False) for work in ("picture", "forward"))
    exact = compare.exact_results(picture, theirs)
    assert runs == ["float32, contiguous, noise of bfloat16"] and np.array_equal(exact["bfloat16"], of_bfloat16)
    ours = dict(zip(compare.OURS, (of_float32, 1.01 * of_bfloat16), strict=True))
    assert compare.check_results(ours, theirs, exact)["ours, bfloat16"] == pytest.approx(0.01)
    wrong = {**ours, compare.OURS[1]: 1.5 * of_float32}  # nearer to float32's image than theirs is
    with pytest.raises(SystemExit, match="the results differ"):
        compare.check_results(wrong, theirs, exact)
    assert compare.exact_results(forward, theirs)["bfloat16"] is of_float32 is theirs[compare.THEIRS[0]]
    in_float32 = {each: of_float32 for each in compare.THEIRS if each.dtype == "float32"}
    assert compare.exact_results(picture, in_float32)["float32"] is of_float32 and len(runs) == 1, "bfloat16 was ended"


def test_noise_that_is_given_is_what_a_pipeline_draws(tmp_path: Path) -> None:
    def image(dtype: str, noise: str) -> np.ndarray:
        picture = works.Picture(works.MODELS["10m"], tmp_path)
        picture.steps = 2
        return picture.theirs(works.Candidate(dtype, "contiguous", noise=noise))()

    drawn = image("float32", "")
    assert np.allclose(image("float32", "float32"), drawn, atol=1e-4)
    of_bfloat16 = image("float32", "bfloat16")
    assert np.abs(of_bfloat16 - drawn).mean() > 0.03, "another noise"
    assert np.abs(image("bfloat16", "") - of_bfloat16).mean() < 0.03 < np.abs(image("bfloat16", "") - drawn).mean()


@pytest.mark.parametrize(("words", "said"), [
    ("train --model portrait-64 --batch 2", "--batch and --method do not change"),
    ("train --model portrait-64 --method lora", "--batch and --method do not change"),
    ("picture --batch 4", "--batch is for forward"), ("growth --steps 3", "--steps is for forward"),
    ("forward --method lora", "--method is for train")])
def test_a_flag_that_would_change_nothing_is_refused(words: str, said: str) -> None:
    """It was left out in silence, and the record named it."""
    ended = subprocess.run([sys.executable, str(ROOT / "scripts" / "bench.py"), *words.split()], capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and said in ended.stderr


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


def test_diffusers_side_of_encoding_loads_no_unet(tiny_base: Path, tmp_path: Path) -> None:
    """At SD 1.5's size it is most of what there is to load."""
    base, photo = tmp_path / "base", tmp_path / "photo.png"
    shutil.copytree(tiny_base, base)
    for weights in (base / "unet").glob("*.safetensors"):
        weights.unlink()
    Image.new("RGB", (80, 64)).save(photo)
    for layout in ("contiguous", "channels_last"):
        options = argparse.Namespace(base=base, dtype="float32", layout=layout, output=tmp_path)
        diffusers_tasks.encode(options, diffusers_tasks.pipeline_of(options, unet=None), [photo])
    assert (tmp_path / "latents.safetensors").is_file()
    words = [sys.executable, str(ROOT / "scripts/bench/diffusers_tasks.py"), "encode", "--base", str(base), "--photos", str(tmp_path), "--output",
             str(tmp_path / "whole")]
    subprocess.run(words, check=True, capture_output=True)


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
