"""Ranks of several machines without a shared disk: each has base and photos in a folder of its own, and rank 0 alone writes the run."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port
from program import SDTUNE
from test_ranks import WEIGHTS, environment, photos, start_rank, wait_for_steps  # noqa: F401 (photos is a fixture)

STEPS = 6


def words(*options: str, steps: int = STEPS, prior: bool = False) -> list[str]:
    """The same on every machine: each finds its own files in its working directory."""
    return ["train", "--images", "photos", "--base", "./base", "--output", "run", "--device", "cpu", "--resolution", "32",
            f"--with-prior-preservation={str(prior).lower()}", "--train-text-encoder=false", "--max-train-steps", str(steps),
            "--checkpointing-steps", "2", "--train-batch-size", "1", "--peer-timeout", "60", "--start-timeout", "60", *options]


@pytest.fixture(scope="module")
def files(tiny_sd1: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """What a machine has before a run."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copytree(tiny_sd1, folder / "base")
    shutil.copytree(photos, folder / "photos")
    return folder


def machines(files: Path, folder: Path, count: int = 2) -> list[Path]:
    """The disks of machines that hold no run yet."""
    return [Path(shutil.copytree(files, folder / f"machine{index}")) for index in range(count)]


def run_ranks(disks: list[Path], *options: list[str]) -> list[str]:
    """A rank on each, which must end well; what each printed to stderr. options: of each rank, or the same of all."""
    port = free_port()
    each = options if len(options) > 1 else [options[0]] * len(disks)
    ranks = [start_rank(rank, len(disks), port, [str(SDTUNE), *each[rank]], disk) for rank, disk in enumerate(disks)]
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * len(disks), errors
    return errors


def checkpoints(disk: Path) -> list[Path]:
    return sorted((disk / "run/checkpoints").iterdir())


@pytest.fixture(scope="module")
def whole(files: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The weights of an undisturbed run of two ranks."""
    disks = machines(files, tmp_path_factory.mktemp("whole"))
    run_ranks(disks, words())
    return weights(disks[0])


@pytest.fixture(scope="module")
def half(files: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two machines after five of the six steps: rank 0's has the checkpoints of steps 2 and 4."""
    disks = machines(files, tmp_path_factory.mktemp("half"))
    run_ranks(disks, words(steps=5))
    assert checkpoints(disks[0]) and not (disks[1] / "run/checkpoints").exists()
    return disks


def copies(disks: list[Path], folder: Path) -> list[Path]:
    return [Path(shutil.copytree(disk, folder / disk.name)) for disk in disks]


def weights(disk: Path) -> bytes:
    return (disk / "run" / WEIGHTS).read_bytes()


@pytest.mark.parametrize("given", ["latest", "auto", "run/checkpoints/step-00000004"])
def test_a_run_resumes_from_the_first_ranks_disk(given: str, half: list[Path], whole: bytes, tmp_path: Path) -> None:
    """Byte-equal to the undisturbed run, and nothing of the checkpoint stays on the other disk."""
    disks = copies(half, tmp_path)
    run_ranks(disks, words("--resume-from-checkpoint", given))
    assert weights(disks[0]) == whole
    assert json.loads((disks[0] / "run/run.json").read_text())["attempts"][-1]["first_step"] == 4
    assert [path.name for path in (disks[1] / "run").rglob("*.safetensors")] == []


def test_two_ranks_of_a_machine_receive_one_copy(files: Path, tmp_path: Path) -> None:
    """A run of one rank goes on as three, two of them on another machine: its disk has the checkpoint once, for both."""
    disks = machines(files, tmp_path)
    run_ranks(disks[:1], words("--gradient-accumulation-steps", "3", steps=3))
    run_ranks([disks[0], disks[1], disks[1]], words("--resume-from-checkpoint", "auto", steps=4))
    assert json.loads((disks[0] / "run/run.json").read_text())["attempts"][-1]["first_step"] == 2
    assert [path.name for path in (disks[1] / "run").rglob("*.safetensors")] == []


@pytest.mark.parametrize("what", ["older", "other", "damaged"])
def test_a_stale_checkpoint_gives_way_to_the_first_ranks(what: str, half: list[Path], whole: bytes, files: Path,
                                                         tmp_path: Path) -> None:
    """A machine that was rank 0 of another run, or of this one before, still has checkpoints: the first rank's count."""
    disks = copies(half, tmp_path)
    shutil.copytree(disks[0] / "run/checkpoints", disks[1] / "run/checkpoints")
    if what == "older":
        shutil.rmtree(checkpoints(disks[1])[-1])
    elif what == "other":
        others = machines(files, tmp_path / "others")
        run_ranks(others, words("--seed", "9", steps=5))
        shutil.rmtree(disks[1] / "run/checkpoints")
        shutil.copytree(others[0] / "run/checkpoints", disks[1] / "run/checkpoints")
    else:
        weight = checkpoints(disks[1])[-1] / "weights.safetensors"
        data = bytearray(weight.read_bytes())
        data[-4] ^= 1
        weight.write_bytes(bytes(data))
    errors = run_ranks(disks, words("--resume-from-checkpoint", "latest"))
    assert weights(disks[0]) == whole
    said = re.search(r"rank 1 \(.*has .*checkpoint.*rank 0", errors[0])
    assert bool(said) == (what != "damaged"), errors


def test_a_newer_checkpoint_elsewhere_is_named(half: list[Path], tmp_path: Path) -> None:
    """The machines changed their numbers: the run starts where rank 0 stands, and says what it leaves behind."""
    disks = copies(half, tmp_path)[::-1]
    errors = run_ranks(disks, words("--resume-from-checkpoint", "auto", steps=2))
    assert re.search(r"rank 1 \(.*\).*has a checkpoint of step 4.*starts? fresh", errors[0]), errors


def test_the_first_rank_decides_on_overwriting_and_resuming(half: list[Path], whole: bytes, tmp_path: Path) -> None:
    """A launcher takes these options from what its own disk holds, so they may differ between machines."""
    disks = copies(half, tmp_path)
    resume = words("--resume-from-checkpoint", "auto")
    run_ranks(disks, resume, words("--overwrite"))
    assert weights(disks[0]) == whole
    disks = copies(half, tmp_path / "fresh")
    run_ranks(disks, words("--overwrite"), resume)
    assert weights(disks[0]) == whole
    assert json.loads((disks[0] / "run/run.json").read_text())["attempts"][-1]["first_step"] == 0


def test_class_images_reach_every_disk(files: Path, tmp_path: Path) -> None:
    """Each rank generates its share into its own folder. The bits are those of a folder that all share."""
    options = words("--num-class-images", "5", "--class-num-inference-steps", "2", "--class-prompt", "a dog", prior=True, steps=2)
    shared = machines(files, tmp_path / "shared", 1)[0]
    run_ranks([shared, shared], options)
    disks = machines(files, tmp_path / "own")
    began = time.monotonic()
    run_ranks(disks, options)
    assert time.monotonic() - began < 60, "it waited for files that never come"
    assert weights(disks[0]) == weights(shared)
    names = {path.name: path.read_bytes() for path in (shared / "run/class_images").rglob("*.png")}
    assert len(names) == 5
    for disk in disks:
        assert {path.name: path.read_bytes() for path in (disk / "run/class_images").rglob("*.png")} == names


def test_a_photo_of_the_users_is_never_replaced(files: Path, tmp_path: Path) -> None:
    """Own class images that differ under one name are refused; those that one disk lacks are sent."""
    options = words("--num-class-images", "2", "--class-data-dir", "class", "--class-prompt", "a dog", prior=True, steps=2)
    disks = machines(files, tmp_path)
    for disk in disks:
        (disk / "class").mkdir()
    for index in range(2):
        shutil.copy(files / f"photos/{index}.png", disks[0] / f"class/{index}.png")
    run_ranks(disks, options)
    assert (disks[1] / "class/1.png").read_bytes() == (files / "photos/1.png").read_bytes()
    shutil.copy(files / "photos/4.png", disks[1] / "class/1.png")
    port = free_port()
    ranks = [start_rank(rank, 2, port, [str(SDTUNE), *options, "--overwrite"], disk) for rank, disk in enumerate(disks)]
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [2, 2], errors
    assert all(re.search(r"1\.png: rank 1 \(.*has another file of this name", text) for text in errors), errors
    assert (disks[1] / "class/1.png").read_bytes() == (files / "photos/4.png").read_bytes()


@contextmanager
def ended(*processes: subprocess.Popen[str]) -> Iterator[None]:
    """Whatever happens, none of them is left."""
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_signal_ends_a_rank_that_waits_for_the_others(files: Path, tmp_path: Path) -> None:
    """Rank 1 never comes."""
    disk = machines(files, tmp_path, 1)[0]
    port = free_port()
    rank = start_rank(0, 2, port, [str(SDTUNE), *words()], disk)
    with ended(rank):
        time.sleep(4)
        assert rank.poll() is None
        rank.send_signal(signal.SIGTERM)
        _, errors = rank.communicate(timeout=15)
    assert rank.returncode == 143, errors


def test_a_signal_to_all_before_the_first_step_loses_no_rank(files: Path, tmp_path: Path) -> None:
    """Rank 0 generates the one class image, and stops at once; rank 1 waits for it, and must not take its end for a loss."""
    disks = machines(files, tmp_path)
    command = [str(SDTUNE), *words("--num-class-images", "1", "--class-num-inference-steps", "500", "--class-prompt", "a dog", prior=True)]
    port = free_port()
    ranks = [start_rank(rank, 2, port, command, disk) for rank, disk in enumerate(disks)]
    with ended(*ranks):
        deadline = time.monotonic() + 60
        while not (disks[0] / "run/class_images").exists():
            assert time.monotonic() < deadline, "nothing is generated"
            time.sleep(0.02)
        for rank in ranks:
            rank.send_signal(signal.SIGTERM)
        errors = [rank.communicate(timeout=40)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [143, 143], errors
    assert not any("sdtune: error" in text for text in errors), errors
    assert not any((disk / "run/last_error.json").exists() for disk in disks)


def test_a_replacement_of_a_dead_rank_is_told_to_try_again(files: Path, tmp_path: Path) -> None:
    """Rank 1 is stopped, as on a machine that is gone, and another process comes as rank 1: 138, and rank 0 ends soon too."""
    disks = machines(files, tmp_path)
    port = free_port()
    command = [str(SDTUNE), *words(steps=100000)]
    ranks = [start_rank(rank, 2, port, command, disk) for rank, disk in enumerate(disks)]
    with ended(*ranks):
        wait_for_steps(disks[0] / "run", 2)
        ranks[1].send_signal(signal.SIGSTOP)
        another = start_rank(1, 2, port, command, disks[1])
        with ended(another):
            _, errors = another.communicate(timeout=40)
            assert another.returncode == 138, errors
            assert re.search(r"rank 1 \(.*shows no life", errors), errors
            _, errors = ranks[0].communicate(timeout=20)  # peer_timeout is 60 s
            assert ranks[0].returncode == 138, errors


def test_two_living_processes_of_one_rank_are_a_mistake(files: Path, tmp_path: Path) -> None:
    """The one that comes later is refused, and the run goes on."""
    disks = machines(files, tmp_path)
    port = free_port()
    command = [str(SDTUNE), *words(steps=100000)]
    first = start_rank(0, 3, port, command, disks[0])
    second = start_rank(1, 3, port, command, disks[1])
    with ended(first, second):
        time.sleep(5)  # they wait for rank 2
        another = start_rank(1, 3, port, command, disks[1])
        with ended(another):
            _, errors = another.communicate(timeout=40)
        assert another.returncode == 2, errors
        assert "two processes are rank 1" in errors
        assert [first.poll(), second.poll()] == [None, None]


def test_a_mistake_of_a_second_process_of_a_rank_ends_no_run(files: Path, tmp_path: Path) -> None:
    """The command of rank 1 typed once more, with a wrong option: it is refused, and the two that train hear nothing of it."""
    disks = machines(files, tmp_path)
    port = free_port()
    command = [str(SDTUNE), *words(steps=100000)]
    ranks = [start_rank(rank, 2, port, command, disk) for rank, disk in enumerate(disks)]
    with ended(*ranks):
        wait_for_steps(disks[0] / "run", 2)
        another = start_rank(1, 2, port, [*command, "--images", "nowhere"], disks[1])
        with ended(another):
            _, errors = another.communicate(timeout=40)
        assert another.returncode == 2 and "nowhere" in errors, errors
        time.sleep(3)
        assert [rank.poll() for rank in ranks] == [None, None]


def test_a_final_failure_ends_every_machine(files: Path, tmp_path: Path) -> None:
    """Rank 0 cannot write its checkpoints (5), which no restart mends: no launch tries, and both return that code."""
    disks = machines(files, tmp_path)
    resume = words("--resume-from-checkpoint", "auto")  # what is in the folder is no reason to refuse the run
    (disks[0] / "run").mkdir()
    (disks[0] / "run/checkpoints").write_text("in the way")
    place = f"127.0.0.1:{free_port()}"
    launchers = [subprocess.Popen([str(SDTUNE), "launch", "--nnodes", "2", "--node-rank", str(index), "--rendezvous", place, "--", *resume],
                                  cwd=disk, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for index, disk in enumerate(disks)]
    with ended(*launchers):
        errors = [launcher.communicate(timeout=60)[1] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [5, 5], errors
    assert all("restart" not in text for text in errors), errors
    assert re.search(r"\[rank 1\] sdtune: error: rank 0 \(.*failed: .*checkpoints", errors[1]), errors


def test_a_mistake_on_one_machine_ends_every_machine(files: Path, tmp_path: Path) -> None:
    """A photo that only machine 1 cannot read (2), before the ranks have met: machine 0 does not wait."""
    disks = machines(files, tmp_path)
    (disks[1] / "photos/0.png").write_bytes(b"no image")
    place = f"127.0.0.1:{free_port()}"
    launchers = [subprocess.Popen([str(SDTUNE), "launch", "--nnodes", "2", "--node-rank", str(index), "--rendezvous", place, "--", *words()],
                                  cwd=disk, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for index, disk in enumerate(disks)]
    with ended(*launchers):
        errors = [launcher.communicate(timeout=40)[1] for launcher in launchers]  # start_timeout is 60 s
    assert [launcher.returncode for launcher in launchers] == [2, 2], errors
    assert all("restart" not in text for text in errors), errors
    assert re.search(r"\[rank 0\] sdtune: error: rank 1 \(.*failed: .*0\.png", errors[0]), errors
