"""report_to: what wandb, MLflow and trackio hold after a run, read back by their own packages; and what a run does when they fail."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from program import ROOT, SDTUNE, run
from training_reference import small_material

import sdtune

PYTHON = ROOT / ".venv" / "trackers" / "bin" / "python"
STEPS, PROJECT = 6, "portraits"
TRACKERS = ("wandb", "mlflow", "trackio")
# Of metrics.jsonl, what TensorBoard has too.
SCALARS = ("epoch", "loss", "loss_instance", "lr", "grad_norm", "images_per_s", "max_memory_bytes")


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return small_material(tmp_path_factory.mktemp("trackers"), photos=3)


@pytest.fixture(scope="module")
def python() -> Path:
    if not PYTHON.is_file():
        pytest.skip("there is no .venv/trackers; scripts/setup.sh --tests makes it")
    return PYTHON


def words(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu", "--seed", "4",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--max-train-steps", str(STEPS),
            "--checkpointing-steps", "2", "--report-images", "0", *options]


def places(folder: Path, python: Path) -> dict[str, str]:
    """Everything below `folder`, nothing on a network."""
    return {"SDTUNE_PYTHON": str(python), "WANDB_MODE": "offline", "WANDB_SILENT": "true", "MLFLOW_TRACKING_URI": f"file://{folder}/mlruns",
            "MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "TRACKIO_DIR": str(folder / "trackio"),
            "HF_HUB_OFFLINE": "1", "GIT_PYTHON_REFRESH": "quiet"}


def read_back(folder: Path, python: Path, project: str = PROJECT) -> dict[str, Any]:
    reader = Path(__file__).with_name("tracker_reader.py")
    found = subprocess.run([str(python), str(reader), str(folder), project], env={**os.environ, **places(folder, python)},
                           capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


def metrics_of(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


ALL = [word for name in TRACKERS for word in ("--report-to", name)]
VALIDATION = ["--validation-prompt", "a photo of sks person", "--validation-steps", "3", "--num-validation-images", "2",
              "--validation-inference-steps", "2"]


@pytest.fixture(scope="module")
def finished(material: tuple[Path, Path], python: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run of three steps to all three trackers, resumed from step 2 to step 6; with what they hold."""
    folder = tmp_path_factory.mktemp("finished")
    options = [*ALL, *VALIDATION, "--report-model", "--tracker-project-name", PROJECT, "--tracker-run-name", "me and you"]
    first = run(words(material, folder / "run", *options, "--max-train-steps", "3"), **places(folder, python))
    assert first.returncode == 0, first.stderr
    ids = json.loads((folder / "run" / "trackers.json").read_text())
    again = run(words(material, folder / "run", *options, "--resume-from-checkpoint", "latest", "--max-train-steps", str(STEPS)),
                **places(folder, python))
    assert again.returncode == 0, again.stderr
    assert "warning" not in first.stderr + again.stderr
    assert json.loads((folder / "run" / "trackers.json").read_text()) == ids and set(ids) == set(TRACKERS)
    return folder, read_back(folder, python)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_values_are_those_of_metrics_jsonl(tracker: str, finished: tuple[Path, dict[str, Any]]) -> None:
    """Each name, each step, each value as float64; one that is a millionth off is told from it."""
    folder, found = finished
    held: dict[tuple[str, int], list[float]] = {}
    for name, step, value in found[tracker]["scalars"]:
        held.setdefault((name, step), []).append(value)
    lines = metrics_of(folder / "run")
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    for line in lines:
        for name in SCALARS:
            values = held[(name, line["step"])]
            # What was done again stands there twice, except in wandb, which keeps the first; rates and times of it differ.
            assert line[name] in values or (tracker == "wandb" and name in ("images_per_s", "max_memory_bytes")), (name, line["step"])
            assert line[name] * 1.000001 + 1e-12 not in values


@pytest.mark.parametrize("tracker", TRACKERS)
def test_images_are_the_files_of_the_run(tracker: str, finished: tuple[Path, dict[str, Any]]) -> None:
    folder, found = finished
    files = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in (folder / "run" / "samples").rglob("*_seed-*.png")}
    assert len(files) == 6  # steps 0, 3 and 6, two each
    hashes = {entry[-1] if tracker == "mlflow" else entry[2] for entry in found[tracker]["images"]}
    assert hashes == set(files)
    if tracker != "mlflow":
        assert {entry[0] for entry in found[tracker]["images"]} == {"validation/0", "validation/1"}
        assert {entry[1] for entry in found[tracker]["images"]} == {0, 3, 6}
        assert all(re.fullmatch(r"a photo of sks person \(seed \d+\)", entry[3]) for entry in found[tracker]["images"])


@pytest.mark.parametrize("tracker", TRACKERS)
def test_options_are_those_of_config_yaml(tracker: str, finished: tuple[Path, dict[str, Any]]) -> None:
    folder, found = finished
    recorded = sdtune.TrainConfig.from_yaml(folder / "run" / "config.yaml").to_dict()
    held = found[tracker]["config"]
    first_values = {"max_train_steps": 3, "resume_from_checkpoint": ""}  # MLflow's parameters cannot be changed
    assert len(recorded) > 100
    for name, value in recorded.items():
        if name == "notify":
            continue  # a secret
        if tracker != "mlflow":
            assert held[name] == value, name
            continue
        value = first_values.get(name, value)
        assert held[name] == (value if isinstance(value, str) else json.dumps(value)), name
    if tracker == "mlflow":
        assert found["mlflow"]["tags"]["from_step_2.max_train_steps"] == str(STEPS)


def test_the_same_run_goes_on(finished: tuple[Path, dict[str, Any]]) -> None:
    """One run in each tracker, with the name and project that were given, ended well."""
    found = finished[1]
    assert len(found["wandb"]["ids"]) == 2 and len({tuple(entry) for entry in found["wandb"]["ids"]}) == 1
    assert found["wandb"]["ids"][0][:2] == [PROJECT, "me and you"] and found["wandb"]["exits"] == [0, 0]
    assert [entry[:2] + entry[3:] for entry in found["mlflow"]["runs"]] == [[PROJECT, "me and you", "FINISHED"]]
    assert found["trackio"]["runs"] == ["me and you"]


def test_the_model_arrives(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, found = finished
    model = folder / "run" / "model"
    files = {str(path.relative_to(model)): hashlib.sha256(path.read_bytes()).hexdigest() for path in model.rglob("*") if path.is_file()}
    assert len(files) > 5
    assert {name.removeprefix("model/"): sha for name, sha in found["mlflow"]["artifacts"]} == files
    assert found["wandb"]["artifacts"][-1] == ["model", sorted(files)]
    assert found["trackio"]["artifacts"] == [["me-and-you", "model", files]]


def test_a_run_without_trackers_has_the_same_bits(material: tuple[Path, Path], finished: tuple[Path, dict[str, Any]],
                                                  tmp_path: Path) -> None:
    """And starts no side process."""
    plain = run(words(material, tmp_path / "run", "--report-to", "none"))
    assert plain.returncode == 0, plain.stderr
    assert not (tmp_path / "run" / "trackers.json").exists() and not (tmp_path / "run" / "trackers.log").exists()
    assert not list((tmp_path / "run").glob("events.out.*"))
    losses = [[line["loss"] for line in metrics_of(output)] for output in (tmp_path / "run", finished[0] / "run")]
    assert losses[0][:3] == losses[1][:3]


def test_old_values_are_accepted(material: tuple[Path, Path], tmp_path: Path) -> None:
    """One word in a file of an earlier version, or null; a list; and `all` where no tracker is installed."""
    for text, wanted in (("report_to: tensorboard\n", ["tensorboard"]), ('report_to: "none"\n', ["none"]), ("report_to:\n", []),
                         ("report_to: [tensorboard, wandb]\n", ["tensorboard", "wandb"])):
        (tmp_path / "old.yaml").write_text(text)
        assert sdtune.TrainConfig.from_yaml(tmp_path / "old.yaml").report_to == wanted
    assert sdtune.TrainConfig().report_to == ["tensorboard"]
    assert sdtune.TrainConfig(report_to="none").report_to == ["none"]
    everything = run(words(material, tmp_path / "run", "--report-to", "all", "--max-train-steps", "1"), SDTUNE_PYTHON=str(plain_python(tmp_path)))
    assert everything.returncode == 0 and "warning" not in everything.stderr, everything.stderr
    assert list((tmp_path / "run").glob("events.out.*")) and not (tmp_path / "run" / "trackers.json").exists()


def plain_python(folder: Path) -> Path:
    """An interpreter that sees no packages."""
    script = folder / "plain_python"
    script.write_text(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" -I -S "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


@pytest.mark.parametrize("command", ["train", "check"])
def test_what_is_missing_at_the_start_ends_with_2(command: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    """One line a package: what, where, and what to install. Nothing is written."""
    lines = words(material, tmp_path / "run", "--report-to", "wandb", "--report-to", "mlflow")[1:]
    plain = plain_python(tmp_path)
    refused = run([command, *lines], SDTUNE_PYTHON=str(plain))
    assert refused.returncode == 2
    said = (refused.stderr if command == "train" else refused.stderr + refused.stdout)
    assert f"report_to: wandb is not installed in {plain}; {plain} -m pip install wandb" in said
    assert "pip install mlflow-skinny" in said
    assert not (tmp_path / "run").exists()
    broken = run([command, *lines], SDTUNE_PYTHON=str(tmp_path / "nowhere"))
    assert broken.returncode == 2 and "nowhere cannot be started" in broken.stderr + broken.stdout
    no_python = run([command, *lines], SDTUNE_PYTHON="/bin/true")
    assert no_python.returncode == 2 and "does not run the script" in no_python.stderr + no_python.stdout
    both = run([command, *lines, "--report-to", "none"])
    assert both.returncode == 2 and "none is given together with other trackers" in both.stderr + both.stdout
    typo = run([command, *lines, "--report-to", "wandbb"])
    assert typo.returncode == 2 and "nearest is wandb" in typo.stderr + typo.stdout


def package(folder: Path, body: str) -> Path:
    """An interpreter whose only tracker is a module `wandb` with this body."""
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "wandb.py").write_text(body)
    script = folder / "python_with_wandb"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{folder / "site"}" exec "{os.path.realpath(sys.executable)}" -S "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


# As much of wandb as is used; `log` and `finish` are replaced by the tests.
FAKE = """
import json, os, sys, time
class Config:
    def update(self, values, allow_val_change): pass
class Run:
    id = "abc"
    config = Config()
    def log(self, values, step): {log}
    def finish(self, exit_code): {finish}
    def log_artifact(self, artifact): pass
def Settings(**_): return None
def init(**_): {init}
"""


@pytest.mark.parametrize(("init", "log", "finish", "said"), [
    ("raise RuntimeError('no key')", "pass", "pass", "report_to: wandb: cannot start: RuntimeError: no key"),
    ("return Run()", "raise OSError(28, 'No space left on device')", "pass", "report_to: wandb: OSError: [Errno 28] No space left"),
    ("return Run()", "os._exit(9)", "pass", "events were not delivered"),
    ("return Run()", "pass", "time.sleep(600)", "1 of 8 events were not delivered within tracker_timeout"),
    ("return Run()", "time.sleep(600)", "pass", "of 8 events were not delivered within tracker_timeout"),
])
def test_a_failure_later_is_a_warning(init: str, log: str, finish: str, said: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    """A package that raises, a process that dies, a server that does not answer: the run ends with 0 and the model, and says so once."""
    fake = package(tmp_path, FAKE.format(init=init, log=log, finish=finish))
    ended = run(words(material, tmp_path / "run", "--report-to", "wandb", "--tracker-timeout", "5"), SDTUNE_PYTHON=str(fake))
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count(said) == 1, ended.stderr
    assert len(metrics_of(tmp_path / "run")) == STEPS and (tmp_path / "run" / "model" / "model_index.json").is_file()


def side_process(folder: Path) -> tuple[socket.socket, subprocess.Popen[str]]:
    """A side process that has begun a run, with the run's end of its socket; its package writes the exit code into `told`."""
    told = folder / "told"
    fake = package(folder, FAKE.format(init="return Run()", log="pass", finish=f"open({str(told)!r}, 'w').write(f'exit {{exit_code}}')"))
    ours, theirs = socket.socketpair()
    script = ROOT / "scripts" / "trackers" / "tracker_process.py"
    process = subprocess.Popen(["bash", "-c", f"exec 3<&{theirs.fileno()}; exec {fake} {script}"], pass_fds=[theirs.fileno()],
                               stderr=subprocess.PIPE, text=True)
    theirs.close()
    start = {"type": "start", "trackers": ["wandb"], "optional": False, "ids": {}, "folder": str(folder), "project": "p", "name": "n",
             "config": {}, "first_step": 1}
    ours.sendall(json.dumps(start).encode() + b"\n")
    assert select.select([ours], [], [], 60)[0], "it has replied"
    return ours, process


def test_a_run_that_is_killed_with_unread_replies_ends_as_killed(tmp_path: Path) -> None:
    """The socket is reset then, and not merely closed."""
    ours, process = side_process(tmp_path)
    ours.close()
    errors = process.communicate(timeout=60)[1]
    assert (tmp_path / "told").is_file() and (tmp_path / "told").read_text() == "exit 137", errors


def test_a_signal_to_every_process_of_a_job_leaves_the_end_to_the_run(tmp_path: Path) -> None:
    """Slurm and systemd send SIGTERM to the side process as well, while the run saves its state."""
    ours, process = side_process(tmp_path)
    process.terminate()
    try:
        ours.sendall(json.dumps({"type": "end", "code": 143, "model": ""}).encode() + b"\n")
    except BrokenPipeError:
        pass  # it has ended already, as the next lines say
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and (tmp_path / "told").read_text() == "exit 143", errors


def test_ctrl_c_ends_the_run_first(material: tuple[Path, Path], tmp_path: Path) -> None:
    """The side process has a session of its own, gets the rest and the end with code 130; a killed run's ends as killed."""
    told = tmp_path / "told"
    fake = package(tmp_path, FAKE.format(init="return Run()", log=f"open({str(told)!r}, 'a').write(f'{{step}}\\n')",
                                         finish=f"open({str(told)!r}, 'a').write(f'exit {{exit_code}}\\n')"))
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, 137)):
        told.unlink(missing_ok=True)
        output = tmp_path / f"run{code}"
        process = subprocess.Popen([str(SDTUNE), *words(material, output, "--report-to", "wandb", "--max-train-steps", "1000000",
                                                        "--checkpointing-steps", "1000000")],
                                   stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   env={**os.environ, "OMP_NUM_THREADS": "1", "SDTUNE_PYTHON": str(fake)})
        while not told.exists() or len(told.read_text().splitlines()) < 3:
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, number)
        assert process.wait(120) == (code if number == signal.SIGINT else -number)
        while not told.read_text().endswith(f"exit {code}\n"):
            time.sleep(0.02)
        steps = [int(line) for line in told.read_text().splitlines()[:-1]]
        if number == signal.SIGINT:
            assert steps == [line["step"] for line in metrics_of(output)]
            assert "not delivered" not in process.stderr.read()
        else:
            assert steps == list(range(1, len(steps) + 1))


def test_the_first_of_two_ranks_reports(material: tuple[Path, Path], tmp_path: Path) -> None:
    """One side process for all ranks; each step arrives once."""
    told = tmp_path / "told"
    fake = package(tmp_path, FAKE.format(init=f"open({str(told)!r}, 'a').write('init\\n'); return Run()",
                                         log=f"open({str(told)!r}, 'a').write(f'{{step}}\\n')",
                                         finish=f"open({str(told)!r}, 'a').write(f'exit {{exit_code}}\\n')"))
    ended = run(["launch", "--nproc", "2", "--", *words(material, tmp_path / "run", "--report-to", "wandb", "--train-batch-size", "1")],
                SDTUNE_PYTHON=str(fake))
    assert ended.returncode == 0, ended.stderr
    assert told.read_text().split("\n") == ["init", *map(str, range(1, STEPS + 1)), "exit 0", ""]
    assert json.loads((tmp_path / "run" / "trackers.json").read_text()) == {"wandb": "abc"}


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    """JSON has none, so that they come as null: the package gets NaN. Half a line of a killed run is left out."""
    told = tmp_path / "told"
    fake = package(tmp_path, FAKE.format(init="return Run()", log=f"open({str(told)!r}, 'a').write(repr(values))",
                                         finish=f"open({str(told)!r}, 'a').write(f' exit {{exit_code}}')"))
    ours, theirs = socket.socketpair()
    begin_at_3 = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.execv(sys.argv[2], sys.argv[2:])"
    process = subprocess.Popen([sys.executable, "-c", begin_at_3, str(theirs.fileno()), str(fake),
                                str(ROOT / "scripts" / "trackers" / "tracker_process.py")], pass_fds=(theirs.fileno(),))
    theirs.close()
    begin = {"type": "start", "trackers": ["wandb"], "optional": False, "project": "", "name": "a", "folder": str(tmp_path), "config": {},
             "ids": {}, "first_step": 0, "attempt": 1}
    lines = [begin, {"type": "scalars", "step": 1, "time": 0.0, "values": {"loss": None, "lr": 0.5}}]
    ours.sendall("".join(json.dumps(line) + "\n" for line in lines).encode() + b'{"type": "sca')
    ours.shutdown(socket.SHUT_WR)
    replies = [json.loads(line) for line in ours.makefile()]
    assert process.wait(60) == 0
    assert replies == [{"id": ["wandb", "abc"]}, {"done": 1}, {"done": 2}]
    assert told.read_text() == "{'loss': nan, 'lr': 0.5} exit 137"


def test_the_module_uses_its_own_interpreter(material: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SDTUNE_PYTHON: sys.executable is named in the refusal."""
    monkeypatch.delenv("SDTUNE_PYTHON", raising=False)
    base, photos = material
    config = sdtune.TrainConfig(base=str(base), images=str(photos), output=str(tmp_path / "run"), device="cpu", report_to=["wandb"])
    (problem,) = [problem for problem in sdtune.check(config) if problem.where == "report_to"]
    assert sys.executable in problem.what and "pip install wandb" in problem.hint


def test_the_documented_names(finished: tuple[Path, dict[str, Any]]) -> None:
    """config.yaml of a run keeps the options of trackers, so that a run from it reports to the same place."""
    recorded = yaml.safe_load((finished[0] / "run" / "config.yaml").read_text())
    assert recorded["report_to"] == list(TRACKERS) and recorded["report_model"] is True
    assert (recorded["tracker_project_name"], recorded["tracker_run_name"], recorded["tracker_timeout"]) == (PROJECT, "me and you", 120)


def test_the_cost_that_the_page_states_is_the_measured_one() -> None:
    report = json.loads((ROOT / "docs/measurements/trackers_cpu.json").read_text())
    page = " ".join((ROOT / "docs/trackers.md").read_text().split())
    assert report["machine"]["cpu"] in page
    assert [row["mode"] for row in report["rows"]] == ["none", "wandb", "all three"]
    for found in (*(row["of_none"]["cpu_ms"] for row in report["rows"][1:]), report["of_itself"]["cpu_ms"]):
        assert f"{min(found):.3f} to {max(found):.3f}" in page
