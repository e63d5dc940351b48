"""What can befall ranks of a training, as a table, and what they make of it: how they end, when, and with which words."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fault_library import build_fault_library
from network_namespaces import ADDRESSES, DEVICE, two_hosts
from ports import free_port
from test_ranks import environment, train_command

PEER_TIMEOUT_S = 6
START_TIMEOUT_S = 10
GRACE_S = 10  # no rank may take longer beyond the timeout
ERROR = "sdtune: error: "
BEFORE, LATER = "before the first step", r"at step [1-9]\d*"
SIGNALS = {"killed": signal.SIGKILL, "aborted": signal.SIGABRT, "stopped": signal.SIGSTOP}


@dataclass(frozen=True)
class Fault:
    """One row. `how`: a key of SIGNALS; fail, block, reset (fault_library.py); cut; or one of STARTS."""

    where: str
    how: str
    call: str = ""
    number: int = 1  # of the call
    lost: int = 1
    ranks: int = 2
    when: str = LATER
    options: tuple[str, ...] = ()
    code: int = 138
    in_ci: bool = False

    @property
    def name(self) -> str:
        return f"{self.where}: rank {self.lost} {self.how}" if self.call else f"{self.where}: {self.how}"

    @property
    def timeout(self) -> int:
        """Seconds after which the ranks must know."""
        return START_TIMEOUT_S if self.how in STARTS else PEER_TIMEOUT_S


@dataclass(frozen=True)
class Outcome:
    """How the ranks of one fault ended."""

    fault: Fault
    codes: list[int | None]  # by process; None: still there, as a stopped one is
    seconds: float  # from the fault, or from the start, to the end of the last
    errors: list[str]  # of stderr, by process

    @property
    def beyond(self) -> float:
        return self.seconds - self.fault.timeout

    def lines(self) -> list[list[str]]:
        """Error lines by process."""
        return [[line for line in text.splitlines() if line.startswith(ERROR)] for text in self.errors]

    def message(self) -> str:
        """Of the first rank that is not the lost one."""
        lines = self.lines()
        told = [found[0] for index, found in enumerate(lines) if found and index != self.fault.lost] or [
            found[0] for found in lines if found]
        return told[0].removeprefix(ERROR) if told else "nothing: rank 0 has sent its checkpoint, from which all resumed"

    def mistakes(self) -> list[str]:
        """What is not as it must be."""
        found = []
        dies = self.fault.how in SIGNALS
        for index, (code, lines) in enumerate(zip(self.codes, self.lines(), strict=True)):
            if dies and index == self.fault.lost:
                continue
            wanted, pattern = expected(self.fault, self.codes, index)
            if code != wanted:
                found.append(f"process {index} ended with {code} instead of {wanted}: {self.errors[index][-600:]}")
            elif wanted == 0 and lines:
                found.append(f"process {index} says {lines} instead of nothing")
            elif wanted != 0 and (len(lines) != 1 or not re.search(pattern, lines[0])):
                found.append(f"process {index} says {lines} instead of one line like {pattern}")
        if self.beyond > GRACE_S:
            found.append(f"the last rank ended {self.beyond:.1f} s beyond the timeout (allowed: {GRACE_S} s)")
        return found


def expected(fault: Fault, codes: list[int | None], index: int) -> tuple[int, str]:
    """Code and error line of a process."""
    if fault.how == "a rank comes twice":  # the one that comes second is refused, the others miss rank 2
        if index > 0 and codes[index] == 2:
            return 2, "RANK: two processes are rank 1"
        return 138, "rank 2: did not start within"
    if fault.how == "a rank is missing":
        return 138, "rank 2: did not start within"
    if fault.how == "another port":
        return 138, "rank 0: does not answer on" if index == fault.lost else f"rank {fault.lost}: did not start within"
    if fault.code == 0:
        return 0, ""
    if fault.code == 2:
        return 2, rf"rank {fault.lost} \([^)]+\): .*rank 0 \("
    if fault.how == "cut":
        return 138, rf"rank {1 - index} \(host-{'ba'[index]}\): was lost {fault.when} while "
    if fault.how == "reset":  # its store's connection ended as well, so each finds the other
        return 138, rf"rank [01] \([^)]+\): was lost {fault.when} while "
    doing = "summing over the ranks" if fault.where.startswith("sum") else ""  # a later one than the first of its step
    return 138, rf"rank {fault.lost} \([^)]+\): was lost {fault.when} while {doing}"


def in_each_collective() -> Iterator[Fault]:
    """Every way to be lost, in every collective that ranks on CPUs call: ZeRO's, those of the start, those of --shard none."""
    ddp = ("--shard", "none")
    collectives = (("sum of gradients to their owner", "alltoall_base", 22, LATER, ()),
                   ("weights from their owner", "broadcast", 6, LATER, ()),
                   ("states into a checkpoint", "alltoall_base", 3, LATER, ()),
                   ("gathering at the start", "allgather", 1, BEFORE, ()),
                   ("gathering after a checkpoint", "allgather", 10, "at step 1", ()),
                   ("sum of gradients, --shard none", "allreduce", 13, LATER, ddp))
    in_ci = {("sum of gradients to their owner", "stopped"), ("weights from their owner", "block"), ("states into a checkpoint", "aborted"),
             ("gathering at the start", "fail"), ("gathering after a checkpoint", "killed"),
             ("sum of gradients, --shard none", "killed")}
    for where, call, number, when, options in collectives:
        for how in (*SIGNALS, "fail", "block"):
            yield Fault(where, how, call, number, when=when, options=options, in_ci=(where, how) in in_ci)


STARTS = ("another port", "a rank is missing", "a rank comes twice")
FAULTS = [
    *in_each_collective(),
    *(Fault("sum, the rank with the store", how, "alltoall_base", 22, lost=0, in_ci=how == "killed") for how in (*SIGNALS, "block")),
    *(Fault("states, the rank with the store", how, "alltoall_base", 3, lost=0) for how in ("killed", "stopped")),
    *(Fault("barrier before the first step", how, "fsync", lost=0, when=BEFORE) for how in SIGNALS),
    *(Fault("broadcast of the buckets' order", how, "broadcast", 1, when="at step 1") for how in ("killed", "stopped")),
    *(Fault("sum of gradients, --shard gradients", how, "alltoall_base", 22, options=("--shard", "gradients")) for how in ("killed", "stopped")),
    *(Fault("sum of gradients, three ranks", how, "alltoall_base", 12, lost=2, ranks=3) for how in ("killed", "stopped")),
    *(Fault("connections", "reset", "alltoall_base", 22, lost=lost) for lost in (0, 1)),
    *(Fault(f"link between two hosts, at rank {lost}", "cut", lost=lost, in_ci=lost == 1) for lost in (0, 1)),
    Fault("start", "another port", in_ci=True),
    Fault("start", "a rank is missing", ranks=3),
    Fault("start", "a rank comes twice", ranks=3, in_ci=True),
    *(Fault("start", how, code=2, in_ci=how == "other options") for how in ("other options", "other base", "other photos")),
    Fault("start", "other checkpoint", code=0),  # rank 0 decides: test_machines.py has what it says of stale ones
]


class Bench:
    """Base, photos, an earlier run and the library that plants faults, below one folder."""

    def __init__(self, folder: Path, base: Path, photos: Path) -> None:
        self.folder, self.base, self.photos = folder, base, photos
        self.library = build_fault_library(folder)
        self._runs = 0

    def command(self, output: Path, *options: str) -> list[str]:
        """A training that goes on until it is ended, and saves its state at each step."""
        command = train_command(self.base, self.photos, output, "--max-train-steps", "100000", "--checkpointing-steps", "1", *options)
        for name, value in (("--peer-timeout", PEER_TIMEOUT_S), ("--start-timeout", START_TIMEOUT_S)):
            command[command.index(name) + 1] = str(value)
        return command

    def run(self, fault: Fault) -> Outcome:
        """Starts the ranks, lets the fault happen, and waits for them."""
        folder = self.folder / re.sub(r"\W+", "_", fault.name)
        folder.mkdir()
        if fault.how == "cut":
            return self._run_on_two_hosts(fault, folder)
        if fault.how in STARTS:
            return self._run_start(fault, folder)
        if fault.how in UNLIKE:
            return self._run_unlike(fault, folder)
        variables = {"LD_PRELOAD": str(self.library), "FAULT_CALL": fault.call, "FAULT_COUNT": str(fault.number),
                     "FAULT_MARK": str(folder / "met"), "FAULT": str(int(SIGNALS[fault.how])) if fault.how in SIGNALS else fault.how}
        command = self.command(folder / "run", *fault.options)
        port = free_port()
        with processes() as ranks:
            for rank in range(fault.ranks):
                ranks.append(start(command, rank, fault.ranks, port, folder, **(variables if rank == fault.lost else {})))
            wait_until((folder / "met").exists, ranks, folder)
            return ended(fault, ranks, folder, (folder / "met").stat().st_mtime, gone=fault.lost if fault.how in SIGNALS else None)

    def _run_start(self, fault: Fault, folder: Path) -> Outcome:
        numbers = {"another port": [0, 1], "a rank is missing": [0, 1], "a rank comes twice": [0, 1, 1]}[fault.how]
        port, other = free_port(), free_port()
        with processes() as ranks:
            began = time.time()
            for place, rank in enumerate(numbers):
                wrong = fault.how == "another port" and rank == fault.lost
                ranks.append(start(self.command(folder / "run"), rank, fault.ranks, other if wrong else port, folder, place))
            return ended(fault, ranks, folder, began)

    def _run_unlike(self, fault: Fault, folder: Path) -> Outcome:
        """Each rank has files of its own, and those of rank `lost` are changed."""
        folders = [folder / f"rank{rank}" for rank in range(fault.ranks)]
        command = train_command(Path("base"), Path("photos"), Path("run"), "--max-train-steps", "3", "--checkpointing-steps", "1",
                                "--gradient-accumulation-steps", "2")  # of one rank; of two it is 1
        for own in folders:
            shutil.copytree(self.base, own / "base")
            shutil.copytree(self.photos, own / "photos")
        if fault.how == "other checkpoint":
            done = subprocess.run(command, cwd=folders[0], env=environment(), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            for own in folders[1:]:
                shutil.copytree(folders[0] / "run", own / "run")
            command += ["--resume-from-checkpoint", "latest"]
        UNLIKE[fault.how](folders[fault.lost])
        port = free_port()
        with processes() as ranks:
            began = time.time()
            for rank, own in enumerate(folders):
                odd = ["--learning-rate", "0.25"] if fault.how == "other options" and rank == fault.lost else []
                ranks.append(start([*command, *odd], rank, fault.ranks, port, folder, cwd=own))
            return ended(fault, ranks, folder, began)

    def _run_on_two_hosts(self, fault: Fault, folder: Path) -> Outcome:
        command = self.command(folder / "run")
        with two_hosts() as hosts, processes() as ranks:
            for rank in range(2):
                ranks.append(start(hosts.inside(rank, command), rank, 2, 29500, folder, MASTER_ADDR=ADDRESSES[0], GLOO_SOCKET_IFNAME=DEVICE,
                                   LOCAL_RANK="0", LOCAL_WORLD_SIZE="1"))
            metrics = folder / "run" / "metrics.jsonl"
            wait_until(lambda: metrics.exists() and len(metrics.read_text().splitlines()) >= 3, ranks, folder)
            hosts.cut(fault.lost)
            return ended(fault, ranks, folder, time.time())


def change_weight(folder: Path) -> None:
    """The last digit of a float32: a base that loads as well."""
    path = folder / "base/unet/diffusion_pytorch_model.safetensors"
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(bytes(data))


UNLIKE: dict[str, Callable[[Path], object]] = {
    "other options": lambda folder: None,
    "other base": change_weight,
    "other photos": lambda folder: shutil.copy(folder / "photos" / "0.png", folder / "photos" / "3.png"),
    "other checkpoint": lambda folder: shutil.rmtree(max((folder / "run/checkpoints").iterdir())),
}


def start(command: list[str], rank: int, ranks: int, port: int, folder: Path, place: int | None = None, cwd: Path | None = None,
          **variables: str) -> subprocess.Popen[bytes]:
    """One process of the run; its messages go into a file, which need not be read while it runs."""
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **variables}
    with (folder / f"errors{rank if place is None else place}").open("wb") as errors:
        return subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=errors, env=environment(**own))


@contextmanager
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """A list of which nothing outlives the block."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def wait_until(happened: Callable[[], bool], ranks: list[subprocess.Popen[bytes]], folder: Path, limit: float = 120) -> None:
    """Until the fault can be seen to have happened."""
    deadline = time.monotonic() + limit
    while not happened():
        said = [path.read_text()[-400:] for path in sorted(folder.glob("errors*"))]
        assert time.monotonic() < deadline, f"the fault was never met: {said}"
        assert any(rank.poll() is None for rank in ranks), f"the ranks ended before the fault: {said}"
        time.sleep(0.02)


def ended(fault: Fault, ranks: list[subprocess.Popen[bytes]], folder: Path, since: float, gone: int | None = None) -> Outcome:
    """Waits for all but the one that is lost, for the time allowed and a while."""
    waited = [rank for index, rank in enumerate(ranks) if index != gone]
    deadline = time.monotonic() + fault.timeout + GRACE_S + 60
    while any(rank.poll() is None for rank in waited) and time.monotonic() < deadline:
        time.sleep(0.02)
    seconds = time.time() - since
    codes = [rank.poll() for rank in ranks]
    errors = [(folder / f"errors{index}").read_text() for index in range(len(ranks))]
    return Outcome(fault, codes, seconds, errors)


def table(outcomes: list[Outcome]) -> str:
    """docs/measurements/rank_faults.md's table."""
    host = re.escape(socket.gethostname())
    lines = ["| fault | ranks | exit codes | s beyond the timeout | what the others say |", "|---|---:|---|---:|---|"]
    for outcome in outcomes:
        fault = outcome.fault
        codes = ", ".join("stopped" if code is None else f"signal {-code}" if code < 0 else str(code) for code in outcome.codes)
        words = re.sub(r"\[?127\.0\.0\.1\]?:\d+", "127.0.0.1:PORT", re.sub(rf"\b{host}\b", "HOST", outcome.message()))
        words = re.sub(r"(/[\w.+-]+){2,}/", ".../", words).replace("|", "\\|")
        lines.append(f"| {fault.name} | {fault.ranks} | {codes} | {outcome.beyond:+.1f} | {words} |")
    return "\n".join(lines)
