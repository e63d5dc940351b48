"""Training as a notebook does it: live progress, errors in a callback, Ctrl-C, and going on afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import sdtune
from sdtune import _train
from sdtune._progress import EVENTS

PHOTOS = Path(__file__).resolve().parents[2] / "examples/backpack_dog"


def options(base: Path, run: Path, **others: object) -> dict[str, object]:
    """A short run on the tiny model."""
    return {"images": str(PHOTOS), "base": str(base), "output": str(run), "device": "cpu", "resolution": 32,
            "max_train_steps": 4, "learning_rate": 1e-3, "with_prior_preservation": False, "train_batch_size": 1,
            "checkpointing_steps": 1000, "validation_prompt": "", "report_to": "none", **others}


def model_bytes(run: Path) -> bytes:
    """The trained UNet's file."""
    return (run / "model/unet/diffusion_pytorch_model.safetensors").read_bytes()


def test_progress_is_live_and_the_result_names_the_model(tiny_sd1: Path, tmp_path: Path) -> None:
    steps, phases, others = [], [], []
    main_thread = threading.get_ident()

    def on_step(event: sdtune.StepEvent) -> None:
        assert threading.get_ident() == main_thread
        steps.append((event.step, event.loss, event.total_steps))

    result = sdtune.train(
        sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run")), on_step=on_step,
        on_start=lambda summary: others.append(summary.total_steps),
        on_phase=lambda name, done, total: phases.append(name), on_end=lambda step, path: others.append(path))
    assert [step for step, _, _ in steps] == [1, 2, 3, 4] and {total for _, _, total in steps} == {4}
    assert result.metrics["loss"].tolist() == [loss for _, loss, _ in steps]
    assert others == [4, result.model_path] and phases
    assert result.step == 4 and (result.model_path / "model_index.json").is_file()
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(result.model_path)
    base = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    changed = pipe.unet.named_parameters()
    assert any((value != changed[name]).any() for name, value in base.unet.named_parameters().items())


def test_what_will_be_generated_is_told_before(tiny_sd1: Path, tmp_path: Path) -> None:
    """The preset and the class images before the base is loaded, and their time before they are generated."""
    told: list[object] = []
    sdtune.train(
        sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", with_prior_preservation=True, num_class_images=3,
                                     max_train_steps=1, class_num_inference_steps=2)),
        on_preparation=told.append, on_generation=told.append, on_phase=lambda name, done, total: told.append(name))
    preparation, generation = (next(item for item in told if isinstance(item, kind))
                               for kind in (sdtune.PreparationEvent, sdtune.GenerationEvent))
    assert "3 class images" in preparation.generation[0] and preparation.preset == ""
    assert generation.images == 3 and generation.seconds > 0
    assert told.index(preparation) == 0 < told.index(generation) < told.index("generating class images")


def test_an_error_in_a_callback_stops_the_run_and_it_can_go_on(tiny_sd1: Path, tmp_path: Path) -> None:
    def on_step(event: sdtune.StepEvent) -> None:
        if event.step == 2:
            raise ZeroDivisionError("plot failed")

    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    with pytest.raises(ZeroDivisionError, match="plot failed"):
        sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, stopped)), on_step=on_step)
    assert list((stopped / "checkpoints").glob("step-*/manifest.json")), "the state was saved"
    [attempt] = json.loads((stopped / "run.json").read_text())["attempts"]
    assert (attempt["cause"], attempt["exit_code"]) == ("an exception of a callback", 130)
    result = sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, stopped, resume_from_checkpoint="latest")))
    assert result.step == 4 and result.metrics["step"].tolist() == [1, 2, 3, 4] and set(result.metrics["attempt"]) == {1, 2}
    sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, whole)))
    assert model_bytes(stopped) == model_bytes(whole)


@pytest.mark.parametrize("kind, place", [(ZeroDivisionError, "file"), (KeyboardInterrupt, "file"), (ZeroDivisionError, "link to itself")])
def test_an_error_in_a_callback_tells_that_no_state_could_be_saved(kind: type[BaseException], place: str, tiny_sd1: Path, tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the writing fails as our code says it or as the C++ library does."""
    ends: list[str] = []
    view = SimpleNamespace(**dict.fromkeys(EVENTS, lambda *_: None), finish=ends.append)
    monkeypatch.setattr(_train, "views_of", lambda *_, **__: [view])

    def on_step(event: sdtune.StepEvent) -> None:
        checkpoints = tmp_path / "run/checkpoints"
        if place == "file":
            checkpoints.write_text("a file in the place of the folder")
        else:
            checkpoints.symlink_to(checkpoints)
        raise kind("plot failed")

    with pytest.raises(kind, match="plot failed") as caught:
        sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run")), on_step=on_step)
    [note] = caught.value.__notes__
    assert note.startswith("sdtune: then the run failed: ") and str(tmp_path / "run/checkpoints") in note
    assert len(ends) == 1 and "state saved" not in ends[0]


def test_ctrl_c_saves_and_raises_keyboard_interrupt_and_the_run_goes_on(tiny_sd1: Path, tmp_path: Path) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    settings = options(tiny_sd1, run, max_train_steps=6)
    program = textwrap.dedent(f"""
        import sdtune, time
        def on_step(event):
            print(event.step, flush=True)
            time.sleep(0.2)
        try:
            sdtune.train(sdtune.TrainConfig(**{settings!r}), on_step=on_step)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        import signal
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            print("python's own again", flush=True)
    """)
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "1"
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=120)[0].split("\n")
    assert child.returncode == 0 and "interrupted" in rest and "python's own again" in rest
    assert "6" not in rest, "it stopped before the end"
    result = sdtune.train(sdtune.TrainConfig(**settings | {"resume_from_checkpoint": "latest"}))
    assert result.metrics["step"].tolist() == list(range(1, 7)) and set(result.metrics["attempt"]) == {1, 2}
    sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, whole, max_train_steps=6)))
    assert model_bytes(run) == model_bytes(whole)


def test_sigterm_ends_the_process_as_the_program_would(tiny_sd1: Path, tmp_path: Path) -> None:
    settings = options(tiny_sd1, tmp_path / "run", max_train_steps=1000)
    program = textwrap.dedent(f"""
        import sdtune
        sdtune.train(sdtune.TrainConfig(**{settings!r}), on_step=lambda event: print(event.step, flush=True))
    """)
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline().strip() == "1"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=120)
    assert child.returncode == 143
    assert list((tmp_path / "run/checkpoints").glob("step-*/manifest.json"))


def test_other_threads_run_while_it_trains(tiny_sd1: Path, tmp_path: Path) -> None:
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks.append(time.monotonic())

    moments: list[float] = []
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run")),
                     on_step=lambda event: moments.append(time.monotonic()))
    finally:
        done.set()
        thread.join()
    inside = [moment for moment in ticks if moments[0] < moment < moments[-1]]
    assert inside, "no other thread ran between the first step and the last"


def test_bad_configurations_are_refused_before_anything_is_written(tiny_sd1: Path, tmp_path: Path) -> None:
    config = sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", images=str(tmp_path / "nobody"), resolution=33))
    faults = sdtune.check(config)
    assert any("nobody" in str(fault) for fault in faults)
    with pytest.raises(sdtune.Error) as caught:
        sdtune.train(config)
    assert {str(problem) for problem in caught.value.problems} == {str(fault) for fault in faults}
    assert not (tmp_path / "run").exists()
    with pytest.raises(sdtune.ConfigError, match="on_steps.*on_step"):
        sdtune.train(config, on_steps=print)
    with pytest.raises(sdtune.ConfigError, match="on_step"):
        sdtune.train(config, on_step=3)
