"""sdtune.start: a training run on a thread of its own, which other cells watch, stop and wait for."""

from __future__ import annotations

import atexit
import copy
import threading
import weakref
from pathlib import Path
from typing import Any

from . import _calls, _native, _train
from ._errors import config_error, require_config
from ._full_paths import with_full_paths
from ._progress import Recorder, RunProgress
from ._results import PipelineOutput, TrainResult

POLL = 0.1  # s; a wait without end would not see Ctrl-C at once on every system

active: dict[Path, Run] = {}
active_lock = threading.Lock()


class Run:
    """A run that sdtune.start began. Leaving Python stops it with its state saved."""

    def __init__(self, config: _native.TrainConfig, folder: Path, callbacks: dict[str, Any], progress: bool) -> None:
        self._config, self._output, self._callbacks = config, folder, callbacks
        self._recorder, self._stop = Recorder(), _calls.core._StopFlag()
        self._result: TrainResult | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()
        # A widget or an output belongs to the cell that starts the run, so that it is made here and not on the thread. The button
        # holds no run that is forgotten.
        stop = weakref.WeakMethod(self.stop)
        self._views = _train.views_of(self._recorder, lambda: (stop() or bool)(), terminal=False) if progress else []
        self._thread = threading.Thread(target=self._train, name=f"sdtune {folder}", daemon=True)

    def _train(self) -> None:
        try:
            self._result = _train.run(self._config, self._recorder, self._views, self._callbacks, self._stop)
        except BaseException as error:  # wait raises it
            self._error = error
        finally:
            with active_lock:
                if active.get(self._output) is self:
                    del active[self._output]
            self._done.set()

    @property
    def output(self) -> Path:
        """The run folder."""
        return self._output

    @property
    def progress(self) -> RunProgress:
        """Where it stands now."""
        return self._recorder.snapshot()

    @property
    def is_running(self) -> bool:
        """False once it has ended, for whatever reason."""
        return not self._done.is_set()

    @property
    def latest_images(self) -> PipelineOutput | None:
        """The newest validation images, uint8 [H, W, 3] each, with prompts and seeds; None before the first."""
        event = self._recorder.validation
        if event is None:
            return None
        return PipelineOutput(event.images, event.prompts, event.seeds)

    def stop(self) -> None:
        """Asks it to save its state and end after the current step; returns at once, and wait() returns when it has."""
        self._stop.request()

    def wait(self, timeout: float | None = None) -> TrainResult:
        """The result, when the run has ended: model_path is None where stop() ended it. Raises what the run raised.

        Interrupting it (Ctrl-C, the stop button of a notebook) stops the run, waits until its state is saved, and raises
        KeyboardInterrupt. timeout: seconds, after which TimeoutError is raised and the run goes on.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("a callback of the run waits for the run, which would never end; stop() returns at once")
        try:
            self._wait(timeout)
        except KeyboardInterrupt:
            self.stop()
            self._done.wait()
            raise
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def _wait(self, timeout: float | None) -> None:
        left = float("inf") if timeout is None else timeout
        while not self._done.wait(min(POLL, max(0.0, left))):
            left -= POLL
            if left <= 0:
                raise TimeoutError(f"the run in {self._output} goes on: step {self.progress.step} of {self.progress.total_steps}")

    def _state(self) -> str:
        if self.is_running:
            return "stopping" if self._stop.requested else "running"
        if self._error is not None:
            return f"ended by {type(self._error).__name__}: {self._error}"
        if self._result is not None and self._result.model_path:
            return "done"
        return "stopped before the first step" if self._result is None or self._result.checkpoint is None else "stopped, state saved"

    def __repr__(self) -> str:
        now = self.progress
        return f"Run({str(self._output)!r}, {self._state()}, {now.phase}, step {now.step} of {now.total_steps})"


def start(config: _native.TrainConfig, *, resume_from_checkpoint: _native.PathText | None = None, progress: bool = True,
          **callbacks: Any) -> Run:
    """start(config: TrainConfig, ...) -> Run

    Trains on a thread of its own and returns a Run at once: run.progress, run.stop(), run.wait(), run.latest_images.

    The configuration is copied, with its paths in full: the working directory may change while the run goes on. resume_from_checkpoint,
    where given, is set in the copy. Callbacks are those of train and run on the thread of the run, between steps. progress: a live view
    in a notebook, in the output of this cell. Other calls of sdtune may go on meanwhile, on pipelines of their own. Raises ConfigError
    where a run writes into the same folder already; what else is wrong is raised by wait.
    """
    require_config(config)
    if not isinstance(progress, bool):
        raise config_error("progress", f"got {progress!r} (allowed: True, False)")
    known = [option["name"] for option in _calls.core._train_callbacks()]
    for name, callback in callbacks.items():
        if name not in known:
            raise config_error(name, f"unknown argument (allowed: {', '.join(known)}, resume_from_checkpoint, progress)")
        if callback is not None and not callable(callback):
            raise config_error(name, f"got {callback!r:.80} (allowed: a function, or None)")
    own = copy.copy(config)
    if resume_from_checkpoint is not None:
        own.resume_from_checkpoint = resume_from_checkpoint
    own = with_full_paths(own)
    folder = Path(_calls.core._run_folder(own)).resolve()
    holder = _calls.core._run_holder(own)
    with active_lock:
        if folder in active:
            raise config_error(str(folder), "a run that this process started is writing here",
                               "stop() and wait() for it, or choose another output")
        if holder is not None:
            raise config_error(holder.where, holder.what, holder.hint)
        run = active[folder] = Run(own, folder, callbacks, progress)
    try:
        run._thread.start()
    except RuntimeError:  # the system gives no thread, as ulimit -u or a container's limit may have it
        with active_lock:
            del active[folder]
        raise
    return run


def stop_all() -> None:
    """Before Python ends: a thread that computes in C++ would not survive it."""
    with active_lock:
        runs = list(active.values())
    for run in runs:
        run.stop()
    for run in runs:
        run._thread.join()


atexit.register(stop_all)
