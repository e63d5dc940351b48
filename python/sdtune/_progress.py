"""Where a run stands, gathered from its events: what the live view updates and run.progress tells."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from pathlib import Path

from . import _native

EVENTS = ("on_preparation", "on_generation", "on_start", "on_phase", "on_step", "on_checkpoint", "on_validation", "on_identity",
          "on_profile", "on_warning", "on_end")
SMOOTHING = 0.95  # of the loss that is shown: the mean over about 20 steps


@dataclass(frozen=True)
class RunProgress:
    """Where a run stands. `loss` is that of the last step, `eta` the seconds that the steps left will take; None: not known yet."""

    phase: str = "starting"
    done: int = 0
    total: int = 0
    step: int = 0
    total_steps: int = 0
    loss: float | None = None
    images_per_s: float | None = None
    elapsed: float = 0.0
    eta: float | None = None
    identity: float | None = None
    checkpoint: Path | None = None
    warnings: tuple[str, ...] = ()


class Recorder:
    """Takes the events of a run on its thread; snapshot() is for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._phase: tuple[str, int, int] = ("starting", 0, 0)
        self._first_step = 0
        self._total_steps = 0
        self._last: _native.StepEvent | None = None
        self.steps: list[int] = []
        self.losses: list[float] = []  # smoothed
        self.identities: list[tuple[int, float]] = []
        self.validation: _native.ValidationEvent | None = None
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self._checkpoint: Path | None = None

    def on_preparation(self, event: _native.PreparationEvent) -> None:
        self.notes += [f"generates {line}" for line in event.generation]

    def on_generation(self, event: _native.GenerationEvent) -> None:
        self.notes.append(f"about {duration(event.seconds)} for {event.images} class images")

    def on_start(self, event: _native.RunSummary) -> None:
        self._first_step, self._total_steps = event.first_step, event.total_steps
        self.notes = [f"{event.base} ({event.pipeline_class}), {event.method} training of {', '.join(event.components)} on "
                      f"{event.device}, {event.dtype}; {event.images} photos of {event.resolution} px; seed {event.seed}; "
                      f"{event.output}", *event.notes]

    def on_phase(self, name: str, done: int, total: int) -> None:
        self._phase = (name, done, total)

    def on_step(self, event: _native.StepEvent) -> None:
        with self._lock:
            before = self.losses[-1] if self.losses and math.isfinite(self.losses[-1]) else event.loss
            self.steps.append(event.step)
            self.losses.append(SMOOTHING * before + (1 - SMOOTHING) * event.loss if math.isfinite(event.loss) else before)
            self._last, self._phase = event, ("training", event.step, event.total_steps)

    def on_checkpoint(self, event: _native.CheckpointEvent) -> None:
        self._checkpoint = event.path

    def on_validation(self, event: _native.ValidationEvent) -> None:
        if event.seeds:
            self.validation = event

    def on_identity(self, event: _native.IdentityEvent) -> None:
        self.identities.append((event.step, event.identity))

    def on_profile(self, event: _native.ProfileEvent) -> None:
        self.notes.append(f"profile of {event.steps} steps: {event.trace or 'no trace'}")

    def on_warning(self, problem: _native.Problem) -> None:
        self.warnings.append(str(problem))

    def on_end(self, step: int, model_path: Path) -> None:
        if str(model_path) not in ("", "."):
            self._phase = ("done", step, self._total_steps)

    def snapshot(self) -> RunProgress:
        """Where the run stands now."""
        with self._lock:
            last, (phase, done, total) = self._last, self._phase
        eta = None
        if last is not None and last.step > self._first_step:
            eta = last.elapsed / (last.step - self._first_step) * (last.total_steps - last.step)
        return RunProgress(phase=phase, done=done, total=total, step=last.step if last else self._first_step,
                           total_steps=self._total_steps, loss=last.loss if last else None,
                           images_per_s=last.images_per_s if last else None, elapsed=last.elapsed if last else 0.0, eta=eta,
                           identity=self.identities[-1][1] if self.identities else None, checkpoint=self._checkpoint,
                           warnings=tuple(self.warnings))


def duration(seconds: float | None) -> str:
    """`1:02:03` or `02:03`, as the program's bar has it."""
    if seconds is None or not 0 <= seconds < 1e9:
        return "?"
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{whole // 60:02}:{whole % 60:02}"
