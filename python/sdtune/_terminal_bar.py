"""The progress of a run in a terminal, in the words of the program's bar (app/ui/progress_bar.cpp)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from . import _native
from ._progress import duration

SHORTEST_INTERVAL = 0.1  # s
COST_FACTOR = 100  # the interval is at least this many times the writing: 1 % of the time
USUAL_COLUMNS = 100  # of a terminal that does not say


def columns_of(stream: TextIO) -> int:
    """COLUMNS, else the width of the stream's own terminal: shutil asks for that of stdout, which may go to a file."""
    try:
        given = int(os.environ.get("COLUMNS", "0"))
        return given if given > 0 else os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    except (AttributeError, ValueError, OSError):
        return USUAL_COLUMNS


def printable(text: str) -> str:
    """The text with control characters written out as the program does: names of folders stand in notes."""
    return re.sub("[\x00-\x1f\x7f-\x9f]", lambda found: "".join(f"\\x{byte:02x}" for byte in found[0].encode()), text)


class TerminalBar:
    """A line that is written over and over; what stays is written above it."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.perf_counter) -> None:
        self._stream, self._clock = stream, clock
        self._next = clock()
        self._shown = False
        self._first_step = 0
        self.updates = 0

    def _write(self, text: str) -> None:
        """A terminal that is gone must not end a training."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._next = float("inf")

    def _put(self, text: str, force: bool) -> None:
        began = self._clock()
        if began < self._next and not force:
            return
        self._write("\r\x1b[K" + text[: columns_of(self._stream) - 1])
        self._shown, self.updates = True, self.updates + 1
        ended = self._clock()
        self._next = max(self._next, ended + max(SHORTEST_INTERVAL, COST_FACTOR * (ended - began)))

    def _bar(self, label: str, done: int, total: int, tail: str, force: bool) -> None:
        columns = columns_of(self._stream)
        head = f"{label} {done}/{total}"
        room = min(40, columns - len(head) - len(tail) - 6)
        full = max(0, min(room, room * done // max(1, total)))
        bar = f" [{'=' * full}{' ' * (room - full)}] " if room >= 8 else "  "
        self._put(head + bar + tail, force)

    def message(self, text: str) -> None:
        """A line that stays."""
        self._write(("\r\x1b[K" if self._shown else "") + text + "\n")
        self._shown = False

    def on_preparation(self, event: _native.PreparationEvent) -> None:
        for line in ([f"preset   {event.preset}"] if event.preset else []) + [f"generate {line}" for line in event.generation]:
            self.message(line)

    def on_generation(self, event: _native.GenerationEvent) -> None:
        self.message(f"time     about {duration(event.seconds)} for {event.images} class images "
                     f"({event.seconds / event.images:.3g} s each)")

    def on_start(self, event: _native.RunSummary) -> None:
        self._first_step = event.first_step
        for label, text in (("model", f"{event.base} ({event.pipeline_class})"),
                            ("trains", f"{', '.join(event.components)} ({event.method})"),
                            ("device", f"{event.device}, {event.dtype}"),
                            ("images", f"{event.images} of {event.resolution} px"),
                            ("steps", f"{event.total_steps}, batch {event.batch}"), ("seed", str(event.seed)),
                            ("output", str(event.output)), *(("note", note) for note in event.notes)):
            self.message(f"{label:<8} {printable(text)}")

    def on_phase(self, name: str, done: int, total: int) -> None:
        if total:
            self._bar(name, done, total, "", done == 0)
        else:
            self._put(name, True)

    def on_step(self, event: _native.StepEvent) -> None:
        tail = f"loss {event.loss:.4g}  lr {event.lr:.3g}  {event.images_per_s:.3g} photos/s"
        done = event.step - self._first_step
        if done > 0:
            tail += f"  ETA {duration(event.elapsed / done * (event.total_steps - event.step))}"
        self._bar("step", event.step, event.total_steps, tail, event.step == event.total_steps)

    def on_validation(self, event: _native.ValidationEvent) -> None:
        if event.loss is not None:
            self.message(f"validation loss {event.loss:.4f} after step {event.step}")

    def on_identity(self, event: _native.IdentityEvent) -> None:
        self.message(f"likeness {event.identity:.2f}, prompt fidelity {100 * event.prompt_fidelity:.0f} %, leakage "
                     f"{100 * event.leak:.0f} % after step {event.step}{' (best so far)' if event.is_best else ''}")

    def on_checkpoint(self, event: _native.CheckpointEvent) -> None:
        self.message(f"saved    {event.path} in {event.seconds:.1f} s")

    def on_profile(self, event: _native.ProfileEvent) -> None:
        self.message(f"profile  {event}trace    {event.trace}" if event.trace else f"profile  {event}".rstrip())

    def on_warning(self, problem: _native.Problem) -> None:
        self.message(f"sdtune: warning: {problem}")

    def on_end(self, step: int, model_path: Path) -> None:
        """finish() says how it ended."""

    def finish(self, end: str) -> None:
        """Ends the line of the state, and says how the run ended."""
        if self._shown:
            self._write("\n")
            self._shown = False
        self.message(end)
