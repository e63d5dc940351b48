"""Several Gloo ranks of the real program against one process, and what the others do when one is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = "model/unet/diffusion_pytorch_model.safetensors"
STEPS = 20
EFFECTIVE_BATCH = 4
PEER_TIMEOUT_S = 30


def program() -> Path:
    """The installed program, or the one of the build folder."""
    for path in (ROOT / ".venv/bin/sdtune", ROOT / "build/app/sdtune"):
        if path.exists():
            return path
    raise FileNotFoundError("no sdtune program: run scripts/setup.sh")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five pictures of noise, 32 px."""
    folder = tmp_path_factory.mktemp("photos")
    draw = np.random.default_rng(0)
    for index in range(5):
        Image.fromarray(draw.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(folder / f"{index}.png")
    return folder


def train_command(base: Path, photos: Path, output: Path, *options: str) -> list[str]:
    """`sdtune train` of the UNet alone; `options` are appended."""
    return [str(program()), "train", "--images", str(photos), "--base", str(base), "--output", str(output),
            "--device", "cpu", "--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate",
            "1e-4", "--peer-timeout", str(PEER_TIMEOUT_S), "--start-timeout", "60", *options]


def environment(**variables: str) -> dict[str, str]:
    """One thread a rank: the machine has few cores."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **variables}


def torchrun(ranks: int, command: list[str], timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """`command` under torchrun --no-python, with a port that the system chooses."""
    launcher = [str(ROOT / ".venv/bin/torchrun"), "--standalone", "--local-addr", "127.0.0.1", "--no-python",
                "--nproc-per-node", str(ranks)]
    return subprocess.run([*launcher, *command], env=environment(), capture_output=True, text=True, timeout=timeout)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(ranks: int, command: list[str]) -> list[subprocess.Popen[str]]:
    """The ranks by hand, without torchrun."""
    port = str(free_port())
    return [subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=port)) for rank in range(ranks)]


def weights_of(output: Path) -> np.ndarray:
    """All UNet weights as one vector."""
    tensors = load_file(output / WEIGHTS)
    return np.concatenate([tensors[name].astype(np.float64).ravel() for name in sorted(tensors)])


def relative(got: np.ndarray, want: np.ndarray) -> float:
    """|got - want| / |want|."""
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def layout(ranks: int) -> list[str]:
    """Options under which `ranks` ranks make the same effective batch from single pictures."""
    return ["--train-batch-size", "1", "--gradient-accumulation-steps", str(EFFECTIVE_BATCH // ranks),
            "--max-train-steps", str(STEPS), "--seed", "3"]


@pytest.fixture(scope="module")
def one_process(tiny_sd1: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The weights after 20 steps of one process."""
    output = tmp_path_factory.mktemp("one") / "run"
    done = subprocess.run(train_command(tiny_sd1, photos, output, *layout(1)), env=environment(), capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return weights_of(output)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_equal_one_process(ranks: int, tiny_sd1: Path, photos: Path, one_process: np.ndarray,
                                 tmp_path: Path) -> None:
    """2 x 2 and 4 x 1 give the weights of 1 x 4; the update agrees too, which weights that hardly move would hide."""
    done = torchrun(ranks, train_command(tiny_sd1, photos, tmp_path / "run", *layout(ranks)))
    assert done.returncode == 0, done.stderr
    start = np.concatenate([t.astype(np.float64).ravel() for _, t in sorted(
        load_file(tiny_sd1 / "unet/diffusion_pytorch_model.safetensors").items())])
    weights = weights_of(tmp_path / "run")
    assert relative(weights, one_process) <= 1e-5
    assert relative(weights - start, one_process - start) <= 1e-2


def test_another_seed_is_told_apart(tiny_sd1: Path, photos: Path, one_process: np.ndarray, tmp_path: Path) -> None:
    """The mutant of the test above."""
    command = train_command(tiny_sd1, photos, tmp_path / "run", *layout(1)[:-1], "4")
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert relative(weights_of(tmp_path / "run"), one_process) > 1e-5


def wait_for_steps(output: Path, steps: int) -> None:
    """Until metrics.jsonl has that many lines."""
    metrics = output / "metrics.jsonl"
    deadline = time.monotonic() + 90
    while not metrics.exists() or len(metrics.read_text().splitlines()) < steps:
        assert time.monotonic() < deadline, "the run does not begin"
        time.sleep(0.05)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_rank_is_named(lost: int, tiny_sd1: Path, photos: Path, tmp_path: Path) -> None:
    """The others end with 138 within the timeout and say who is lost, also when it is the one that holds the store."""
    output = tmp_path / "run"
    ranks = start_ranks(3, train_command(tiny_sd1, photos, output, "--max-train-steps", "100000"))
    try:
        wait_for_steps(output, 3)
        ranks[lost].send_signal(signal.SIGKILL)
        survivors = [rank for index, rank in enumerate(ranks) if index != lost]
        for survivor in survivors:
            _, errors = survivor.communicate(timeout=PEER_TIMEOUT_S + 10)
            assert survivor.returncode == 138, errors
            assert f"rank {lost} (" in errors
    finally:
        for rank in ranks:
            rank.kill()
    assert f"rank {lost} (" in json.dumps(json.loads((output / "last_error.json").read_text()))


def rank_pids(launcher: int) -> list[int]:
    """The processes that torchrun started, by rank."""
    by_rank: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            variables = dict(entry.split("=", 1) for entry in (stat.parent / "environ").read_text().split("\0") if "=" in
                             entry) if parent == launcher else {}
        except (OSError, IndexError):
            continue
        if "RANK" in variables:
            by_rank[int(variables["RANK"])] = int(stat.parent.name)
    return [by_rank[rank] for rank in sorted(by_rank)]


def test_torchrun_ends_and_the_lost_rank_is_on_record(tiny_sd1: Path, photos: Path, tmp_path: Path) -> None:
    """torchrun reports its own code; nothing hangs, and last_error.json names the rank."""
    output = tmp_path / "run"
    launcher = subprocess.Popen(
        [str(ROOT / ".venv/bin/torchrun"), "--standalone", "--local-addr", "127.0.0.1", "--no-python",
         "--nproc-per-node", "2", *train_command(tiny_sd1, photos, output, "--max-train-steps", "100000")],
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_steps(output, 3)
        os.kill(rank_pids(launcher.pid)[1], signal.SIGKILL)
        assert launcher.wait(timeout=PEER_TIMEOUT_S + 30) != 0
    finally:
        launcher.kill()
    assert "rank 1" in (output / "last_error.json").read_text()
