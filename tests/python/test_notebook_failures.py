"""What goes wrong in a notebook: a killed kernel, a full disk, a folder in use, wrong values. Each with its class and its text."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
from pathlib import Path

import pytest
from notebooks import error_of, manager_of, printed, run_cells
from test_check import small_disk
from test_notebook_use import PHOTOS, model_bytes, options

import sdtune

# A run that takes a while, with a checkpoint every third step.
MAKE = "import os, time\nimport sdtune\nconfig = sdtune.TrainConfig(**{!r})"


@pytest.fixture(scope="module")
def undisturbed(tiny_sd1: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The weights of 20 steps without a checkpoint and without a stop."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    sdtune.train(sdtune.TrainConfig(**options(tiny_sd1, folder, max_train_steps=20)))
    return model_bytes(folder)


def test_a_killed_kernel_loses_no_run(tiny_sd1: Path, tmp_path: Path, undisturbed: bytes) -> None:
    settings = options(tiny_sd1, tmp_path / "run", max_train_steps=20, checkpointing_steps=3)
    manager, client = manager_of(tmp_path)
    try:
        process = int(printed(client, MAKE.format(settings) + "\nprint(os.getpid())"))
        step = int(printed(client, "run = sdtune.start(config, on_step=lambda event: time.sleep(0.2))\n"
                                   "while run.progress.step < 8:\n    time.sleep(0.01)\nprint(run.progress.step)"))
        os.kill(process, signal.SIGKILL)
        assert manager.provisioner.process.wait(30) == -signal.SIGKILL  # type: ignore[union-attr]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert 8 <= step < 20 and not (tmp_path / "run/model").exists()
    *_, resumed = run_cells([
        MAKE.format(settings), "result = sdtune.start(config, resume_from_checkpoint='latest').wait()",
        "print(result.step, int(result.metrics['step'][result.metrics['attempt'] == 2][0]))"], tmp_path)
    last, first = map(int, resumed[0]["text"].split())
    assert last == 20 and first in (7, 10, 13), "it goes on behind the newest checkpoint"
    assert model_bytes(tmp_path / "run") == undisturbed


def test_a_disk_that_fails_is_a_storage_error(tiny_sd1: Path, tmp_path: Path) -> None:
    """The C++ library's own functions throw it: here of a link that leads to itself, found when a checkpoint is written."""
    checkpoints = tmp_path / "run/checkpoints"
    config = sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", checkpointing_steps=1))
    with pytest.raises(sdtune.StorageError, match="step-00000001: Too many levels of symbolic links") as caught:
        sdtune.train(config, on_step=lambda event: checkpoints.symlink_to(checkpoints))
    assert caught.value.exit_code == 5
    assert '"exit_code": 5' in (tmp_path / "run/last_error.json").read_text()


def test_a_restarted_kernel_has_saved(tiny_sd1: Path, tmp_path: Path) -> None:
    """By the menu's "Restart kernel", with no checkpoint before."""
    settings = options(tiny_sd1, tmp_path / "run", max_train_steps=5000)
    manager, client = manager_of(tmp_path)
    try:
        step = int(printed(client, MAKE.format(settings) + "\nrun = sdtune.start(config)\nwhile run.progress.step < 3:\n"
                                   "    time.sleep(0.01)\nprint(run.progress.step)"))
        assert not (tmp_path / "run/checkpoints").exists() or not list((tmp_path / "run/checkpoints").iterdir())
        manager.restart_kernel()
        client.wait_for_ready(timeout=60)
        resumed = printed(client, MAKE.format(settings) + "\nrun = sdtune.start(config, resume_from_checkpoint='latest')\n"
                                  "while run.is_running and run.progress.loss is None:\n    time.sleep(0.01)\nprint(run.progress.step)\n"
                                  "run.stop()\nrun.wait()")
        assert int(resumed) > step
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


FILL = """
def fill(event):
    if event.step == 5:
        with open("{filler}", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                pass
"""


def test_a_full_disk_is_one_clear_exception_and_nothing_is_lost(tiny_sd1: Path, tmp_path: Path, undisturbed: bytes) -> None:
    with small_disk(tmp_path / "disk", 200_000) as disk:
        run, filler = disk / "run", disk / "filler"
        settings = options(tiny_sd1, run, max_train_steps=20, checkpointing_steps=3)
        *_, waited, state = run_cells([
            MAKE.format(settings), FILL.format(filler=filler), "run = sdtune.start(config, on_step=fill)", "run.wait()", "print(run)",
        ], tmp_path, allow_errors=True)
        name, text = error_of(waited)
        assert name == "StorageError" and str(run / "checkpoints") in text and "\n" not in text
        assert "No space left on device" in text and text.endswith("free some space, or choose another --output")
        assert "ended by StorageError: " in state[0]["text"]
        assert [path.parent.name for path in run.glob("checkpoints/*/manifest.json")] == ["step-00000003"]
        filler.unlink()
        result = sdtune.start(sdtune.TrainConfig(**settings), resume_from_checkpoint="latest").wait()
        assert result.metrics["step"].tolist() == list(range(1, 21))
        assert result.metrics["attempt"].tolist() == [1] * 3 + [2] * 17
        assert model_bytes(run) == undisturbed


def test_a_folder_in_use_is_refused_in_this_kernel_and_in_another(tiny_sd1: Path, tmp_path: Path) -> None:
    settings = options(tiny_sd1, tmp_path / "run", max_train_steps=5000)
    manager, client = manager_of(tmp_path)
    try:
        printed(client, MAKE.format(settings) + "\nrun = sdtune.start(config)\nwhile run.progress.step < 1:\n    time.sleep(0.01)")
        same = printed(client, "try:\n    sdtune.start(config)\nexcept sdtune.ConfigError as error:\n    print(error)")
        assert same.strip() == (f"{tmp_path / 'run'}: a run that this process started is writing here; "
                                "stop() and wait() for it, or choose another output")
        _, started, trained = run_cells([MAKE.format(settings), "sdtune.start(config)", "sdtune.train(config)"], tmp_path,
                                        allow_errors=True)
        line = re.compile(re.escape(str(tmp_path / "run")) + r": another run is writing here \(process \d+ on \S+\); wait for it, "
                          "or choose another --output")
        name, text = error_of(started)
        assert name == "ConfigError" and line.fullmatch(text), text
        name, text = error_of(trained)
        assert name == "ConfigError" and line.fullmatch(text), text
        printed(client, "run.stop()\nprint(run.wait().step)")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert list((tmp_path / "run/checkpoints").glob("step-*/manifest.json")), "the refused starts left the run alone"


def test_what_is_missing_is_named(tiny_sd1: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cases = [("base", "no_base", "ConfigError", "there is no such folder; give a diffusers folder, or a hub id such as org/name"),
             ("images", "nobody", "ConfigError", "no such folder; name the folder of your photos"), ("images", "empty", "ConfigError", "no photo in this folder (0 other files); put 3 to 20 photos of the subject into it")]
    settings = [options(tiny_sd1, tmp_path / "run") | {option: str(tmp_path / value)} for option, value, _, _ in cases]
    cells = ["import sdtune", *(f"sdtune.start(sdtune.TrainConfig(**{one!r})).wait()" for one in settings)]
    for (_, value, kind, words), outputs in zip(cases, run_cells(cells, tmp_path, allow_errors=True)[1:]):
        name, text = error_of(outputs)
        assert name == kind and text.startswith(f"{tmp_path / value}: ") and words in text and "\n" not in text, (name, text)
    assert not (tmp_path / "run").exists(), "nothing is written"


@pytest.mark.parametrize("cell, text", [
    ("sdtune.TrainConfig(max_train_steps='many')", "max_train_steps: must be an integer (got many; allowed: 1 <= x <= 10000000)"),
    ("sdtune.TrainConfig(imges='me')", "imges: unknown key imges; did you mean images?"),
    *((f"sdtune.{call}({{'images': 'me'}})", "config: got {'images': 'me'} (allowed: a TrainConfig); TrainConfig(**options) takes a "
       "dict's options, TrainConfig.from_yaml reads a file") for call in ("start", "train", "check", "plan")),
    ("sdtune.start(sdtune.TrainConfig(), progress='no')", "progress: got 'no' (allowed: True, False)"),
])
def test_a_wrong_type_is_named_in_one_line(cell: str, text: str) -> None:
    with pytest.raises(sdtune.ConfigError) as caught:
        eval(cell, {"sdtune": sdtune})  # noqa: S307  our own words
    assert str(caught.value) == text and caught.value.exit_code == 2 and len(caught.value.problems) == 1


def test_names_that_are_not_utf_8_are_told_and_end_no_run(tiny_sd1: Path, tmp_path: Path) -> None:
    """Of an archive from elsewhere: warnings and errors have U+FFFD there, and what shows a run takes such a warning."""
    photos = tmp_path / "photos"
    shutil.copytree(PHOTOS, photos)
    (photos / "caf\udce9.txt").write_text("a photo of sks dog")
    run = sdtune.start(sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", images=str(photos))))
    assert run.wait().step == 4
    assert any("caf\ufffd.txt: a caption without a photo" in warning for warning in run.progress.warnings), run.progress.warnings
    with pytest.raises(sdtune.DataError) as caught:
        sdtune.load_image(tmp_path / "caf\udce9.png")
    error = caught.value
    assert str(error).startswith(f"{tmp_path}/caf\ufffd.png: cannot read: ") and repr(error.problems[0]) == f"<Problem {error}>"
    assert error.problems[0].where == f"{tmp_path}/caf\ufffd.png" and pickle.loads(pickle.dumps(error)).problems == error.problems


def test_a_folder_s_name_need_not_be_utf_8(tiny_sd1: Path, tmp_path: Path) -> None:
    """As text of os.fsdecode, as a path and as bytes it is one folder, here and in the program."""
    photos = tmp_path / "caf\udce9"
    shutil.copytree(PHOTOS, photos)
    configs = [sdtune.TrainConfig(**options(tiny_sd1, tmp_path / "run", images=form)) for form in (photos, str(photos), os.fsencode(photos))]
    for config in configs:
        assert config.images == str(photos) and config == configs[0] == pickle.loads(pickle.dumps(config))
        assert "caf\\udce9" in repr(config) and not sdtune.check(config)
        assert f"{tmp_path}/caf\ufffd<" in config._repr_html_()
    with pytest.raises(sdtune.ConfigError, match="caf\ufffd: the run was stopped at step 1"):
        sdtune.TrainResult(output=photos, model_path=None, checkpoint=None, step=1, model_step=0).pipeline()
    assert len(sdtune.doctor(configs[0], progress=False).photos) == 5
    assert sdtune.inspect(os.fsencode(photos), progress=False)["images"] == 5
    file, base = tmp_path / "caf\udce9.yaml", tmp_path / "bas\udce9"
    file.write_text("seed: 3\n")
    shutil.copytree(tiny_sd1, base)
    config = sdtune.TrainConfig.from_yaml(file, **options(base, tmp_path / "run"))
    assert config.origins()["seed"] == f"{file}:1" == pickle.loads(pickle.dumps(config)).origins()["seed"]
    assert f"# {tmp_path}/caf\ufffd.yaml:1" in config.to_yaml(), "a comment, which is UTF-8 as all of the file"
    assert sdtune.start(config).wait().step == 4
    assert sdtune.plan(config, savings=False)["run"]["model"].endswith("bas\ufffd")
    assert repr(sdtune.StableDiffusionPipeline.from_pretrained(base)).endswith("bas\ufffd>")


@pytest.mark.parametrize("cell", ["sdtune.TrainConfig(seed='x' + 'ä' * 60)", "sdtune.Generator().randn('x' + 'ä' * 60)"])
def test_a_long_value_is_cut_within_any_text(cell: str) -> None:
    """Also where the cut falls within a letter of several bytes."""
    with pytest.raises(sdtune.ConfigError, match="got .*xää"):
        eval(cell, {"sdtune": sdtune})  # noqa: S307  our own words
