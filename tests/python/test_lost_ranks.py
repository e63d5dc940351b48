"""A rank that is killed or stopped inside each collective: the others end with 138 and name the rank, its host and the step."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from test_ranks import environment, photos, start_ranks, train_command  # noqa: F401 (photos is a fixture)

# The product's calls into c10d go through a table that names these functions, so a library loaded before LibTorch takes
# their place. In FAULT_CALL's call number FAULT_COUNT it writes the file FAULT_MARK and sends its process FAULT_SIGNAL.
# Both C++ functions get the address of their result first, so four pointers pass all there is.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void meet_fault(const char *call) {
  static int count = 0;
  const char *wanted = getenv("FAULT_CALL");
  if (!wanted || strcmp(wanted, call) != 0) return;
  if (__sync_add_and_fetch(&count, 1) != atoi(getenv("FAULT_COUNT"))) return;
  close(open(getenv("FAULT_MARK"), O_CREAT | O_WRONLY, 0600));
  kill(getpid(), atoi(getenv("FAULT_SIGNAL")));
}

#define COLLECTIVE(symbol, name)                                                      \
  void *symbol(void *result, void *self, void *first, void *second, void *third) {    \
    meet_fault(name);                                                                 \
    return ((void *(*)(void *, void *, void *, void *, void *))dlsym(RTLD_NEXT, #symbol))(result, self, first, second, third); \
  }

COLLECTIVE(_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE, "allreduce")
COLLECTIVE(_ZN4c10d16ProcessGroupGloo9broadcastERSt6vectorIN2at6TensorESaIS3_EERKNS_16BroadcastOptionsE, "broadcast")
COLLECTIVE(_ZN4c10d16ProcessGroupGloo9allgatherERSt6vectorIS1_IN2at6TensorESaIS3_EESaIS5_EERS5_RKNS_16AllgatherOptionsE, "allgather")

int fsync(int file) {
  meet_fault("fsync");
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}
"""
PEER_TIMEOUT_S = 6
BEFORE = "before the first step"

# name: (call, its number, the rank with the fault, ranks, when the others lose it). The others wait at a barrier while
# rank 0 writes: its first file, and later a checkpoint.
FAULTS = {
    "sum of gradients": ("allreduce", 12, 1, 3, r"at step [1-9]\d*"),
    "sum, the rank with the store": ("allreduce", 12, 0, 2, r"at step [1-9]\d*"),
    "broadcast of the order": ("broadcast", 1, 1, 2, "at step 1"),
    "gathering at the start": ("allgather", 1, 1, 2, BEFORE),
    "gathering after a checkpoint": ("allgather", 5, 1, 2, "at step 1"),
    "barrier before the first step": ("fsync", 1, 0, 2, BEFORE),
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library, compiled."""
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / "shim.so"), str(folder / "shim.c")], check=True)
    return str(folder / "shim.so")


def finish(ranks: list[subprocess.Popen[str]], name: str, folder: Path) -> None:
    """Waits for the others, and checks how they end."""
    _, _, lost, _, when = FAULTS[name]
    try:
        for index, rank in enumerate(ranks):
            if index == lost:
                continue
            _, errors = rank.communicate(timeout=120)
            assert (folder / "met").exists(), f"the fault was never met: {errors}"
            assert rank.returncode == 138, errors
            lines = [line for line in errors.splitlines() if line.startswith("sdtune: error:")]
            assert len(lines) == 1, errors
            assert re.search(rf"rank {lost} \([^)]+\): was lost {when} while ", lines[0]), errors
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    recorded = json.loads((folder / "run" / "last_error.json").read_text())
    assert recorded["exit_code"] == 138
    assert f"rank {lost} (" in recorded["problems"][0]["where"]


@pytest.mark.parametrize("names", [list(FAULTS)[0:2], list(FAULTS)[2:4], list(FAULTS)[4:6]], ids=" and ".join)
def test_a_rank_that_is_killed_or_stopped_in_a_collective(names: list[str], shim: str, tiny_sd1: Path, photos: Path,  # noqa: F811
                                                   tmp_path: Path) -> None:
    """SIGKILL and SIGSTOP, several groups at once: they mostly wait, for a silent heart or for peer_timeout."""
    groups = []
    for name, fault in itertools.product(names, (signal.SIGKILL, signal.SIGSTOP)):
        call, count, lost, number, _ = FAULTS[name]
        folder = tmp_path / f"{name} {fault.name}"
        folder.mkdir()
        command = train_command(tiny_sd1, photos, folder / "run", "--max-train-steps", "100000", "--checkpointing-steps", "1")
        command[command.index("--peer-timeout") + 1] = str(PEER_TIMEOUT_S)
        variables = {"LD_PRELOAD": shim, "FAULT_CALL": call, "FAULT_COUNT": str(count), "FAULT_MARK": str(folder / "met"),
                     "FAULT_SIGNAL": str(int(fault))}
        groups.append((start_ranks(number, command, rank_with=lost, **variables), name, folder))
    failures = []
    for group in groups:
        try:
            finish(*group)
        except (AssertionError, subprocess.TimeoutExpired, OSError) as error:  # the other groups must be ended as well
            failures.append((group[2].name, error))
    assert not failures, failures
