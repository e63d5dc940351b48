#!/usr/bin/env python3
"""The side process of a run with report_to: reads the run's events and hands them to wandb, MLflow and trackio.

sdtune starts it (train/track/tracker_log.h) with a socket as file descriptor 3. Lines of JSON come in: start, scalars, images, end.
Lines of JSON go back: {"done": N} after N lines, {"id": [tracker, id]}, {"warn": [tracker, text]}, {"lost": [tracker, count]}. It needs
the trackers' packages alone, and never sdtune.

    tracker_process.py check wandb mlflow     replies {"missing": [...]} and ends
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tracker_backends import BACKENDS, Tracker  # noqa: E402

CHANNEL = 3
LONGEST = 300  # characters of an exception


def words(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text[:LONGEST]


class Channel:
    """The socket to the run."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=CHANNEL)
        self._socket.set_inheritable(False)  # else a package's own process would keep it open

    def lines(self) -> Iterator[dict[str, Any]]:
        """What the run sends, until it closes its end or is gone."""
        with self._socket.makefile("rb") as stream:
            while True:
                try:
                    line = stream.readline()
                except ConnectionResetError:  # the run was killed with replies that it had not read
                    return
                if not line.endswith(b"\n"):  # over, or the run was killed in the middle of a line
                    return
                yield json.loads(line)

    def reply(self, **message: Any) -> None:
        """The run may be gone; what it sent is delivered all the same."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass


class Trackers:
    """Those of one run. One that fails says so once and is tried again with the next event; one that cannot start is left out."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._trackers: dict[str, Tracker] = {}
        self._lost: dict[str, int] = {}

    def _failed(self, name: str, error: BaseException) -> None:
        self._lost[name] = self._lost.get(name, 0) + 1
        if self._lost[name] == 1:
            self._channel.reply(warn=[name, words(error)])

    def start(self, message: dict[str, Any]) -> None:
        for name in message["trackers"]:
            try:
                if message["optional"] and importlib.util.find_spec(name) is None:
                    continue
                tracker = BACKENDS[name]()
                found = tracker.start(message, message["ids"].get(name))
                self._trackers[name] = tracker
                self._channel.reply(id=[name, found])
            except Exception as error:
                self._channel.reply(warn=[name, f"cannot start: {words(error)}"])

    def each(self, action: str, *values: Any) -> None:
        for name, tracker in self._trackers.items():
            try:
                getattr(tracker, action)(*values)
            except Exception as error:
                self._failed(name, error)

    def end(self, message: dict[str, Any]) -> None:
        if message["model"]:
            self.each("model", message["model"])
        self.each("end", message["code"])
        for name, count in self._lost.items():
            self._channel.reply(lost=[name, count])
        self._trackers.clear()


def serve() -> None:
    """Until the run's end, or its death: then the runs of the trackers end as killed ones."""
    channel = Channel()
    trackers = Trackers(channel)
    for number, message in enumerate(channel.lines(), 1):
        kind = message["type"]
        if kind == "start":
            trackers.start(message)
        elif kind == "scalars":
            # What is not finite has no number in JSON.
            values = {name: float("nan") if value is None else value for name, value in message["values"].items()}
            trackers.each("scalars", message["step"], message["time"], values)
        elif kind == "images":
            trackers.each("images", message["step"], message["images"])
        elif kind == "end":
            trackers.end(message)
        channel.reply(done=number)
        if kind == "end":
            return
    trackers.end({"code": 137, "model": ""})


def check(names: list[str]) -> None:
    """Whether the packages are there; nothing is imported."""
    Channel().reply(missing=[name for name in names if importlib.util.find_spec(name) is None], python=sys.executable)


if __name__ == "__main__":
    # The run says when it is over. Ctrl-C and a closed terminal are for the run, and so is the SIGTERM that Slurm and systemd send to
    # every process of a job: the run saves its state then, and has an end to tell.
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    if sys.argv[1:2] == ["check"]:
        check(sys.argv[2:])
    else:
        os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
        serve()
