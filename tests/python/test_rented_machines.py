"""A run on a rented machine: a dropped connection."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from program import SDTUNE
from tiny_models import make_pipeline
from training_reference import write_base, write_photos


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("rented")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base")
    return base, write_photos(folder / "photos", 3, seed=0)


def words(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--report-to", "none", *options]


def lines_of(output: Path) -> list[dict]:
    log = output / "metrics.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def wait_for(process: subprocess.Popen, is_there: Callable[[], bool]) -> None:
    """Returns when that is so; fails when the process has ended before."""
    while not is_there():
        assert process.poll() is None, "it ended too early"
        time.sleep(0.01)


class Terminal:
    """A process that leads the session of a terminal of its own, as a login's shell does."""

    def __init__(self, command: list[str], ignore: bool = False) -> None:
        self.master, slave = pty.openpty()

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGHUP, signal.SIG_IGN if ignore else signal.SIG_DFL)

        self.process = subprocess.Popen([str(SDTUNE), *command], stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True, preexec_fn=take_terminal,
                                        env={**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm"})
        os.close(slave)
        os.set_blocking(self.master, False)

    def read(self) -> bytes:
        """What was printed since; nothing while nothing is."""
        try:
            return os.read(self.master, 65536)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self.master)


@pytest.mark.parametrize(("launched", "ignore"), [(False, False), (False, True), (True, False)],
                         ids=["train", "train that ignores the signal", "launch"])
def test_a_closed_terminal_ends_nothing(launched: bool, ignore: bool, material: tuple[Path, Path], tmp_path: Path) -> None:
    """With the signal of a dropped connection, and where only every write fails."""
    output = tmp_path / "runs" / "me"
    command = words(material, output, "--max-train-steps", "150", "--checkpointing-steps", "100")
    terminal = Terminal(["launch", "--nproc", "1", "--", *command] if launched else command, ignore)
    seen = b""

    def has_stepped() -> bool:
        nonlocal seen
        seen += terminal.read()
        return len(lines_of(output)) >= 5

    wait_for(terminal.process, has_stepped)
    assert b"model " in seen and not (output / "train.log").exists()
    assert len(lines_of(output)) < 150, "it was over before the terminal was"
    terminal.close()
    assert terminal.process.wait(timeout=120) == 0
    log = (output / "train.log").read_text()
    assert "done after step 150" in log and log.count("\r") <= 1  # of a line that was under way
    assert any(line.endswith(str(output / "model")) for line in log.splitlines()[-2:])
    assert [line["step"] for line in lines_of(output)] == list(range(1, 151))
