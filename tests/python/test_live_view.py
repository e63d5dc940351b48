"""The live view: what it shows, where, and that it costs less than a hundredth of the time."""

from __future__ import annotations

import fcntl
import inspect
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace

import pytest
from notebooks import run_cells, shown
from test_notebook_use import options
from test_results import HOSTILE, Tags, assert_harmless

import sdtune
from sdtune import _live_view, _progress, _terminal_bar, _train


class Clock:
    """A time that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def step_event(step: int, total: int = 1000) -> SimpleNamespace:
    return SimpleNamespace(step=step, total_steps=total, loss=1.0 / step, lr=1e-4, images_per_s=4.0, elapsed=0.1 * step)


class SlowScreen:
    """A front end that takes `cost` seconds a update."""

    def __init__(self, clock: Clock, cost: float) -> None:
        self.clock, self.cost = clock, cost
        self.states: list[str] = []
        self.images: list[str] = []

    def show(self, state: str) -> None:
        self.clock.now += self.cost
        self.states.append(state)

    def show_images(self, images: str) -> None:
        self.images.append(images)


@pytest.mark.parametrize("cost, most", [(0.0, 201), (0.001, 201), (0.05, 11), (2.0, 1)])
def test_updates_take_less_than_a_hundredth_of_the_time(cost: float, most: int) -> None:
    """1000 steps of 0.1 s. Without the factor, 0.05 s a update would be updated 180 times; with 100 it would be 21 times."""
    clock = Clock()
    recorder, screen = _progress.Recorder(), SlowScreen(clock, cost)
    view = _live_view.LiveView(recorder, screen, clock)
    for step in range(1, 1001):
        clock.now += 0.1
        recorder.on_step(step_event(step))
        view.on_step(step_event(step))
    assert 1 <= len(screen.states) <= most and view.updates == len(screen.states)
    assert cost > 0 or len(screen.states) > 150, "it is updated"
    view.finish("done")
    assert "1000 of 1000" in screen.states[-1] and "done" in screen.states[-1], "the end is always shown"
    assert cost > 0.05 or view.seconds < 0.01 * clock.now, "with its end"


def test_the_terminal_s_bar_is_bounded_too() -> None:
    clock = Clock()

    class Stream:
        text = ""

        def write(self, text: str) -> None:
            clock.now += 0.02
            self.text += text

        def flush(self) -> None:
            pass

    stream = Stream()
    bar = _terminal_bar.TerminalBar(stream, clock)
    for step in range(1, 1001):
        clock.now += 0.1
        bar.on_step(step_event(step))
    assert 1 < bar.updates <= 52  # 2 s between two, and the last step
    assert "step 1000/1000" in stream.text and "loss 0.001  lr 0.0001  4 photos/s  ETA 00:00" in stream.text


def test_names_of_folders_command_no_terminal() -> None:
    stream = io.StringIO()
    _terminal_bar.TerminalBar(stream).on_start(SimpleNamespace(
        first_step=0, total_steps=1, base="b\x1b[2J", pipeline_class="P", method="full", components=["unet"], device="cpu",
        dtype="float32", images=1, resolution=32, batch=1, seed=1, output="o", notes=["1_\x1b]0;owned\x07\x9b"]))
    assert "model    b\\x1b[2J (P)\n" in stream.getvalue()
    assert "note     1_\\x1b]0;owned\\x07\\xc2\\x9b\n" in stream.getvalue()


def test_texts_of_users_are_escaped_and_nothing_grows_without_bound() -> None:
    recorder = _progress.Recorder()
    recorder.on_preparation(SimpleNamespace(preset="", generation=[HOSTILE]))
    recorder.on_phase(HOSTILE, 1, 2)
    page = assert_harmless(_live_view.state_html(recorder, HOSTILE))
    assert "img" not in page.tags and page.words.count("onerror=alert(1)") == 3
    for step in range(1, 50_001):
        recorder.on_step(step_event(step, 50_000))
        recorder.on_warning(HOSTILE)
    text = _live_view.state_html(recorder)
    assert "img" not in Tags(text).tags and "and 49995 before" in text and len(text) < 40_000


def test_figures_are_those_of_the_events() -> None:
    recorder = _progress.Recorder()
    recorder.on_start(SimpleNamespace(first_step=10, total_steps=40, base="b", pipeline_class="P", method="full", components=["unet"],
                                      device="cpu", dtype="float32", images=5, resolution=32, seed=1, output="o", notes=[]))
    assert recorder.snapshot().step == 10 and recorder.snapshot().eta is None
    recorder.on_step(SimpleNamespace(step=20, total_steps=40, loss=0.5, images_per_s=2.0, elapsed=30.0))
    recorder.on_identity(SimpleNamespace(step=20, identity=0.75))
    now = recorder.snapshot()
    assert (now.step, now.total_steps, now.loss, now.eta, now.identity) == (20, 40, 0.5, 60.0, 0.75)
    assert "ETA 01:00" in _live_view.state_html(recorder) and "likeness 0.75" in _live_view.state_html(recorder)
    recorder.on_step(SimpleNamespace(step=21, total_steps=40, loss=float("nan"), images_per_s=2.0, elapsed=33.0))
    recorder.on_step(SimpleNamespace(step=22, total_steps=40, loss=float("inf"), images_per_s=2.0, elapsed=36.0))
    assert recorder.losses[-1] == 0.5, "one bad step does not take the curve away"
    fresh = _progress.Recorder()
    for step, loss in ((1, float("nan")), (2, 0.25)):
        fresh.on_step(SimpleNamespace(step=step, total_steps=40, loss=loss, images_per_s=2.0, elapsed=1.0))
    assert fresh.losses[-1] == 0.25, "nor does a bad first one"


def test_a_front_end_that_fails_does_not_end_the_run(tiny_sd1: Path, tmp_path: Path) -> None:
    class Broken:
        def show(self, state: str) -> None:
            raise OSError("the browser is gone")

    recorder = _progress.Recorder()
    view = _live_view.LiveView(recorder, Broken())
    seen: list[int] = []
    callbacks = {"on_step": lambda event: seen.append(event.step)}
    result = _train.run(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run")), recorder, [view], callbacks)
    assert result.step == 4 and seen == [1, 2, 3, 4] and view.updates == 1
    assert recorder.steps == seen and recorder.snapshot().phase == "done"


CELLS = """
import sys
{before}
import sdtune
seen = []
config = sdtune.TrainConfig(**{settings!r})
---
result = sdtune.train(config, on_step=lambda event: seen.append(event.step){more})
---
print(seen)
---
result
"""


def notebook_of(settings: dict[str, object], folder: Path, before: str = "", more: str = "") -> list[list[object]]:
    return run_cells(CELLS.format(before=before, settings=settings, more=more).split("---\n"), folder)


@pytest.fixture
def settings(tiny_sd1: Path, tmp_path: Path) -> dict[str, object]:
    return options(tiny_sd1, tmp_path / "run", validation_prompt=HOSTILE, validation_steps=2, num_validation_images=1,
                   validation_inference_steps=1)


def test_a_notebook_shows_html_that_is_updated(settings: dict[str, object], tmp_path: Path) -> None:
    _, training, seen, result = notebook_of(settings, tmp_path, before="sys.modules['ipywidgets'] = None")
    assert seen[0]["text"].strip() == "[1, 2, 3, 4]"
    text = shown(training)
    assert "done after step 4" in text and 'max="4"' in text and "loss, smoothed" in text
    page = Tags(text)
    assert page.tags.count("img") == 1 and HOSTILE in page.words and "images of step 4" in page.words
    assert len(training) == 2, "two outputs, updated in place"
    assert "srcdoc" in shown(result) and "object at" not in shown(result, "text/plain")


def test_a_notebook_with_ipywidgets_shows_a_widget(settings: dict[str, object], tmp_path: Path) -> None:
    code = "import ipywidgets\nmade = []\nold = ipywidgets.VBox\n" \
           "def keep(children):\n    made.extend(children)\n    return old(children)\nipywidgets.VBox = keep\n"
    cells = CELLS.format(before=code, settings=settings, more="").split("---\n")[:2] + ["print(made[0].value)"]
    _, training, state = run_cells(cells, tmp_path)
    assert "application/vnd.jupyter.widget-view+json" in training[0]["data"]
    assert "done after step 4" in state[0]["text"] and 'max="4"' in state[0]["text"]


def test_progress_false_is_silent(settings: dict[str, object], tmp_path: Path) -> None:
    _, training, seen, _ = notebook_of(settings, tmp_path, more=", progress=False")
    assert training == [] and seen[0]["text"].strip() == "[1, 2, 3, 4]"


def test_the_bar_has_the_width_of_its_own_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where stdout goes elsewhere. A wider line would wrap, ten times a second."""
    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 45, 0, 0))
    with open(theirs, "w") as stream:
        assert _terminal_bar.columns_of(stream) == 45
        _terminal_bar.TerminalBar(stream, Clock()).on_phase("x" * 200, 0, 0)
        assert os.read(ours, 4096).decode() == "\r\x1b[K" + "x" * 44
        monkeypatch.setenv("COLUMNS", "30")
        assert _terminal_bar.columns_of(stream) == 30
    os.close(ours)
    monkeypatch.setenv("COLUMNS", "wide")
    assert _terminal_bar.columns_of(io.StringIO()) == _terminal_bar.USUAL_COLUMNS


def in_terminal(code: str) -> str:
    """What a program writes to the terminal that is its stderr."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 4096):
            text += part
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert child.wait(timeout=60) == 0, text.decode()
    return text.decode()


def test_a_terminal_shows_the_program_s_bar(tiny_sd1: Path, tmp_path: Path) -> None:
    code = "import sdtune; sdtune.train(sdtune.TrainConfig(**{!r}){})"
    loud = in_terminal(code.format(options(tiny_sd1, tmp_path / "loud"), ""))
    assert "step 4/4 [" in loud and "ETA 00:00" in loud and "done after step 4" in loud and "output   " in loud
    assert in_terminal(code.format(options(tiny_sd1, tmp_path / "quiet"), ", progress=False")) == ""


def test_without_a_terminal_nothing_is_written(tiny_sd1: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert not sys.stderr.isatty() or os.environ.get("TERM")
    code = f"import sdtune; sdtune.train(sdtune.TrainConfig(**{options(tiny_sd1, tmp_path / 'run')!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    with pytest.raises(sdtune.ConfigError, match="progress: got 'no'"):
        sdtune.train(sdtune.TrainConfig(), progress="no")
    assert inspect.signature(sdtune.train).parameters["progress"].default is True


def test_a_stream_that_is_no_terminal_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """sys.stderr as programs replace it: None, closed, or an object that can only write."""
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, SimpleNamespace(write=print, flush=print)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert _train.views_of(_progress.Recorder()) == []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert len(_train.views_of(_progress.Recorder())) == 1


def test_widgets_that_do_not_work_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(stop: object) -> None:
        raise AttributeError("module 'traitlets' has no attribute 'TraitType'")

    monkeypatch.setattr(_train, "WidgetScreen", broken)
    monkeypatch.setattr(_train, "HtmlScreen", lambda: "html")
    assert _train.make_screen() == "html"


def test_the_cost_that_the_page_states_is_the_measured_one() -> None:
    root = Path(__file__).resolve().parents[2]
    rows = {row["mode"]: row for row in json.loads((root / "docs/measurements/live_view_cpu.json").read_text())["rows"]}
    page = " ".join((root / "docs/python.md").read_text().split())
    for mode in ("widgets", "html"):
        low, high = min(rows[mode]["share_percent"]), max(rows[mode]["share_percent"])
        assert high < 1 and rows[mode]["updates_a_run"] > 10
        assert f"{low:g} to {high:g} %" in page, (mode, low, high)
    assert rows["silent"]["updates_a_run"] == 0
