"""A run that is killed or stopped and resumed ends with the very bytes of one that was left alone."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from program import SDTUNE, run
from tiny_models import make_pipeline
from training_reference import write_base, write_photos

MODEL = "model/unet/diffusion_pytorch_model.safetensors"
STEPS, EVERY = 60, 6
KILLS = 10


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A base and five photos."""
    folder = tmp_path_factory.mktemp("resume")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base")
    return base, write_photos(folder / "photos", 5, seed=0)


def words(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate", "1e-4",
            "--train-batch-size", "2", "--max-train-steps", str(STEPS), "--checkpointing-steps", str(EVERY),
            "--report-to", "none", *options]


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([str(SDTUNE), *command], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env={**os.environ, "OMP_NUM_THREADS": "1"})


def model_hash(output: Path) -> str:
    return hashlib.sha256((output / MODEL).read_bytes()).hexdigest()


def steps_of(output: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (output / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def undisturbed(material: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A whole run and how long its steps took."""
    output = tmp_path_factory.mktemp("undisturbed") / "run"
    ended = run(words(material, output))
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return output, lines[-1]["elapsed"]


def wait_for_step(process: subprocess.Popen[str], output: Path, step: int) -> None:
    """Returns when the run has logged that step or is over."""
    while process.poll() is None:
        log = output / "metrics.jsonl"
        if log.exists() and log.read_bytes().count(b"\n") >= step:
            return
        time.sleep(0.01)


def random_moments() -> Iterator[tuple[int, float]]:
    """Ten steps in growing order to be killed after, and a little more time, so that some kills hit a save."""
    draw = random.Random(7)
    yield from ((step, draw.uniform(0, 0.06)) for step in sorted(draw.sample(range(4, STEPS), KILLS)))


def test_ten_kills_leave_the_bytes_of_an_undisturbed_run(material: tuple[Path, Path], undisturbed: tuple[Path, float],
                                                         tmp_path: Path) -> None:
    output, killed = tmp_path / "run", 0
    for step, more in random_moments():
        process = start(words(material, output, "--resume-from-checkpoint", "auto"))
        wait_for_step(process, output, step)
        time.sleep(more)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    assert killed == KILLS
    ended = run(words(material, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert model_hash(output) == model_hash(undisturbed[0])
    assert steps_of(output) == list(range(1, STEPS + 1))
    assert len(json.loads((output / "run.json").read_text())["attempts"]) >= 2


def test_another_seed_gives_other_bytes(material: tuple[Path, Path], undisturbed: tuple[Path, float],
                                        tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "run", "--seed", "1"))
    assert ended.returncode == 0, ended.stderr
    assert model_hash(tmp_path / "run") != model_hash(undisturbed[0])


@pytest.mark.parametrize(("which", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_stops(which: signal.Signals, code: int, material: tuple[Path, Path],
                                  undisturbed: tuple[Path, float], tmp_path: Path) -> None:
    output = tmp_path / "run"
    process = start(words(material, output, "--checkpointing-steps", "1000"))
    wait_for_step(process, output, 10)
    process.send_signal(which)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    done = steps_of(output)[-1]
    assert 10 <= done < STEPS
    assert (output / f"checkpoints/step-{done:08d}/manifest.json").exists()
    ended = run(words(material, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert model_hash(output) == model_hash(undisturbed[0])


def with_images(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    """Four steps, with images that take a while after the second and the last."""
    return words(material, output, "--max-train-steps", "4", "--checkpointing-steps", "1000", "--validation-prompt",
                 "a photo", "--validation-steps", "2", "--num-validation-images", "2", "--validation-inference-steps",
                 "60", *options)


def images_of(output: Path, step: int) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (output / f"samples/step-{step:08d}").glob("*")}


@pytest.fixture(scope="module")
def with_all_images(material: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("pictures") / "run"
    ended = run(with_images(material, output))
    assert ended.returncode == 0, ended.stderr
    assert len(images_of(output, 2)) == len(images_of(output, 4)) == 3
    return output


@pytest.mark.parametrize("step", [2, 4])
def test_generation_of_images_can_be_stopped_and_is_made_up_for(step: int, material: tuple[Path, Path],
                                                            with_all_images: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    process = start(with_images(material, output))
    wait_for_step(process, output, step)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert (output / f"checkpoints/step-{step:08d}/manifest.json").exists()
    assert not images_of(output, step)
    assert not (output / "model").exists()
    ended = run(with_images(material, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    for drawn in (2, 4):
        assert images_of(output, drawn) == images_of(with_all_images, drawn)
    assert model_hash(output) == model_hash(with_all_images)
    assert steps_of(output) == [1, 2, 3, 4]


def test_images_that_are_there_are_not_generated_again(material: tuple[Path, Path], with_all_images: Path,
                                                     tmp_path: Path) -> None:
    output, saving = tmp_path / "run", ("--checkpointing-steps", "2")
    process = start(with_images(material, output, *saving))
    wait_for_step(process, output, 3)
    process.kill()
    process.communicate()
    grid = output / "samples/step-00000002/grid.png"
    assert grid.read_bytes() == images_of(with_all_images, 2)["grid.png"]
    grid.write_bytes(b"as it was")
    ended = run(with_images(material, output, *saving, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert grid.read_bytes() == b"as it was"


def test_the_first_lines_tell_how_long_it_takes(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Once the steps have warmed up, and once only."""
    ended = run(words(material, tmp_path / "run", "--max-train-steps", "8"))
    assert ended.returncode == 0, ended.stderr
    assert len(re.findall(r"^time     about \d\d:\d\d for the \d steps left", ended.stderr, re.MULTILINE)) == 1


@pytest.fixture()
def begun(undisturbed: tuple[Path, float], tmp_path: Path) -> Path:
    """A copy of a run with two checkpoints."""
    return shutil.copytree(undisturbed[0], tmp_path / "begun")


def newest_checkpoints(output: Path) -> list[Path]:
    return sorted((output / "checkpoints").iterdir(), reverse=True)


def test_a_damaged_checkpoint_is_passed_over_by_name(material: tuple[Path, Path], begun: Path,
                                                     undisturbed: tuple[Path, float]) -> None:
    newest = newest_checkpoints(begun)[0]
    weights = newest / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    refused = run(words(material, begun, "--resume-from-checkpoint", str(newest)))
    assert refused.returncode == 3
    assert str(weights) in refused.stderr
    ended = run(words(material, begun, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert str(weights) in ended.stderr
    assert model_hash(begun) == model_hash(undisturbed[0])


def test_only_damaged_checkpoints_end_with_3(material: tuple[Path, Path], begun: Path) -> None:
    for checkpoint in newest_checkpoints(begun):
        (checkpoint / "state.json").unlink()
    for resume in ("latest", "auto", str(newest_checkpoints(begun)[0])):
        ended = run(words(material, begun, "--resume-from-checkpoint", resume))
        assert ended.returncode == 3, f"{resume}: {ended.stderr}"
        assert "state.json" in ended.stderr


def test_nothing_to_resume(material: tuple[Path, Path], tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "none", "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 3, ended.stderr
    ended = run(words(material, tmp_path / "fresh", "--resume-from-checkpoint", "auto", "--max-train-steps", "1"))
    assert ended.returncode == 0, ended.stderr
    assert "starting fresh" in ended.stderr


def test_a_finished_run_without_checkpoints_is_not_replaced(material: tuple[Path, Path], begun: Path, tmp_path: Path) -> None:
    """Neither by auto nor from elsewhere; with --overwrite it is. Whoever starts a killed run again means that run."""
    elsewhere = shutil.copytree(newest_checkpoints(begun)[0], tmp_path / "backup" / newest_checkpoints(begun)[0].name)
    shutil.rmtree(begun / "checkpoints")
    before = model_hash(begun), steps_of(begun), (begun / "run.json").read_bytes()
    for options in (("auto",), ("auto", "--seed", "5"), (str(elsewhere),)):
        refused = run(words(material, begun, "--resume-from-checkpoint", *options))
        assert refused.returncode == 2, f"{options}: {refused.stderr}"
        assert f"{begun}: has a finished run in it, and no checkpoint of it to resume from" in refused.stderr
        assert "starting fresh" not in refused.stderr
        checked = run(["check", *words(material, begun, "--resume-from-checkpoint", *options)[1:]])
        assert checked.returncode == 2 and "has a finished run in it" in checked.stderr, checked.stderr
    assert (model_hash(begun), steps_of(begun), (begun / "run.json").read_bytes()) == before
    record = json.loads((begun / "run.json").read_text())
    for key in ("ended", "exit_code", "cause"):
        del record["attempts"][-1][key]  # as a kill behind the export leaves it
    (begun / "run.json").write_text(json.dumps(record))
    again = run(words(material, begun, "--resume-from-checkpoint", "auto", "--max-train-steps", "1"))
    assert again.returncode == 0 and "starting fresh" in again.stderr, again.stderr
    refused = run(words(material, begun, "--resume-from-checkpoint", "auto"))
    assert refused.returncode == 2, "of one step, and so without a checkpoint"
    replaced = run(words(material, begun, "--overwrite", "--max-train-steps", "2"))
    assert replaced.returncode == 0 and steps_of(begun) == [1, 2], replaced.stderr


def test_a_changed_option_or_photo_is_refused_by_name(material: tuple[Path, Path], begun: Path, tmp_path: Path) -> None:
    ended = run(words(material, begun, "--resume-from-checkpoint", "latest", "--seed", "5"))
    assert ended.returncode == 2
    assert "seed" in ended.stderr
    photos = shutil.copytree(material[1], tmp_path / "photos")
    (photos / "00.png").unlink()
    ended = run(words((material[0], photos), begun, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 2
    assert "00.png" in ended.stderr


def test_fewer_steps_than_the_checkpoint_has_done_are_refused(material: tuple[Path, Path], begun: Path) -> None:
    """The model would be that of the checkpoint's step under the name of fewer; as many as it has done are a finished run."""
    done = int(newest_checkpoints(begun)[0].name.split("-")[1])
    before = model_hash(begun), steps_of(begun), newest_checkpoints(begun)
    refused = run(words(material, begun, "--resume-from-checkpoint", "latest", "--max-train-steps", str(done - 1)))
    assert refused.returncode == 2, refused.stderr
    assert f"max_train_steps: is less than the checkpoint has done (got {done - 1}; allowed: at least {done})" in refused.stderr
    assert (model_hash(begun), steps_of(begun), newest_checkpoints(begun)) == before, "the run is left as it is"
    equal = run(words(material, begun, "--resume-from-checkpoint", "latest", "--max-train-steps", str(done)))
    assert equal.returncode == 0, equal.stderr


def test_a_checkpoint_of_another_run_is_no_neighbour(material: tuple[Path, Path], begun: Path, tmp_path: Path) -> None:
    """It would pass for this run's own where their steps are the same; the same run's may lie there."""
    newest = newest_checkpoints(begun)[0]
    ended = run(words(material, tmp_path / "other", "--seed", "5", "--max-train-steps", "4", "--checkpointing-steps", "2"))
    assert ended.returncode == 0, ended.stderr
    before = sorted(path.name for path in (tmp_path / "other" / "checkpoints").iterdir())
    ended = run(words(material, tmp_path / "other", "--resume-from-checkpoint", str(newest)))
    assert ended.returncode == 2 and "is of another run than" in ended.stderr, ended.stderr
    assert sorted(path.name for path in (tmp_path / "other" / "checkpoints").iterdir()) == before
    copy = shutil.copytree(newest, tmp_path / "backup" / newest.name)
    ended = run(words(material, begun, "--resume-from-checkpoint", str(copy)))
    assert ended.returncode == 0, ended.stderr


def test_another_batch_size_keeps_the_effective_batch(material: tuple[Path, Path], begun: Path,
                                                      undisturbed: tuple[Path, float]) -> None:
    ended = run(words(material, begun, "--resume-from-checkpoint", "latest", "--train-batch-size", "1"))
    assert ended.returncode == 0, ended.stderr
    assert "gradient_accumulation_steps" in (begun / "config.yaml").read_text()
    ended = run(words(material, begun, "--resume-from-checkpoint", "latest", "--train-batch-size", "3"))
    assert ended.returncode == 2
    assert "train_batch_size" in ended.stderr


def test_two_processes_cannot_share_a_folder(material: tuple[Path, Path], tmp_path: Path) -> None:
    first = start(words(material, tmp_path / "run", "--max-train-steps", "100000"))
    wait_for_step(first, tmp_path / "run", 1)
    second = run(words(material, tmp_path / "run", "--resume-from-checkpoint", "auto"))
    first.kill()
    first.communicate()
    assert second.returncode == 2
    assert str(first.pid) in second.stderr


def test_a_resumed_average_is_that_of_an_undisturbed_run(material: tuple[Path, Path], undisturbed: tuple[Path, float],
                                                         tmp_path: Path) -> None:
    """The average is in the checkpoint, is what images are generated with and exported, and is not the last weights."""
    options = ("--use-ema", "--ema-decay", "0.9", "--max-train-steps", "12", "--validation-prompt", "a photo",
               "--validation-steps", "12", "--num-validation-images", "1", "--validation-inference-steps", "3")
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(words(material, whole, *options)).returncode == 0
    shutil.copytree(whole, stopped)
    shutil.rmtree(stopped / "model")
    for late in newest_checkpoints(stopped)[:-1]:
        shutil.rmtree(late)
    ended = run(words(material, stopped, *options, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert steps_of(stopped) == list(range(1, 13))
    assert model_hash(stopped) == model_hash(whole)
    ended = run(["sample", "--model", str(whole), "--prompt", "a photo", "--steps", "3", "--output", str(tmp_path)])
    shown, drawn = (Image.open(path) for path in (*(whole / "samples/step-00000012").glob("*seed*.png"), ended.stdout.strip()))
    assert shown.tobytes() == drawn.tobytes()
    plain = tmp_path / "plain"
    assert run(words(material, plain, "--max-train-steps", "12")).returncode == 0
    assert model_hash(plain) != model_hash(whole)
    without = run(words(material, whole, "--max-train-steps", "12", "--resume-from-checkpoint", "latest"))
    assert without.returncode == 2 and "use_ema" in without.stderr
