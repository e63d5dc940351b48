"""The container image: built from what git has committed, then used inside as its own user and without a network.

Not among the tests of scripts/test.sh, because a build takes half an hour and 12 GB:

    python -m pytest tests/python/test_container.py

With a running Docker engine the image starts from debian:12; without one buildah builds it (Debian's packages buildah and
debootstrap, as root) from a base of Debian's packages alone. SDTUNE_TEST_WHEEL names a wheel to install in place of compiling one (with kernels: SDTUNE_TEST_CUDA=1),
SDTUNE_TEST_BASE an image to start from, PIP_CERT the authorities that pip trusts here. What needs a running container takes podman
(Debian's packages podman and runc) where no Docker engine runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from program import ROOT

pytestmark = pytest.mark.timeout(7200)  # everything is compiled inside

TAG = "sdtune-test"
WORKBENCH = "sdtune-test-workbench"
UNKNOWN_USER = "12345:12345"  # a user that the image does not know
MOST_GIGABYTES = 6.0  # LibTorch with its CUDA libraries is 4.5 of them


def docker_runs() -> bool:
    return shutil.which("docker") is not None and subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def script(name: str, *words: str) -> str:
    """What scripts/docker/NAME prints."""
    isolation = {} if docker_runs() else {"BUILDAH_ISOLATION": os.environ.get("BUILDAH_ISOLATION", "chroot")}
    ended = subprocess.run(["bash", str(ROOT / "scripts" / "docker" / name), *words], capture_output=True, text=True,
                           env={**os.environ, **isolation}, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


@pytest.fixture(scope="module")
def base() -> str:
    if "SDTUNE_TEST_BASE" in os.environ:
        return os.environ["SDTUNE_TEST_BASE"]
    if docker_runs():
        return "debian:12"
    for program in ("buildah", "debootstrap"):
        assert shutil.which(program), f"neither a running Docker engine nor {program} is here: apt-get install buildah debootstrap"
    script("base.sh", "sdtune-base")
    return "sdtune-base"


def build(base: str, tag: str, target: str) -> str:
    options = ["--base", base, "--tag", tag, "--target", target]
    if os.environ.get("SDTUNE_TEST_CUDA"):
        options.append("--cuda")
    for option, variable in (("--wheel", "SDTUNE_TEST_WHEEL"), ("--certificates", "PIP_CERT")):
        if variable in os.environ:
            options += [option, os.environ[variable]]
    return script("build.sh", *options)


@pytest.fixture(scope="module")
def built(base: str) -> str:
    return build(base, TAG, "runtime")


@pytest.fixture(scope="module")
def workbench(base: str) -> str:
    return build(base, WORKBENCH, "workbench")


ENGINE = ["docker"] if docker_runs() else ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]


def container(*words: str) -> list[str]:
    """A run as an unknown user, with a read-only root and without a network but its own loopback."""
    return [*ENGINE, "run", "--rm", "--network", "none", "--read-only", "--user", UNKNOWN_USER, "--tmpfs", "/tmp:rw,exec",
            "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", *words]


def run_container(*words: str, **more: object) -> str:
    ended = subprocess.run(container(*words), capture_output=True, text=True, check=False, **more)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


def local(tag: str) -> str:
    return tag if docker_runs() else f"localhost/{tag}"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    os.chown(folder, *map(int, UNKNOWN_USER.split(":")))
    return folder


def test_an_unknown_user_trains_and_generates_with_a_read_only_root(built: str, volume: Path) -> None:
    mount = ("--volume", f"{volume}:/work", local(TAG))
    run_container(*mount, "render", "--output", "me", "--subject", "0", "--views", "5", "--no-captions")
    words = ("train", "--images", "me", "--num-class-images", "4", "--train-batch-size", "2")
    run_container(*mount, *words, "--output", "runs/first", "--max-train-steps", "1")
    # From the start of a container to its first step, the class images there: at most 10 s on the bundled base.
    started = time.monotonic()
    run_container(*mount, *words, "--output", "runs/me", "--max-train-steps", "1", "--class-data-dir", "runs/first/class_images")
    print(f"container start, one step and its end: {time.monotonic() - started:.1f} s")
    run_container(*mount, "sample", "--model", "runs/me", "--prompt", "a photo of sks person", "--output", "images")
    assert list((volume / "images").glob("*.png"))


def test_its_labels_say_what_it_is(built: str) -> None:
    (image,) = json.loads(subprocess.run([*ENGINE, "image", "inspect", local(TAG)], capture_output=True, text=True, check=True).stdout)
    labels = image.get("Labels") or image["Config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == "sdtune"
    assert labels["org.opencontainers.image.revision"] == subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def test_the_library_has_every_architecture_and_doctor_says_there_is_no_gpu(built: str, volume: Path) -> None:
    if not os.environ.get("SDTUNE_TEST_CUDA"):
        pytest.skip("an image without kernels: SDTUNE_TEST_CUDA=1 with a wheel for CUDA")
    report = json.loads(run_container("--volume", f"{volume}:/work", local(TAG), "doctor", "--machine", "--json"))
    assert report["kernels"] == {"built": True, "architectures": ["7.5", "8.0", "8.6", "9.0", "10.0", "12.0"], "ptx": "12.0",
                                 "fault": None}
    assert report["device"] == "cpu" and report["libtorch"]["gpus"] == 0
    assert "libcuda.so.1" in report["fault"]


@pytest.fixture
def bench(workbench: str, volume: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A running workbench: its name, and a key that may log in."""
    key = tmp_path / "key"
    tmp_path.chmod(0o755)  # the user inside looks for the key there
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    name = f"bench-{os.getpid()}"
    words = ["--detach", "--name", name, "--env", f"PUBLIC_KEY={key.with_suffix('.pub').read_text()}", "--env", "JUPYTER_TOKEN=open-sesame",
             "--env", "TENSORBOARD_PORT=6006", "--volume", f"{volume}:/workspace", "--volume", f"{tmp_path}:/keys:ro", local(WORKBENCH)]
    run_container(*words)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if answer(name, "http://127.0.0.1:8888/api/status?token=open-sesame") == 200 and answer(name, "http://127.0.0.1:6006/") == 200:
            break
        time.sleep(2)
    os.chown(key, *map(int, UNKNOWN_USER.split(":")))
    yield name, Path("/keys/key")
    subprocess.run([*ENGINE, "rm", "--force", name], capture_output=True, check=False)


def inside(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ENGINE, "exec", name, *words], capture_output=True, text=True, check=False)


def answer(name: str, address: str) -> int:
    """The HTTP status that a server inside gives."""
    ended = inside(name, "curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", address)
    return int(ended.stdout or 0)


def test_the_workbench_answers_with_its_token_only(bench: tuple[str, Path]) -> None:
    name, _ = bench
    log = subprocess.run([*ENGINE, "logs", name], capture_output=True, text=True, check=False)
    assert answer(name, "http://127.0.0.1:8888/api/status?token=open-sesame") == 200, log.stdout + log.stderr
    assert answer(name, "http://127.0.0.1:8888/api/status") == 403
    assert answer(name, "http://127.0.0.1:8888/api/status?token=wrong") == 403
    assert "open-sesame" not in log.stdout + log.stderr, "a token that was given is not printed"


def test_the_workbench_runs_a_notebook_and_shows_the_run(bench: tuple[str, Path], volume: Path) -> None:
    name, _ = bench
    code = ("import sdtune; from pathlib import Path; import os\n"
            "config = sdtune.TrainConfig(images='me', output='runs/me', max_train_steps=2, num_class_images=2, train_batch_size=2)\n"
            "result = sdtune.train(config, progress=False)\nprint('step', result.step)")
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": code, "id": "one"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
                "nbformat": 4, "nbformat_minor": 5}
    (volume / "train.ipynb").write_text(json.dumps(notebook))
    rendered = inside(name, "sdtune", "render", "--output", "me", "--subject", "0", "--views", "5", "--no-captions")
    assert rendered.returncode == 0, rendered.stderr
    ended = inside(name, "jupyter", "nbconvert", "--to", "notebook", "--execute", "--stdout", "train.ipynb")
    assert ended.returncode == 0 and "step 2" in ended.stdout, ended.stderr[-2000:]
    shown, deadline = "", time.monotonic() + 60  # TensorBoard looks for runs every few seconds
    while "me" not in json.loads(shown or "[]") and time.monotonic() < deadline:
        time.sleep(2)
        shown = inside(name, "curl", "--silent", "http://127.0.0.1:6006/data/runs").stdout
    assert "me" in json.loads(shown), shown


def test_the_workbench_lets_keys_in_and_no_password(bench: tuple[str, Path]) -> None:
    name, key = bench
    options = ["-p", "2222", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    log = subprocess.run([*ENGINE, "logs", name], capture_output=True, text=True, check=False)
    user = re.search(r"sshd on port 2222, keys only, for user (\S+)", log.stdout + log.stderr)[1] + "@127.0.0.1"
    entered = inside(name, "ssh", *options, "-i", str(key), user, "sdtune --version")
    assert entered.returncode == 0 and entered.stdout.startswith("sdtune "), entered.stderr
    refused = inside(name, "ssh", *options, "-v", "-o", "PubkeyAuthentication=no", user, "true")
    assert refused.returncode == 255 and "Permission denied (publickey)" in refused.stderr, refused.stderr


def test_its_size_is_told_and_no_surprise(built: str) -> None:
    size = re.search(rf"^build: made {TAG}, ([\d.]+) ?GB$", built, re.MULTILINE)
    assert size, built[-500:]
    assert float(size[1]) < MOST_GIGABYTES


def test_it_trains_and_generates_with_the_bundled_base_and_no_network(built: str) -> None:
    said = script("test.sh", TAG)
    assert re.search(r"^test: ok, as user 10001 and without a network$", said, re.MULTILINE)


@pytest.mark.parametrize("option", ["--wheel", "--certificates"])
def test_a_file_that_is_not_there_is_named(option: str, tmp_path: Path) -> None:
    ended = subprocess.run(["bash", str(ROOT / "scripts" / "docker" / "build.sh"), option, str(tmp_path / "absent")],
                           capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and f"{option}: {tmp_path / 'absent'} is not a file" in ended.stderr
