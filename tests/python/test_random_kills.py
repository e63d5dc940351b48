"""Ranks under `sdtune launch` that SIGKILL ends at random moments: restarted, and in the end the bytes of the undisturbed run.

Two kills in CI. `SDTUNE_RANDOM_KILLS=40 python -m pytest -s tests/python/test_random_kills.py` does 40 with each number of ranks
and prints a line for each run; SDTUNE_RANDOM_KILLS_SEED chooses other moments.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from test_launch import launch, started, training, wait_until_gone
from test_ranks import base, environment, photos, rank_pids  # noqa: F401 (fixtures)

KILLS = int(os.environ.get("SDTUNE_RANDOM_KILLS", "2"))
SEED = int(os.environ.get("SDTUNE_RANDOM_KILLS_SEED", "0"))
MOST_OF_A_RUN = 5
pytestmark = pytest.mark.timeout(600 + 60 * KILLS)
# Ranks, and options that keep the effective batch of `training` at any number of them.
LAYOUTS = {"2 ranks": (2, []), "4 ranks, sharded gradients": (4, ["--shard", "gradients"])}


def digest(output: Path) -> str:
    """Of all weights and states that the run left: the result and the newest checkpoint."""
    newest = max((output / "checkpoints").glob("step-*"))
    files = sorted([*newest.rglob("*.safetensors"), *(output / "model").rglob("*.safetensors")])
    assert len(files) >= 4, files
    together = hashlib.sha256()
    for file in files:
        together.update(f"{file.relative_to(output)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return together.hexdigest()


def disturbed(command: list[str], ranks: int, kills: int, seconds: float, draws: random.Random) -> tuple[int, str]:
    """Runs `command`, which takes `seconds` undisturbed, and kills ranks while it lasts: how many were killed, and what launch said."""
    done = 0
    with started(command, OMP_NUM_THREADS="1") as launcher:
        while done < kills and launcher.poll() is None:
            try:
                launcher.wait(timeout=draws.uniform(0.1, 0.9) * seconds)
            except subprocess.TimeoutExpired:
                alive = rank_pids(launcher.pid)
                if len(alive) == ranks:
                    os.kill(alive[draws.randrange(ranks)], signal.SIGKILL)
                    done += 1
                    wait_for_other_ranks(launcher, alive)
        _, errors = launcher.communicate(timeout=400)
        assert launcher.returncode == 0, errors
    return done, errors


def wait_for_other_ranks(launcher: subprocess.Popen[str], before: list[int]) -> None:
    """Until the ranks of `before` have been replaced."""
    deadline = time.monotonic() + 120
    while launcher.poll() is None:
        now = rank_pids(launcher.pid)
        if len(now) == len(before) and not set(now) & set(before):
            return
        assert time.monotonic() < deadline, "launch did not restart the ranks"
        time.sleep(0.05)


@pytest.mark.parametrize("name", ["2 ranks", pytest.param("4 ranks, sharded gradients", marks=pytest.mark.long)])
def test_random_kills_change_no_byte(name: str, base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    ranks, options = LAYOUTS[name]

    def words(folder: str, *more: str) -> list[str]:
        return launch(training(base, photos, tmp_path / folder, *options, *more), "--max-restarts", str(MOST_OF_A_RUN), ranks=ranks)

    begin = time.monotonic()
    undisturbed = subprocess.run(words("undisturbed"), env=environment(OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=400)
    assert undisturbed.returncode == 0, undisturbed.stderr
    seconds = time.monotonic() - begin
    wanted = digest(tmp_path / "undisturbed")
    draws = random.Random(f"{SEED} {name}")
    done = runs = 0
    while done < KILLS:
        killed, errors = disturbed(words(f"run-{runs}"), ranks, min(MOST_OF_A_RUN, KILLS - done), seconds, draws)
        assert killed > 0 or runs < MOST_OF_A_RUN, "the runs were over before a kill"
        done, runs = done + killed, runs + 1
        output = tmp_path / f"run-{runs - 1}"
        attempts = json.loads((output / "run.json").read_text())["attempts"]
        print(f"{name}: run {runs}, {killed} kills, {len(attempts)} attempts from steps "
              f"{[attempt['first_step'] for attempt in attempts]}; {done} of {KILLS} kills")
        assert errors.count("was ended by signal 9") >= killed, errors
        assert digest(output) == wanted
        wait_until_gone(output)
    other = subprocess.run(words("other", "--seed", "4"), env=environment(OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=400)
    assert other.returncode == 0, other.stderr
    assert digest(tmp_path / "other") != wanted  # the mutant
