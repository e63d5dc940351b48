"""profile: the trace of some steps, as Chrome's viewer and PyTorch's own reader of profiles take it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from counted_flops import ATTENTION, flop_counter
from diffusers import UNet2DConditionModel
from program import run
from training_reference import small_material

import sdtune

PHASES = ("load batch", "forward", "backward", "sum over ranks", "update")


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return small_material(tmp_path_factory.mktemp("profile"), photos=3)


def words(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu", "--max-train-steps", "8",
            "--with-prior-preservation=false", "--report-to", "none", "--report-images", "0", *options]


def losses(output: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


def test_the_trace_holds_steps_phases_and_operators(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Complete events of the format, nested in time: every phase lies in a step, every operator of a forward in it. Losses stay equal."""
    done = run(words(material, tmp_path / "run", "--profile", "3"))
    assert done.returncode == 0, done.stderr
    plain = run(words(material, tmp_path / "plain"))
    assert plain.returncode == 0 and losses(tmp_path / "run") == losses(tmp_path / "plain")
    assert not (tmp_path / "plain" / "profile").exists()

    events = [event for event in json.loads((tmp_path / "run" / "profile" / "trace.json").read_text())["traceEvents"] if event.get("ph") == "X"]
    steps = {event["name"]: event for event in events if event["name"].startswith("ProfilerStep#")}
    assert list(steps) == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]
    for name in PHASES:
        found = [event for event in events if event["name"] == name]
        assert len(found) == 3, name
        for event, step in zip(found, steps.values()):
            assert step["ts"] <= event["ts"] and event["ts"] + event["dur"] <= step["ts"] + step["dur"] + 1, name
    names = {event["name"] for event in events}
    assert {"aten::convolution", "aten::convolution_backward"} <= names
    assert {"aten::addmm", "sdtune::small_product"} & names  # a linear layer, by the processor

    table = (tmp_path / "run" / "profile" / "operators.txt").read_text()
    shown = [line for line in table.splitlines() if "aten::" in line]
    printed = [line for line in done.stderr.splitlines() if "aten::" in line]
    first = table.split("  operator\n")[1].splitlines()[:10]  # all that is printed; not every operator is of aten
    assert len(first) == 10 and set(first) <= set(done.stderr.splitlines())
    assert printed == [line for line in first if "aten::" in line] and len(shown) > 20
    shares = [float(line.split()[0]) for line in table.split("  operator\n")[1].splitlines()]
    assert shares == sorted(shares, reverse=True) and 50 < sum(shares) <= 101
    assert str(tmp_path / "run" / "profile" / "trace.json") in done.stderr


def test_flops_are_those_that_pytorch_counts(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Of the UNet's convolutions and attention, forward and backward, by diffusers' UNet under PyTorch's counter; with another batch they
    differ."""
    events: list[sdtune.ProfileEvent] = []
    base, photos = material
    sdtune.train(sdtune.TrainConfig(base=str(base), images=str(photos), output=str(tmp_path / "run"), device="cpu", max_train_steps=4,
                                    with_prior_preservation=False, report_to="none", report_images=0, profile=1),
                 on_profile=events.append, progress=False)
    (event,) = events
    assert (event.first_step, event.steps) == (3, 1) and event.trace == tmp_path / "run" / "profile" / "trace.json"
    assert list(event.phases)[0] == "load batch" and set(PHASES) <= set(event.phases) and "aten::" in str(event)
    assert all(seconds > 0 for seconds in event.phases.values()) and sum(event.phases.values()) <= event.seconds  # one after the other
    shape = next(one["args"]["Input Dims"][0] for one in json.loads(event.trace.read_text())["traceEvents"]
                 if one.get("name") == "aten::convolution")

    def counted(batch: int) -> dict[str, float]:
        unet = UNet2DConditionModel.from_pretrained(base / "unet")
        context = torch.zeros(batch, 77, unet.config.cross_attention_dim)
        with flop_counter() as counter:
            unet(torch.zeros(batch, *shape[1:]), torch.zeros(batch, dtype=torch.long), context).sample.sum().backward()
        return {str(name): flops for name, flops in counter.get_flop_counts()["Global"].items()}

    ours = {one["name"]: one["flops"] for one in event.operators}
    for suffix in ("", "_backward"):
        theirs = ATTENTION + suffix
        assert ours[f"sdtune::attention{suffix}"] == pytest.approx(counted(shape[0])[theirs], rel=1e-12)
        assert ours[f"sdtune::attention{suffix}"] != pytest.approx(counted(shape[0] + 1)[theirs], rel=1e-3)
    for name in ("convolution", "convolution_backward"):  # LibTorch's, and those that sdtune takes apart into patches
        flops = ours[f"aten::{name}"] + ours.get(f"sdtune::patch_{name}", 0)
        assert flops == pytest.approx(counted(shape[0])[f"aten.{name}"], rel=1e-12)
        assert flops != pytest.approx(counted(shape[0] + 1)[f"aten.{name}"], rel=1e-3)


def test_a_stop_ends_it_early(material: tuple[Path, Path], tmp_path: Path) -> None:
    """The end of training writes what was profiled; two steps are not enough."""
    done = run(words(material, tmp_path / "run", "--profile", "100"))
    assert done.returncode == 0 and "steps 3 to 8" in done.stderr
    short = run(words(material, tmp_path / "short", "--profile", "100", "--max-train-steps", "2"))
    assert short.returncode == 0 and "trace.json" not in short.stderr and not (tmp_path / "short" / "profile").exists()


def test_two_ranks_and_overwriting(material: tuple[Path, Path], tmp_path: Path) -> None:
    """The first rank is profiled, with what it sends; --overwrite takes an old trace away."""
    done = run(["launch", "--nproc", "2", "--", *words(material, tmp_path / "run", "--profile", "2", "--train-batch-size", "1")])
    assert done.returncode == 0, done.stderr
    names = {event.get("name") for event in json.loads((tmp_path / "run" / "profile" / "trace.json").read_text())["traceEvents"]}
    assert "sum over ranks" in names and any("all_reduce" in str(name) or "allreduce" in str(name) for name in names), sorted(map(str, names))
    again = run(words(material, tmp_path / "run", "--overwrite"))
    assert again.returncode == 0 and not (tmp_path / "run" / "profile").exists()


def test_what_is_refused(material: tuple[Path, Path], tmp_path: Path) -> None:
    done = run(words(material, tmp_path / "run", "--profile", "1001"))
    assert done.returncode == 2 and "profile" in done.stderr and "1000" in done.stderr and not (tmp_path / "run").exists()
