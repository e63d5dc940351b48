"""`sdtune launch`: the ranks that it starts, what it does when one is lost, and what it leaves behind."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port
from program import ROOT, SDTUNE, run
from test_ranks import (
    WEIGHTS,
    base,  # noqa: F401 (a fixture)
    environment,
    photos,  # noqa: F401 (a fixture)
    rank_pids,
    torchrun,
    train_command,
    wait_for_steps,
)

STEPS = 40
LINE = re.compile(r"\[rank [01]\] .*|sdtune: launch: .*")


def training(base: Path, photos: Path, output: Path, *options: str) -> list[str]:  # noqa: F811
    """The words of a training of `STEPS` steps that saves its state every 5 steps."""
    return train_command(base, photos, output, "--max-train-steps", str(STEPS), "--seed", "3", "--checkpointing-steps", "5",
                         *options)[1:]


def launch(words: list[str], *options: str, ranks: int = 2) -> list[str]:
    """The command line of `sdtune launch`."""
    return [str(SDTUNE), "launch", "--nproc", str(ranks), *options, "--", *words]


@contextmanager
def started(command: list[str], **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A launcher that is ended whatever happens."""
    launcher = subprocess.Popen(command, env=environment(**variables), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield launcher
    finally:
        launcher.kill()
        launcher.communicate()


def digest(output: Path) -> str:
    return hashlib.sha256((output / WEIGHTS).read_bytes()).hexdigest()


def processes_of(output: Path) -> list[int]:
    """The processes, also ended ones that are still listed, whose command line names this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(output).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_until_gone(output: Path) -> None:
    deadline = time.monotonic() + 10
    while processes_of(output):
        assert time.monotonic() < deadline, "a process is left over"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def undisturbed(base: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: F811
    """The hash of the weights that two ranks under `launch` make."""
    output = tmp_path_factory.mktemp("undisturbed") / "run"
    done = subprocess.run(launch(training(base, photos, output)), env=environment(), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert f"[rank 0] {output / 'model'}\n" in done.stdout
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    assert [line for line in lines if not LINE.fullmatch(line)] == [], "a line without its rank"
    return digest(output)


def test_equal_to_torchrun_bit_for_bit(undisturbed: str, base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """The same training by torchrun; one with another seed is the mutant."""
    found = {}
    for seed in ("3", "4"):
        done = torchrun(2, [str(SDTUNE), *training(base, photos, tmp_path / seed, "--seed", seed)], timeout=200)
        assert done.returncode == 0, done.stderr
        found[seed] = digest(tmp_path / seed)
    assert found["3"] == undisturbed
    assert found["4"] != undisturbed


def test_equal_under_accelerate_launch(undisturbed: str, base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """The real `accelerate launch`, as its users start two GPUs; what it sets is torchrun's."""
    command = [str(ROOT / ".venv/bin/accelerate"), "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
               "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0", "--no_python",
               str(SDTUNE), *training(base, photos, tmp_path / "run")]
    done = subprocess.run(command, env=environment(HF_HOME=str(tmp_path)), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert digest(tmp_path / "run") == undisturbed


def kill_a_rank(launcher: subprocess.Popen[str], output: Path, rank: int, steps: int = 7) -> None:
    wait_for_steps(output, steps)
    os.kill(rank_pids(launcher.pid)[rank], signal.SIGKILL)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_rank_is_restarted_and_changes_no_bit(lost: int, undisturbed: str, base: Path, photos: Path,  # noqa: F811
                                                      tmp_path: Path) -> None:
    output = tmp_path / "run"
    with started(launch(training(base, photos, output))) as launcher:
        kill_a_rank(launcher, output, lost)
        _, errors = launcher.communicate(timeout=200)
    assert launcher.returncode == 0, errors
    assert re.search(rf"^sdtune: launch: rank {lost} was ended by signal 9 .*; restart 1 of 3$", errors, re.MULTILINE), errors
    attempts = json.loads((output / "run.json").read_text())["attempts"]
    assert len(attempts) == 2 and attempts[1]["first_step"] > 0, attempts
    assert digest(output) == undisturbed


def test_the_cause_is_returned_not_its_consequence(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """The survivor of a killed rank ends with 138; launch, which may not restart, with 137. An earlier run is cleared once."""
    output = tmp_path / "run"
    with started(launch(training(base, photos, output), "--max-restarts", "0")) as launcher:
        kill_a_rank(launcher, output, 1)
        _, errors = launcher.communicate(timeout=60)
    assert launcher.returncode == 137, errors
    assert re.search(r"\[rank 0\] sdtune: error: rank 1 \(.*was lost", errors), errors
    assert "no restart is left" in errors
    wait_until_gone(output)
    earlier = written_at(output)
    with started(launch(training(base, photos, output, "--overwrite"))) as launcher:
        while written_at(output) in (0, earlier) or steps_of(output) < 7:
            assert launcher.poll() is None, launcher.communicate()[1]
            time.sleep(0.05)
        os.kill(rank_pids(launcher.pid)[0], signal.SIGKILL)
        _, errors = launcher.communicate(timeout=200)
    assert launcher.returncode == 0, errors
    assert [attempt["first_step"] > 0 for attempt in attempts_of(output)] == [False, True]


def written_at(output: Path) -> int:
    """When the run's record was written, 0 where there is none."""
    record = output / "run.json"
    return record.stat().st_mtime_ns if record.exists() else 0


def attempts_of(output: Path) -> list[dict[str, int]]:
    try:
        return list(json.loads((output / "run.json").read_text())["attempts"])
    except (OSError, ValueError):
        return []


def steps_of(output: Path) -> int:
    metrics = output / "metrics.jsonl"
    return len(metrics.read_text().splitlines()) if metrics.exists() else 0


def test_a_rank_that_waits_is_stopped_when_another_fails(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """Rank 0 cannot listen on a port that is taken (exit 2), while rank 1 waits there for an answer."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with started(launch(training(base, photos, tmp_path / "run"), "--rendezvous", place, "--grace", "1")) as launcher:
            _, errors = launcher.communicate(timeout=60)
    assert launcher.returncode == 2, errors
    assert "sdtune: launch: rank 0 ended with exit code 2; this is not retried" in errors
    wait_until_gone(tmp_path / "run")


def test_a_rank_that_does_not_answer_is_killed(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """A stopped process takes no SIGTERM. The others end with 138, which is the code without a restart."""
    output = tmp_path / "run"
    words = [*training(base, photos, output), "--peer-timeout", "6"]
    with started(launch(words, "--max-restarts", "0", "--grace", "1")) as launcher:
        wait_for_steps(output, 3)
        os.kill(rank_pids(launcher.pid)[1], signal.SIGSTOP)
        _, errors = launcher.communicate(timeout=60)
    assert launcher.returncode == 138, errors
    assert "[rank 0] sdtune: error: rank 1" in errors
    wait_until_gone(output)


@pytest.mark.parametrize("number,code,to_all", [(signal.SIGTERM, 143, False), (signal.SIGINT, 130, False), (signal.SIGUSR1, 143, False),
                                                (signal.SIGTERM, 143, True)])
def test_a_signal_saves_the_state(number: signal.Signals, code: int, to_all: bool, undisturbed: str, base: Path,  # noqa: F811
                                  photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """No restart follows; the run goes on where it was stopped, and changes no bit. systemd and Slurm send a signal to each process
    of a job, so that a rank gets it from them and from launch: that is no second request."""
    output = tmp_path / "run"
    with started(launch(training(base, photos, output))) as launcher:
        wait_for_steps(output, 3)
        ranks = rank_pids(launcher.pid)
        assert len(ranks) == 2
        for rank in ranks if to_all else []:
            os.kill(rank, number)
        launcher.send_signal(number)
        _, errors = launcher.communicate(timeout=60)
    assert launcher.returncode == code, errors
    assert "restart" not in errors
    assert (output / "checkpoints" / f"step-{steps_of(output):08}" / "manifest.json").exists()
    wait_until_gone(output)
    words = training(base, photos, output, "--resume-from-checkpoint", "latest")
    done = subprocess.run(launch(words), env=environment(), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert digest(output) == undisturbed


def test_no_rank_outlives_a_killed_launch(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    output = tmp_path / "run"
    with started(launch([*training(base, photos, output), "--max-train-steps", "100000"])) as launcher:
        wait_for_steps(output, 3)
        ranks = rank_pids(launcher.pid)
        assert len(ranks) == 2
        launcher.kill()
        launcher.wait()
        wait_until_gone(output)


def test_two_machines(undisturbed: str, base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """A launch on each, one rank each; a rank that is killed is restarted on both."""
    output = tmp_path / "run"
    place = f"127.0.0.1:{free_port()}"
    machines = [launch(training(base, photos, output), "--nnodes", "2", "--node-rank", str(index), "--rendezvous", place, ranks=1)
                for index in range(2)]
    with started(machines[0]) as first, started(machines[1]) as second:
        wait_for_steps(output, 7)
        os.kill(rank_pids(second.pid)[0], signal.SIGKILL)
        errors = [launcher.communicate(timeout=200)[1] for launcher in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], errors
    assert "rank 0 ended with exit code 138; restart 1 of 3" in errors[0]
    assert "rank 1 was ended by signal 9" in errors[1]
    assert digest(output) == undisturbed


def test_an_ignored_sigchld_is_no_hindrance(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """A shell hands that down, and the kernel would drop how the ranks, and the command at their end, have ended."""
    words = launch(training(base, photos, tmp_path / "run", "--max-train-steps", "2", "--on-finish", "exit 9"))
    done = subprocess.run(["bash", "-c", "trap '' CHLD; exec \"$@\"", "bash", *words], env=environment(), capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert "on_finish: ended with exit code 9" in done.stderr


# name: (words behind `launch`, what the error says)
MISTAKES = {
    "no command": ([], "--: no command follows (allowed: train)"),
    "another command": (["--", "sample"], "--: cannot start this command (got sample; allowed: train)"),
    "machines without an address": (["--nnodes", "2", "--", "train", "--images", "."], "--rendezvous: is not given"),
    "address without a port": (["--rendezvous", "host", "--", "train", "--images", "."], "--rendezvous: is not HOST:PORT"),
    "machine beyond the others": (["--node-rank", "1", "--", "train", "--images", "."], "--node-rank: is not below"),
    "option of train": (["--", "train", "--images", ".", "--sead", "1"], "did you mean --seed?"),
    "word of launch": (["train", "--", "train", "--images", "."], "train: unexpected word"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_starts_no_rank(name: str) -> None:
    words, said = MISTAKES[name]
    done = run(["launch", *words])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and said in done.stderr, done.stderr
