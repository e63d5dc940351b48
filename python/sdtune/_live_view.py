"""The live view of a run in a notebook: bar, remaining time, curves, newest validation images, warnings.

Updated at most every half second, and never sooner than 200 times as long as the last update took: half a percent of the time, so that
the last updates of a run, which no time follows, leave it below 1 %.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any, Protocol

from . import _html
from ._native_views import validation_captions
from ._progress import EVENTS, Recorder, duration

SHORTEST_INTERVAL = 0.5  # s
COST_FACTOR = 200  # the interval is at least this many times the update
MOST_WARNINGS = 5
TEXT = '<div style="line-height:1.4">'  # ipywidgets sets lines as far apart as its buttons


class Screen(Protocol):
    """Where the two parts of the view go: the state, and the validation images, which change seldom and are large."""

    def show(self, state: str) -> None: ...
    def show_images(self, images: str) -> None: ...


class HtmlScreen:
    """Two outputs of the cell that are updated in place."""

    def __init__(self) -> None:
        shown: Any = importlib.import_module("IPython.display")
        self._html = shown.HTML
        self._state, self._images = (shown.display(self._html(""), display_id=True) for _ in range(2))

    def show(self, state: str) -> None:
        self._state.update(self._html(state))

    def show_images(self, images: str) -> None:
        self._images.update(self._html(images))


class WidgetScreen:
    """The same in ipywidgets; `stop` adds a button that calls it."""

    def __init__(self, stop: Callable[[], object] | None = None) -> None:
        ipywidgets: Any = importlib.import_module("ipywidgets")
        self._state, self._images = ipywidgets.HTML(), ipywidgets.HTML()
        children = [self._state, self._images]
        if stop is not None:
            button = ipywidgets.Button(description="Stop and save", icon="stop")
            button.on_click(lambda _: stop())
            children.append(button)
        importlib.import_module("IPython.display").display(ipywidgets.VBox(children))

    def show(self, state: str) -> None:
        self._state.value = state

    def show_images(self, images: str) -> None:
        self._images.value = images


class LiveView:
    """Shows a recorder's run on a screen. A screen that fails is left alone: it must not end a training."""

    def __init__(self, recorder: Recorder, screen: Screen, clock: Callable[[], float] = time.perf_counter) -> None:
        self._recorder, self._screen, self._clock = recorder, screen, clock
        self._next = clock()
        self._images_of: object = None
        self._failed = False
        self.updates = 0
        self.seconds = 0.0  # spent on updates

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Every event may be a reason to update it."""
        if name not in EVENTS:
            raise AttributeError(name)
        return lambda *event: self.update()

    def update(self, force: bool = False, end: str = "") -> None:
        """Updates the screen if it is time to. `end`: a line that says how the run ended."""
        began = self._clock()
        if self._failed or (began < self._next and not force):
            return
        try:
            self._screen.show(TEXT + state_html(self._recorder, end) + "</div>")
            event = self._recorder.validation
            if event is not None and event is not self._images_of:
                self._images_of = event
                self._screen.show_images(f"{TEXT}<p>images of step {event.step}</p>"
                                         + _html.figures(event.images, validation_captions(event)) + "</div>")
        except Exception:  # noqa: BLE001  the front end's, of any kind
            self._failed = True
        ended = self._clock()
        self.updates += 1
        self.seconds += ended - began
        self._next = ended + max(SHORTEST_INTERVAL, COST_FACTOR * (ended - began))

    def finish(self, end: str) -> None:
        """The last update."""
        self.update(force=True, end=end)


def state_html(recorder: Recorder, end: str = "") -> str:
    """Bar, figures, curves and warnings."""
    now = recorder.snapshot()
    share = f' value="{now.done}" max="{now.total}"' if now.total else ""
    words = [f"{_html.text(now.phase)} {now.done} of {now.total}" if now.total else _html.text(now.phase)]
    if now.loss is not None and now.images_per_s is not None:
        words += [f"loss {now.loss:.4g}", f"{now.images_per_s:.3g} photos/s"]
    if now.eta is not None and not end:
        words.append(f"ETA {duration(now.eta)}")
    steps = [step for step, _ in recorder.identities]
    curves = (_html.curve("loss, smoothed", recorder.steps, recorder.losses)
              + _html.curve("likeness", steps, [value for _, value in recorder.identities]))
    warnings = "".join(f"<li>{_html.text(warning)}</li>" for warning in recorder.warnings[-MOST_WARNINGS:])
    if len(recorder.warnings) > MOST_WARNINGS:
        warnings += f"<li>and {len(recorder.warnings) - MOST_WARNINGS} before</li>"
    notes = "".join(f"<div>{_html.text(note)}</div>" for note in recorder.notes)
    return (f'<progress style="width:min(100%,600px)"{share}></progress><div>{", ".join(words)}</div>'
            f'<div style="display:flex;flex-wrap:wrap;gap:12px">{curves}</div>'
            + (f"<div>warnings<ul>{warnings}</ul></div>" if warnings else "")
            + f'<details><summary>training</summary>{notes}</details>' + (f"<div>{_html.text(end)}</div>" if end else ""))
