"""Several Gloo ranks of the real program against one process, and what the others do when one is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from ports import free_port
from program import SDTUNE
from safetensors.numpy import load_file
from tiny_models import make_pipeline
from training_reference import write_base

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = "model/unet/diffusion_pytorch_model.safetensors"
STEPS = 20
PEER_TIMEOUT_S = 30


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five images of noise, 32 px."""
    folder = tmp_path_factory.mktemp("photos")
    draw = np.random.default_rng(0)
    for index in range(5):
        Image.fromarray(draw.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(folder / f"{index}.png")
    return folder


def train_command(base: Path, photos: Path, output: Path, *options: str) -> list[str]:
    """`sdtune train` of the UNet alone; `options` are appended."""
    return [str(SDTUNE), "train", "--images", str(photos), "--base", str(base), "--output", str(output),
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


def launched(ranks: int, command: list[str], timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """The same under `sdtune launch`, whose runs are torchrun's bit for bit (test_launch.py) and start without Python."""
    launcher = [command[0], "launch", "--nproc", str(ranks), "--", *command[1:]]
    return subprocess.run(launcher, env=environment(), capture_output=True, text=True, timeout=timeout)


def start_rank(rank: int, ranks: int, port: int, command: list[str], folder: Path | None = None,
               **variables: str) -> subprocess.Popen[str]:
    """One of them by hand, without torchrun, in a working directory of its own or this one."""
    return subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, env=environment(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), **variables))


def start_ranks(ranks: int, command: list[str], rank_with: int = 0, **variables: str) -> list[subprocess.Popen[str]]:
    """All of them; `variables` are environment variables of the rank `rank_with` alone."""
    port = free_port()
    return [start_rank(rank, ranks, port, command, **(variables if rank == rank_with else {})) for rank in range(ranks)]


def weights_of(output: Path) -> np.ndarray:
    """All UNet weights as one vector."""
    tensors = load_file(output / WEIGHTS)
    return np.concatenate([tensors[name].astype(np.float64).ravel() for name in sorted(tensors)])


def relative(got: np.ndarray, want: np.ndarray) -> float:
    """|got - want| / |want|."""
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def layout(batch: int, micro_batch: int, accumulation: int) -> list[str]:
    """Options of one rank, of which all together must make the same effective batch."""
    return ["--train-batch-size", str(batch), "--micro-batch", str(micro_batch), "--gradient-accumulation-steps",
            str(accumulation), "--max-train-steps", str(STEPS), "--seed", "3"]


# name: (ranks, options of each). Ranks x micro-batches of one image, once by accumulation and once by micro_batch.
LAYOUTS = {
    "2 x 2, accumulated": (2, layout(batch=1, micro_batch=1, accumulation=2)),
    "2 x 2, micro-batches": (2, layout(batch=2, micro_batch=1, accumulation=1)),
    "4 x 1": (4, layout(batch=1, micro_batch=1, accumulation=1)),
    "1 x 4, micro-batches": (1, layout(batch=4, micro_batch=1, accumulation=1)),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With norm groups of several channels, see write_base: no parameter's gradient is zero in mathematics."""
    folder = tmp_path_factory.mktemp("base")
    return write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "sd1")


@pytest.fixture(scope="module")
def one_process(base: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The weights after 20 steps of 1 x 4."""
    output = tmp_path_factory.mktemp("one") / "run"
    done = subprocess.run(train_command(base, photos, output, *layout(batch=1, micro_batch=1, accumulation=4)),
                          env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return weights_of(output)


@pytest.mark.parametrize("name", LAYOUTS)
def test_ranks_equal_one_process(name: str, base: Path, photos: Path, one_process: np.ndarray, tmp_path: Path) -> None:
    """All layouts give the weights of 1 x 4 to 1e-5, and its update too, which weights that hardly move would hide."""
    ranks, options = LAYOUTS[name]
    done = torchrun(ranks, train_command(base, photos, tmp_path / "run", *options))
    assert done.returncode == 0, done.stderr
    start = np.concatenate([t.astype(np.float64).ravel() for _, t in sorted(
        load_file(base / "unet/diffusion_pytorch_model.safetensors").items())])
    weights = weights_of(tmp_path / "run")
    update_error = relative(weights - start, one_process - start)
    print(f"{name}: weights {relative(weights, one_process):.1e}, update {update_error:.1e}")
    assert relative(weights, one_process) <= 1e-5
    assert update_error <= 1e-5


def test_another_seed_is_told_apart(base: Path, photos: Path, one_process: np.ndarray, tmp_path: Path) -> None:
    """The mutant of the test above."""
    command = train_command(base, photos, tmp_path / "run", *layout(batch=1, micro_batch=1, accumulation=4)[:-1], "4")
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert relative(weights_of(tmp_path / "run"), one_process) > 1e-5


BF16_STEPS = 2  # the masters' last digits decide soon how a weight is rounded to bfloat16, and that grows
BF16_BOUND = 1e-6


def bf16(options: list[str], *more: str) -> list[str]:
    """Those options in bfloat16, for few steps; Adam's division would blow up the smallest gradients' last digits."""
    changed = [*options, "--mixed-precision", "bf16", "--adam-epsilon", "1e-3", *more]
    changed[changed.index("--max-train-steps") + 1] = str(BF16_STEPS)
    return changed


def start_of(base: Path) -> np.ndarray:
    """The UNet's weights before the run, as weights_of gives those after it."""
    tensors = load_file(base / "unet/diffusion_pytorch_model.safetensors")
    return np.concatenate([tensors[name].astype(np.float64).ravel() for name in sorted(tensors)])


@pytest.fixture(scope="module")
def one_process_bf16(base: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The update of 1 x 4 accumulated in bfloat16."""
    output = tmp_path_factory.mktemp("bf16") / "run"
    command = train_command(base, photos, output, *bf16(layout(batch=1, micro_batch=1, accumulation=4)))
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return weights_of(output) - start_of(base)


@pytest.mark.parametrize("name", [name if name == "2 x 2, accumulated" else pytest.param(name, marks=pytest.mark.long) for name in LAYOUTS])
def test_ranks_equal_one_process_in_bfloat16_too(name: str, base: Path, photos: Path, one_process_bf16: np.ndarray,
                                                 tmp_path: Path) -> None:
    """Gradients of micro-batches and ranks are summed in float32, so only the order of that sum is left. The mutant sums
    in bfloat16, which an option asks for."""
    ranks, options = LAYOUTS[name]
    found = {}
    for sums, more in (("float32", []), ("bfloat16", ["--half-precision-gradient-sums"])):
        done = torchrun(ranks, train_command(base, photos, tmp_path / sums, *bf16(options, *more)))
        assert done.returncode == 0, done.stderr
        found[sums] = relative(weights_of(tmp_path / sums) - start_of(base), one_process_bf16)
    print(f"{name}: {found}")
    assert found["float32"] <= BF16_BOUND
    assert found["bfloat16"] > 10 * BF16_BOUND


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


def test_a_signal_to_one_rank_stops_all_after_the_same_step(tiny_sd1: Path, photos: Path, tmp_path: Path) -> None:
    """Each rank ends with the signal's code, rank 0 has saved the last step that it did, and the run can go on."""
    output = tmp_path / "run"
    ranks = start_ranks(2, train_command(tiny_sd1, photos, output, "--max-train-steps", "100000"))
    try:
        wait_for_steps(output, 3)
        ranks[1].send_signal(signal.SIGTERM)
        errors = [rank.communicate(timeout=60)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [143, 143], errors
    steps = [json.loads(line)["step"] for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert [path.name for path in (output / "checkpoints").iterdir()] == [f"step-{steps[-1]:08}"]
    more = ["--max-train-steps", str(steps[-1] + 2), "--resume-from-checkpoint", "latest"]
    ranks = start_ranks(2, train_command(tiny_sd1, photos, output, *more))
    errors = [rank.communicate(timeout=60)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    steps = [json.loads(line)["step"] for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, steps[-1] + 1))


def rank_pids(launcher: int) -> list[int]:
    """The processes that torchrun started, by rank."""
    by_rank: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            entries = (stat.parent / "environ").read_text().split("\0") if parent == launcher else []
        except (OSError, IndexError):
            continue
        variables = dict(entry.split("=", 1) for entry in entries if "=" in entry)
        if "RANK" in variables:
            by_rank[int(variables["RANK"])] = int(stat.parent.name)
    return [by_rank[rank] for rank in sorted(by_rank)]


@pytest.mark.long
def test_torchrun_ends_and_the_lost_rank_is_on_record(tiny_sd1: Path, photos: Path, tmp_path: Path) -> None:
    """torchrun reports its own code; every rank ends, and last_error.json names the rank."""
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


SLOW_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int fsync(int file) {
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/checkpoints/")) sleep(2);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}
"""


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment under which each fsync of a checkpoint takes 2 s longer, as on a network disk under load."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "slow.c").write_text(SLOW_DISK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / "slow.so"), str(folder / "slow.c")], check=True)
    return {"LD_PRELOAD": str(folder / "slow.so")}


def test_a_slow_checkpoint_is_no_lost_rank(base: Path, photos: Path, slow_disk: dict[str, str], tmp_path: Path) -> None:
    """Rank 0 writes for much longer than peer_timeout; the other one waits as long as rank 0's heart beats."""
    command = train_command(base, photos, tmp_path / "run", "--max-train-steps", "2", "--checkpointing-steps", "1")
    command[command.index("--peer-timeout") + 1] = "3"
    ranks = start_ranks(2, command, **slow_disk)
    errors = [rank.communicate(timeout=180)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    saved = re.search(r"^saved .* in ([0-9.]+) s$", errors[0], re.MULTILINE)
    assert saved and float(saved[1]) > 2 * 3, "the disk was not slow"
