"""On a GPU checkpoints are written while the steps go on, by a thread of its own; on the GPU of which only the calls exist nothing is computed,
but every file is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from program import ROOT, run

sys.path.insert(0, str(ROOT / "scripts"))

from operators.product import Product, is_built  # noqa: E402

pytestmark = pytest.mark.skipif(not is_built(), reason="this build has no CUDA kernels: SDTUNE_CUDA=ON")
PHOTOS = ROOT / "examples" / "backpack_dog"
WORDS = ["--with-prior-preservation=false", "--train-text-encoder=false", "--train-batch-size", "1", "--checkpointing-steps", "2"]
PROGRAM = """
    import sys, sdtune
    device, base, photos, output = sys.argv[1:]
    config = sdtune.TrainConfig(images=photos, base=base, output=output, device=device, max_train_steps=7, checkpointing_steps=2, train_batch_size=1,
                                with_prior_preservation=False, train_text_encoder=False)
    sdtune.train(config, progress=False, on_checkpoint=lambda event: print(event.step, event.waited != event.seconds, event.path.is_dir()))
"""


def checkpoints_told(device: str, base: Path, output: Path, **variables: str) -> list[tuple[int, bool, bool]]:
    """Step, whether the steps waited for something else than the writing, and whether it is there, of each that was told."""
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), device, str(base), str(PHOTOS), str(output)], env={**os.environ, **variables},
                           capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return [(int(step), waited == "True", there == "True") for step, waited, there in (line.split() for line in ended.stdout.splitlines())]


def test_steps_do_not_wait_for_the_writing(tiny_sd1: Path, tmp_path: Path) -> None:
    product = Product(tmp_path / "gpu")
    told = checkpoints_told("cuda:0", tiny_sd1, tmp_path / "run", **product.environment)
    assert told == [(step, True, True) for step in (2, 4, 6)]
    assert checkpoints_told("cpu", tiny_sd1, tmp_path / "cpu") == [(step, False, True) for step in (2, 4, 6)]  # whose threads compute


def test_the_device_s_clock_times_every_step(tiny_sd1: Path, tmp_path: Path) -> None:
    """On the recorded GPU 1 ms lies between any two events. The first step, and that after a checkpoint, said how long the host queued it."""
    product, output = Product(tmp_path / "gpu"), tmp_path / "run"
    words = ["train", "--images", str(PHOTOS), "--base", str(tiny_sd1), "--output", str(output), "--device", "cuda:0", *WORDS]
    ended = run([*words, "--max-train-steps", "5"], timeout=300, **product.environment)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], line["images_per_s"]) for line in lines] == [(step, 1 / 0.001) for step in range(1, 6)]
    # So do elapsed and time: the host, which is steps ahead, knows when a step was queued. Steps 2 and 4 are followed by a pause.
    assert lines[0]["elapsed"] == pytest.approx(0.001)
    for before, line in zip(lines, lines[1:]):
        passed = line["elapsed"] - before["elapsed"]
        assert passed > 0.001 if before["step"] in (2, 4) else passed == pytest.approx(0.001)


def test_a_run_resumes_from_what_was_written_beside_its_steps(tiny_sd1: Path, tmp_path: Path) -> None:
    """Also the last one, whose writing the end of the run waits for; older ones than the limit are gone."""
    product, output = Product(tmp_path / "gpu"), tmp_path / "run"
    words = ["train", "--images", str(PHOTOS), "--base", str(tiny_sd1), "--output", str(output), "--device", "cuda:0", *WORDS,
             "--checkpoints-total-limit", "2"]
    ended = run([*words, "--max-train-steps", "7"], timeout=300, **product.environment)
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in (output / "checkpoints").iterdir()) == ["step-00000004", "step-00000006"]
    ended = run([*words, "--max-train-steps", "9", "--resume-from-checkpoint", "latest"], timeout=300, **product.environment)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["attempt"] == 2] == [7, 8, 9]
