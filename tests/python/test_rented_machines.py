"""A run on a rented machine: a dropped connection, a budget, a command at the end, and the ledger of attempts."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from program import SDTUNE, run
from safetensors.torch import load_file
from test_ranks import rank_pids
from tiny_models import make_pipeline
from training_reference import write_base, write_photos

ENDLESS = ["--max-train-steps", "1000000", "--checkpointing-steps", "1000000"]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("rented")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base")
    return base, write_photos(folder / "photos", 3, seed=0)


def words(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--report-to", "none", *options]


def lines_of(output: Path) -> list[dict]:
    log = output / "metrics.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def wait_for(process: subprocess.Popen, is_there: Callable[[], bool]) -> None:
    """Returns when that is so; fails when the process has ended before."""
    while not is_there():
        assert process.poll() is None, "it ended too early"
        time.sleep(0.01)


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([str(SDTUNE), *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1"})


def attempts_of(output: Path) -> list[dict]:
    return json.loads((output / "run.json").read_text())["attempts"]


class Terminal:
    """A process that leads the session of a terminal of its own, as a login's shell does."""

    def __init__(self, command: list[str], ignore: bool = False) -> None:
        self.master, slave = pty.openpty()

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGHUP, signal.SIG_IGN if ignore else signal.SIG_DFL)

        self.process = subprocess.Popen([str(SDTUNE), *command], stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True, preexec_fn=take_terminal,
                                        env={**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm"})
        os.close(slave)
        os.set_blocking(self.master, False)

    def read(self) -> bytes:
        """What was printed since; nothing while nothing is."""
        try:
            return os.read(self.master, 65536)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self.master)


@pytest.mark.parametrize(("launched", "ignore"), [(False, False), (False, True), (True, False)],
                         ids=["train", "train that ignores the signal", "launch"])
def test_a_closed_terminal_ends_nothing(launched: bool, ignore: bool, material: tuple[Path, Path], tmp_path: Path) -> None:
    """With the signal of a dropped connection, and where only every write fails."""
    output = tmp_path / "runs" / "me"
    command = words(material, output, "--max-train-steps", "150", "--checkpointing-steps", "100")
    terminal = Terminal(["launch", "--nproc", "1", "--", *command] if launched else command, ignore)
    seen = b""

    def has_stepped() -> bool:
        nonlocal seen
        seen += terminal.read()
        return len(lines_of(output)) >= 5

    wait_for(terminal.process, has_stepped)
    assert b"model " in seen and not (output / "train.log").exists()
    assert len(lines_of(output)) < 150, "it was over before the terminal was"
    terminal.close()
    assert terminal.process.wait(timeout=120) == 0
    log = (output / "train.log").read_text()
    assert "done after step 150" in log and log.count("\r") <= 1  # of a line that was under way
    assert any(line.endswith(str(output / "model")) for line in log.splitlines()[-2:])
    assert [line["step"] for line in lines_of(output)] == list(range(1, 151))


def test_a_spent_budget_leaves_a_checkpoint_and_a_model(material: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "run"
    ended = run(words(material, output, *ENDLESS, "--max-hours", "0.002"))
    assert ended.returncode == 0, ended.stderr
    done = lines_of(output)[-1]["step"]
    assert 0 < done < 1000000
    assert f"done after step {done}, " in ended.stderr.splitlines()[-1]
    assert re.search(r"max_hours is spent: 0\.00\d+ of 0\.002 hours, --resume-from-checkpoint latest resumes$", ended.stderr)
    assert ended.stdout.splitlines()[-1] == str(output / "model")
    [attempt] = attempts_of(output)
    assert (attempt["exit_code"], attempt["last_step"], attempt["redone_steps"]) == (0, done, 0)
    assert attempt["cause"].startswith("max_hours is spent") and attempt["ended"] >= attempt["started"]
    # The model is that of the checkpoint's step, and can be used.
    trained = load_file(output / f"checkpoints/step-{done:08d}/weights.safetensors")
    exported = load_file(output / "model/unet/diffusion_pytorch_model.safetensors")
    assert all(trained["unet." + name].equal(value) for name, value in exported.items())
    image = tmp_path / "image.png"
    assert run(["sample", "--model", str(output / "model"), "--prompt", "a", "--steps", "1", "--device", "cpu",
                "--output", str(image)]).returncode == 0
    # What is over stays over, at once (half of it, since a run ends a little early, to have time for its checkpoint, and what that
    # leaves may be trained for); with more of it the run goes on.
    again = run(words(material, output, *ENDLESS, "--max-hours", "0.001", "--resume-from-checkpoint", "latest"))
    assert again.returncode == 0 and lines_of(output)[-1]["step"] == done, again.stderr
    more = run(words(material, output, "--max-train-steps", str(done + 2), "--max-hours", "1", "--resume-from-checkpoint",
                     "latest"))
    assert more.returncode == 0 and lines_of(output)[-1]["step"] == done + 2, more.stderr
    assert [attempt["cause"] for attempt in attempts_of(output)][-1] == "all steps are done"
    assert [attempt["attempt"] for attempt in attempts_of(output)] == [1, 2, 3]


def test_ranks_agree_on_a_spent_budget(material: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "run"
    ended = run(["launch", "--nproc", "2", "--", *words(material, output, *ENDLESS, "--max-cost", "0.008", "--price-per-hour",
                                                        "2", "--on-finish", f"echo \"$SDTUNE_CAUSE\" >> '{tmp_path}/told'")])
    assert ended.returncode == 0, ended.stderr
    done = lines_of(output)[-1]["step"]
    assert (output / f"checkpoints/step-{done:08d}/manifest.json").exists() and (output / "model/model_index.json").exists()
    told = (tmp_path / "told").read_text().splitlines()
    assert len(told) == 1 and re.fullmatch(r"max_cost is spent: 0\.0[\d]+ of 0\.008 at 2 an hour", told[0])


def test_money_needs_a_price(material: tuple[Path, Path], tmp_path: Path) -> None:
    for price in ([], ["--price-per-hour", "0"]):
        ended = run(words(material, tmp_path / "run", "--max-cost", "5", *price))
        assert ended.returncode == 2
        assert ended.stderr.startswith("sdtune: error: max_cost: needs the price of the machine") and not (tmp_path / "run").exists()


@pytest.mark.parametrize(("options", "code", "cause"), [
    (["--max-train-steps", "2"], 0, "all steps are done"),
    (["--max-train-steps", "2", "--base", "nowhere"], 2, "nowhere: there is no such folder"),
    (["--max-train-steps", "2", "--resume-from-checkpoint", "latest"], 3, ""),
    (["--max-train-steps", "many"], 2, "--max-train-steps: must be an integer"),
    (["--max-train-steps", "2", "--resume-from-checkpoint"], 2, "--resume-from-checkpoint: has no value"),
])
@pytest.mark.parametrize("launcher", [[], ["launch", "--nproc", "1", "--"]], ids=["train", "launch"])
def test_every_end_is_told(launcher: list[str], options: list[str], code: int, cause: str, material: tuple[Path, Path],
                           tmp_path: Path) -> None:
    told, output = tmp_path / "told", tmp_path / "run"
    command = f"printf '%s\\n%s\\n%s\\n' \"$SDTUNE_EXIT_CODE\" \"$SDTUNE_RUN\" \"$SDTUNE_CAUSE\" >> '{told}'; exit 9"
    ended = run([*launcher, *words(material, output, "--on-finish", command, *options)])
    assert ended.returncode == code, ended.stderr
    given, folder, why, *more = told.read_text().splitlines()
    assert (given, folder, more) == (str(code), str(output), []) and cause in why
    assert "warning: on_finish: ended with exit code 9" in ended.stderr


def test_launch_tells_what_it_refuses_on_the_first_machine_alone(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Its own options too: there is no rank that could."""
    told = tmp_path / "told"
    command = words(material, tmp_path / "run", "--on-finish", f"echo $SDTUNE_EXIT_CODE >> '{told}'")
    for number in ("1", "0"):
        refused = run(["launch", "--nnodes", "2", "--node-rank", number, "--", *command])
        assert refused.returncode == 2 and "--rendezvous: is not given" in refused.stderr
        assert told.exists() == (number == "0")
    assert told.read_text() == "2\n"


@contextmanager
def two_ranks(errors: Path, command: list[str], *options: str) -> Iterator[subprocess.Popen[str]]:
    """`sdtune launch`, ended whatever happens; what it prints is in `errors`."""
    with errors.open("w") as file:
        launcher = subprocess.Popen([str(SDTUNE), "launch", "--nproc", "2", *options, "--", *command], stdout=file, stderr=file,
                                    text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        yield launcher
    finally:
        launcher.kill()
        launcher.wait()


@pytest.mark.parametrize(("restarts", "code", "told"), [(3, 0, "0"), (0, 137, "138")], ids=["restarted", "the last attempt"])
def test_a_restarted_attempt_is_no_end(restarts: int, code: int, told: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    """A rank is killed, and rank 0 ends with 138: its command waits for the attempt that no other one follows."""
    output, errors = tmp_path / "run", tmp_path / "errors"
    command = words(material, output, "--max-train-steps", "40", "--checkpointing-steps", "5",
                    "--on-finish", f"echo $SDTUNE_EXIT_CODE >> '{tmp_path}/told'")
    with two_ranks(errors, command, "--max-restarts", str(restarts)) as launcher:
        wait_for(launcher, lambda: len(lines_of(output)) >= 7)
        os.kill(rank_pids(launcher.pid)[1], signal.SIGKILL)
        assert launcher.wait(timeout=200) == code, errors.read_text()
    assert ("restart 1 of 3" in errors.read_text()) == (restarts == 3)
    assert (tmp_path / "told").read_text() == f"{told}\n"


def test_launch_tells_the_end_where_no_restart_comes(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Rank 0 has left its command to a restart, when a signal asks for the stop."""
    output, errors = tmp_path / "run", tmp_path / "errors"
    command = words(material, output, *ENDLESS, "--peer-timeout", "6",
                    "--on-finish", f"echo $SDTUNE_EXIT_CODE \"$SDTUNE_CAUSE\" >> '{tmp_path}/told'")
    with two_ranks(errors, command, "--grace", "1") as launcher:
        wait_for(launcher, lambda: len(lines_of(output)) >= 3)
        os.kill(rank_pids(launcher.pid)[1], signal.SIGSTOP)
        wait_for(launcher, lambda: "the other ranks are stopped" in errors.read_text())
        launcher.terminate()
        assert launcher.wait(timeout=60) == 138, errors.read_text()
    assert (tmp_path / "told").read_text() == "138 launch: rank 0 ended with exit code 138\n"


def test_a_rank_that_launch_stops_ends_no_run(material: tuple[Path, Path], tmp_path: Path) -> None:
    """While rank 0 generates class images it notices no lost rank, so that launch stops it, and restarts both."""
    output, errors = tmp_path / "run", tmp_path / "errors"
    command = words(material, output, "--max-train-steps", "1", "--with-prior-preservation=true", "--num-class-images", "20000",
                    "--sample-batch-size", "1", "--on-finish", f"echo $SDTUNE_EXIT_CODE >> '{tmp_path}/told'")

    def generated() -> int:
        return len(list((output / "class_images").glob("*.png")))

    with two_ranks(errors, command) as launcher:
        wait_for(launcher, lambda: generated() >= 2)
        os.kill(rank_pids(launcher.pid)[1], signal.SIGKILL)
        wait_for(launcher, lambda: "restart 1 of 3" in errors.read_text())
        before = generated()
        wait_for(launcher, lambda: generated() > before)
        launcher.terminate()
        assert launcher.wait(timeout=60) == 143, errors.read_text()
    assert (tmp_path / "told").read_text() == "143\n"


def test_the_ledger_counts_what_a_kill_lost(material: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "run"
    command = words(material, output, "--checkpointing-steps", "10", "--max-train-steps", "1000000")
    killed = start(command)
    wait_for(killed, lambda: any(line["step"] % 10 == 5 and line["step"] > 10 for line in lines_of(output)[-1:]))
    killed.kill()
    killed.communicate()
    before = lines_of(output)
    saved = max(int(path.name[5:]) for path in (output / "checkpoints").iterdir() if (path / "manifest.json").exists())
    stopped = start([*command, "--resume-from-checkpoint", "latest"])
    wait_for(stopped, lambda: lines_of(output)[-1].get("attempt") == 2)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=60)
    assert stopped.returncode == 143
    first, second = attempts_of(output)
    assert (first["last_step"], first["ended"]) == (before[-1]["step"], int(before[-1]["time"]))
    assert first["redone_steps"] == before[-1]["step"] - saved and first["exit_code"] is None
    assert first["cause"] == "not known: it was killed, or the machine was lost"
    assert (second["first_step"], second["cause"], second["exit_code"]) == (saved, "SIGTERM", 143)
    assert second["redone_steps"] == 0 and second["last_step"] == lines_of(output)[-1]["step"]
