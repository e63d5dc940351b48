"""sdtune.train: the core's training with a live view beside the caller's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _calls, _native
from ._errors import config_error, require_config
from ._live_view import HtmlScreen, LiveView, Screen, WidgetScreen
from ._progress import EVENTS, Recorder
from ._results import TrainResult
from ._terminal_bar import TerminalBar

RESUME = "resume_from_checkpoint='latest' resumes"
EARLY = "stopped before the first step; start it again"
THEN_FAILED = "sdtune: then the run failed: "  # python/src/python_observer.cpp notes it on an exception of a callback


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code. IPython is never imported: a kernel has done so."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def make_screen(stop: Callable[[], object] | None = None) -> Screen:
    """ipywidgets' where it is installed and works, else HTML that is updated."""
    try:
        return WidgetScreen(stop)
    except Exception:  # noqa: BLE001  versions of ipywidgets, traitlets and the kernel that do not fit fail in any way
        return HtmlScreen()


def is_terminal(stream: Any) -> bool:
    """Also of what a program has put in place of sys.stderr, which may be closed or no whole stream."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def views_of(recorder: Recorder, stop: Callable[[], object] | None = None, terminal: bool = True) -> list[Any]:
    """What shows a run where this code runs: a live view in a notebook, a bar in a terminal, else nothing."""
    if in_notebook():
        return [LiveView(recorder, make_screen(stop))]
    if terminal and is_terminal(sys.stderr):
        return [TerminalBar(sys.stderr)]
    return []


def joined(name: str, observers: list[Any], given: Any) -> Any:
    """One callback of several; the caller's own comes last. What cannot be called is left to the core, which refuses it."""
    calls = [getattr(observer, name) for observer in observers]
    if given is not None:
        if not callable(given):
            return given
        calls.append(given)

    def call(*event: Any) -> None:
        for one in calls:
            one(*event)

    return call


def run(config: _native.TrainConfig, recorder: Recorder, views: list[Any], callbacks: dict[str, Any],
        stop: Any = None) -> TrainResult:
    """Trains; recorder and views see every event first. Each view is told how it ended, and never ends the run itself."""
    given = dict(callbacks)
    for name in EVENTS:
        given[name] = joined(name, [recorder, *views], given.get(name))
    end = "stopped"
    try:
        native = _calls.native_train(config, given.pop("on_step"), _stop=stop, **given)
        result = _calls.result_of(native, config)
        if result.model_path:
            end = f"done after step {result.step}: {result.model_path}"
        else:
            end = EARLY if result.checkpoint is None else f"stopped; state saved, {RESUME}"
        return result
    except KeyboardInterrupt as error:
        now = recorder.snapshot()
        # An interrupt in a callback ends the events: the checkpoint that follows a step is not among those seen.
        is_saved = now.checkpoint is not None or bool(recorder.steps)
        end = f"stopped after step {now.step}; state saved, {RESUME}" if is_saved else EARLY
        for note in getattr(error, "__notes__", ()):
            if note.startswith(THEN_FAILED):
                end = f"stopped after step {now.step}; {note}"
        raise
    except BaseException as error:
        end = f"ended by {type(error).__name__}: {error}"
        raise
    finally:
        for view in views:
            view.finish(end)


def train(config: _native.TrainConfig, on_step: Callable[[_native.StepEvent], object] | None = None, *, progress: bool = True,
          **callbacks: Any) -> TrainResult:
    """The signature is made by _signatures.py."""
    require_config(config)
    if not isinstance(progress, bool):
        raise config_error("progress", f"got {progress!r} (allowed: True, False)")
    recorder = Recorder()
    views = views_of(recorder) if progress else []
    if not views:
        return _calls.result_of(_calls.native_train(config, on_step, **callbacks), config)
    return run(config, recorder, views, {"on_step": on_step, **callbacks})


PROGRESS_DOC = ("\n\nprogress: in a notebook a live view (ipywidgets where it is installed, else HTML), in a terminal the program's "
                "bar, elsewhere nothing; False: nothing anywhere.")
train.__doc__ = (_calls.native_train.__doc__ or "") + PROGRESS_DOC
