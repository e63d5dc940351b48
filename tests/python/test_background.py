"""Runs on a thread of their own: watched, stopped, resumed, refused, interrupted, and beside other work."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from notebooks import run_cells, shown
from test_notebook_use import PHOTOS, model_bytes, options

import sdtune
from sdtune import _train
from sdtune._full_paths import with_full_paths


class Gate:
    """An on_step that holds the run at a step until it is let go."""

    def __init__(self, at: int) -> None:
        self.at, self.reached, self.go = at, threading.Event(), threading.Event()

    def __call__(self, event: sdtune.StepEvent) -> None:
        if event.step == self.at:
            self.reached.set()
            assert self.go.wait(60)


def test_a_run_is_watched_stopped_and_resumed_to_the_same_bits(tiny_sd1: Path, tmp_path: Path) -> None:
    folder, whole = tmp_path / "run", tmp_path / "whole"
    config = sdtune.TrainConfig(**options(tiny_sd1, folder, validation_prompt="a cat", validation_steps=1,
                                          num_validation_images=2, validation_inference_steps=1))
    gate = Gate(2)
    run = sdtune.start(config, on_step=gate)
    try:
        assert gate.reached.wait(60) and run.is_running and run.output == folder
        now = run.progress
        assert (now.phase, now.step, now.total_steps) == ("training", 2, 4) and now.loss is not None and now.eta is not None
        images = run.latest_images
        assert len(images.images) == 2 and images.prompts == ["a cat"] * 2 and images._repr_html_().count("<img") == 2
        assert repr(images).startswith("PipelineOutput(2 images of 32 x 32, seeds=")
        assert "running" in repr(run) and "step 2 of 4" in repr(run)
        with pytest.raises(TimeoutError, match="goes on: step 2 of 4"):
            run.wait(timeout=0.01)
        run.stop()
    finally:
        gate.go.set()
    stopped = run.wait()
    assert stopped.step == 2 and stopped.model_path is None and stopped.checkpoint is not None and not run.is_running
    assert "stopped, state saved" in repr(run)
    with pytest.raises(sdtune.ConfigError, match="stopped at step 2"):
        stopped.pipeline()
    again = sdtune.start(config, resume_from_checkpoint="latest").wait()
    assert again.step == 4 and again.metrics["step"].tolist() == [1, 2, 3, 4]
    assert again.metrics["attempt"].tolist() == [1, 1, 2, 2]
    assert config.resume_from_checkpoint == "" and config.origins() == sdtune.TrainConfig(**config_options(config)).origins()
    text = (folder / "config.yaml").read_text()
    assert "# default" in text and "resume_from_checkpoint: latest  # resume_from_checkpoint" in text, "the copy keeps the origins"
    sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, whole)))
    assert model_bytes(folder) == model_bytes(whole)


def config_options(config: sdtune.TrainConfig) -> dict[str, object]:
    """What a configuration was made of: the options whose origin is their own name."""
    return {name: getattr(config, name) for name, origin in config.origins().items() if origin == name}


def test_a_second_start_in_the_folder_is_refused_in_one_line(tiny_sd1: Path, tmp_path: Path) -> None:
    config = sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run"))
    gate = Gate(1)
    run = sdtune.start(config, on_step=gate)
    try:
        with pytest.raises(sdtune.ConfigError) as caught:  # at once, whether or not the first has the folder's lock yet
            sdtune.start(config)
        assert str(tmp_path / "run") in str(caught.value) and "\n" not in str(caught.value) and caught.value.exit_code == 2
        assert gate.reached.wait(60)
        (tmp_path / "link").symlink_to(tmp_path / "run")
        config.output = str(tmp_path / "link")
        with pytest.raises(sdtune.ConfigError, match="is writing here"):
            sdtune.start(config)
        config.output = str(tmp_path / "other")
        other = sdtune.start(config)  # which goes beside the first
        assert other.wait().step == 4
    finally:
        gate.go.set()
    assert run.wait().step == 4
    assert model_bytes(tmp_path / "run") == model_bytes(tmp_path / "other"), "two runs at once do not touch each other"


def test_what_the_run_raises_is_raised_by_wait(tiny_sd1: Path, tmp_path: Path) -> None:
    def fail(event: sdtune.StepEvent) -> None:
        raise ZeroDivisionError("plot failed")

    run = sdtune.start(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run")), on_step=fail)
    with pytest.raises(ZeroDivisionError, match="plot failed"):
        run.wait()
    assert "ended by ZeroDivisionError: plot failed" in repr(run)
    missing = sdtune.start(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "two", images=str(tmp_path / "nobody"))))
    with pytest.raises(sdtune.Error, match="nobody"):
        missing.wait()
    config = sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "three"))
    with pytest.raises(sdtune.ConfigError, match="on_steps: unknown argument"):
        sdtune.start(config, on_steps=print)
    with pytest.raises(sdtune.ConfigError, match="on_step: got 3"):
        sdtune.start(config, on_step=3)
    assert sdtune.start(config, resume_from_checkpoint="auto").wait().step == 4, "a refused start leaves nothing behind"


def test_a_callback_that_waits_for_its_own_run_is_refused(tiny_sd1: Path, tmp_path: Path) -> None:
    started: list[sdtune.Run] = []
    is_known = threading.Event()

    def on_step(event: sdtune.StepEvent) -> None:
        assert is_known.wait(60)
        started[0].wait()

    started.append(sdtune.start(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run")), on_step=on_step))
    is_known.set()
    with pytest.raises(RuntimeError, match="a callback of the run waits"):
        started[0].wait()


def test_a_start_that_gets_no_thread_leaves_nothing_behind(tiny_sd1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    config = sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run"))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            sdtune.start(config)
    assert sdtune.start(config).wait().step == 4


def test_another_pipeline_generates_meanwhile(tiny_sd1: Path, tmp_path: Path) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    before = pipe("a cat", num_inference_steps=3, output_type="np").images
    gate = Gate(2)
    run = sdtune.start(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", max_train_steps=8)), on_step=gate)
    assert gate.reached.wait(60)
    gate.go.set()
    for _ in range(3):
        assert (pipe("a cat", num_inference_steps=3, output_type="np").images == before).all()
    run.wait()
    sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "alone", max_train_steps=8)))
    assert model_bytes(tmp_path / "run") == model_bytes(tmp_path / "alone")


def test_interrupting_the_wait_saves_and_leaving_python_too(tiny_sd1: Path, tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import signal, sys, threading, time, sdtune
        run = sdtune.start(sdtune.TrainConfig(**{!r}), on_step=lambda event: time.sleep(0.05))
        while run.progress.step < 2:
            time.sleep(0.01)
        if {!r} == "interrupt":
            threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
            try:
                run.wait()
            except KeyboardInterrupt:
                print("interrupted", run.is_running, run)
    """)
    for how in ("interrupt", "leave"):
        settings = options(tiny_sd1, tmp_path / how, max_train_steps=5000)
        done = subprocess.run([sys.executable, "-c", program.format(settings, how)], capture_output=True, text=True, timeout=120,
                              check=False)
        assert done.returncode == 0, done.stderr
        assert (how == "leave") or "interrupted False Run(" in done.stdout
        assert list((tmp_path / how / "checkpoints").glob("step-*/manifest.json")), how


def test_a_notebook_starts_watches_stops_and_another_kernel_resumes(tiny_sd1: Path, tmp_path: Path) -> None:
    settings = options(tiny_sd1, tmp_path / "run", max_train_steps=40)
    make = f"import sys, time\nsys.modules['ipywidgets'] = None\nimport sdtune\nconfig = sdtune.TrainConfig(**{settings!r})"
    _, view, watched, stopped = run_cells([
        make, "run = sdtune.start(config, on_step=lambda event: time.sleep(0.1))",
        "while run.progress.step < 3:\n    time.sleep(0.02)\nprint(run.progress.step, run.is_running)",
        "run.stop()\nresult = run.wait()\nprint(result.model_path, 3 <= result.step < 40)"], tmp_path)
    assert watched[0]["text"].strip().endswith("True") and stopped[0]["text"].strip() == "None True"
    assert "stopped; state saved" in shown(view), "the cell that started the run shows its end"
    _, resumed, end = run_cells([
        make, "run = sdtune.start(config, resume_from_checkpoint='latest')",
        "result = run.wait()\nprint(result.step, list(result.metrics['step']) == list(range(1, 41)), int(max(result.metrics['attempt'])))"], tmp_path)
    assert end[0]["text"].strip() == "40 True 2" and "done after step 40" in shown(resumed)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_stop_before_the_first_step_claims_no_saved_state(interrupted: bool, tiny_sd1: Path, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to stop between two class images, by stop() or by an interrupt in a callback."""
    class View:
        end = ""

        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_: None

        def finish(self, end: str) -> None:
            self.end = end

    view, go = View(), threading.Event()
    monkeypatch.setattr(_train, "views_of", lambda *_, **__: [view])

    def on_phase(name: str, done: int, total: int) -> None:
        if name == "generating class images":
            assert done < total and go.wait(60)
            if interrupted:
                raise KeyboardInterrupt

    run = sdtune.start(sdtune.TrainConfig(**options(
        tiny_sd1, tmp_path / "run", with_prior_preservation=True, num_class_images=3, sample_batch_size=1,
        class_num_inference_steps=2, class_data_dir=str(tmp_path / "class"))), on_phase=on_phase)
    if not interrupted:
        run.stop()
    go.set()
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            run.wait()
    else:
        stopped = run.wait()
        assert stopped.step == 0 and stopped.checkpoint is None and stopped.model_path is None
        assert "stopped before the first step" in repr(run) and "saved" not in repr(run)
    assert view.end == "stopped before the first step; start it again"
    assert not list((tmp_path / "run").glob("checkpoints/step-*"))


def test_the_working_directory_may_change_meanwhile(tiny_sd1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another cell's %cd: photos, base and output are those of the folder where the run was started. Origins stay."""
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    for name, target in (("base", tiny_sd1), ("photos", PHOTOS)):
        (tmp_path / "here" / name).symlink_to(target)
    monkeypatch.chdir(tmp_path / "here")
    Path("me.yaml").write_text("images: photos\n")
    settings = options(Path("base"), Path("runs/me"), checkpointing_steps=2)
    del settings["images"]
    gate = Gate(1)
    run = sdtune.start(sdtune.TrainConfig.from_yaml("me.yaml", **settings), on_step=gate)
    monkeypatch.chdir(tmp_path / "elsewhere")
    try:
        assert gate.reached.wait(60), run
    finally:
        gate.go.set()
    result = run.wait()
    assert result.step == 4 and result.output == tmp_path / "here/runs/me" and not list((tmp_path / "elsewhere").iterdir())
    assert list((result.output / "checkpoints").glob("step-*/manifest.json")) and result.pipeline().unet is not None
    text = (result.output / "config.yaml").read_text()
    assert "here/photos  # me.yaml:1" in text and "here/base  # base" in text and "here/runs/me  # output" in text


def test_paths_are_written_in_full_and_names_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("photos", "latest"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    concepts = [{"images": "photos", "class_data_dir": "class", "repeats": 2}, {"images": "nobody"}]
    given = sdtune.TrainConfig(base="org/name", concepts=concepts, images="photos", cache_dir="cache", resume_from_checkpoint="latest",
                               identity_classifier="portrait-judge", validation_data_dir=tmp_path / "photos")
    full = with_full_paths(given)
    assert {name: value for name, value in full.to_dict().items() if given.to_dict()[name] != value} == {
        "images": str(tmp_path / "photos"), "cache_dir": str(tmp_path / "cache"), "output": str(tmp_path / "runs/photos"),
        "concepts": full.concepts}
    assert [json.loads(text) for text in full.concepts] == [
        {"images": str(tmp_path / "photos"), "class_data_dir": str(tmp_path / "class"), "repeats": 2}, {"images": "nobody"}]
    assert full.origins() == given.origins() | {"output": "output"} and full.preset_values() == given.preset_values()
    assert given.images == "photos" and given.output == "", "the caller's stays as it is"
