"""The container image: built from what git has committed, then used inside as its own user and without a network.

Not among the tests of scripts/test.sh, because a build takes half an hour and 12 GB:

    python -m pytest tests/python/test_container.py

With a running Docker engine the image starts from debian:12; without one buildah builds it (Debian's packages buildah and
debootstrap, as root) from a base of Debian's packages alone. SDTUNE_TEST_WHEEL names a wheel to install in place of compiling one,
SDTUNE_TEST_BASE an image to start from, PIP_CERT the authorities that pip trusts here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from program import ROOT

pytestmark = pytest.mark.timeout(7200)  # everything is compiled inside

TAG = "sdtune-test"
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


@pytest.fixture(scope="module")
def built(base: str) -> str:
    options = ["--base", base, "--tag", TAG]
    for option, variable in (("--wheel", "SDTUNE_TEST_WHEEL"), ("--certificates", "PIP_CERT")):
        if variable in os.environ:
            options += [option, os.environ[variable]]
    return script("build.sh", *options)


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
