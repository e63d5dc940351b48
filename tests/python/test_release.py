"""Release files in clean roots: what scripts/release.sh made, used where nothing of this machine is.

Not among the tests of scripts/test.sh, because it takes root, Debian's packages debootstrap, and files that take an hour to make:

    scripts/release.sh --output release
    SDTUNE_RELEASE=release python -m pytest tests/python/test_release.py
"""

from __future__ import annotations

import hashlib
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

pytestmark = pytest.mark.timeout(7200)
SHORT = ["--max-train-steps", "3", "--num-class-images", "2", "--class-num-inference-steps", "2"]


@pytest.fixture(scope="module")
def release() -> Path:
    folder = os.environ.get("SDTUNE_RELEASE")
    assert folder, "SDTUNE_RELEASE names the folder that scripts/release.sh made"
    return Path(folder).resolve()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bare Debian: no Python, no compiler, no OpenCV."""
    assert os.geteuid() == 0 and shutil.which("debootstrap"), "takes root and debootstrap"
    folder = tmp_path_factory.mktemp("debian") / "root"
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(folder)], check=True, capture_output=True)
    assert not (folder / "usr/bin/python3").exists()
    yield folder
    shutil.rmtree(folder)


def inside(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in the root, with an empty environment and without a network."""
    return subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "bash", "-c",
                           'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i "$@"',
                           str(root), "HOME=/tmp", "PATH=/usr/bin:/bin", *words], capture_output=True, text=True, check=False)


def one(release: Path, pattern: str) -> Path:
    (found,) = release.glob(pattern)
    return found


def test_every_file_has_its_checksum(release: Path) -> None:
    listed = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
    assert listed.keys() == {path.name for path in release.iterdir()} - {"SHA256SUMS"}
    for name, digest in listed.items():
        assert hashlib.sha256((release / name).read_bytes()).hexdigest() == digest, name


def test_notes_and_bills_are_of_this_version(release: Path) -> None:
    version = re.search(r"project\(sdtune VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert (release / "NOTES.md").read_text().startswith("## ")
    for path in release.glob("*.spdx.json"):
        bill = json.loads(path.read_text())
        own = bill["packages"][0]
        assert own["versionInfo"].startswith(f"{version}+") and (release / own["packageFileName"]).is_file()
    assert set(re.findall(r"needs GLIBC ([0-9.]+)", (release / "C_LIBRARY.txt").read_text()))


def test_the_tarball_runs_in_a_bare_root(release: Path, root: Path) -> None:
    tarball = one(release, "sdtune-*+cpu-linux-*.tar.gz")
    subprocess.run(["tar", "-xzf", str(tarball), "-C", str(root / "opt")], check=True)
    program = f"/opt/{tarball.name.removesuffix('.tar.gz')}/bin/sdtune"
    started = time.monotonic()
    done = inside(root, program, "demo", "--output", "/tmp/run", "--", *SHORT)
    assert done.returncode == 0, done.stderr
    print(f"demo in a bare root: {time.monotonic() - started:.0f} s")
    assert (root / "tmp/run/sheet.png").is_file()
    assert inside(root, program, "doctor", "--machine").returncode == 0


def test_the_wheel_installs_and_demonstrates_itself(release: Path, tmp_path: Path) -> None:
    """pip in an environment of its own; `sdtune demo` ends at most 2 minutes after what training itself takes (README)."""
    import sys
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    started = time.monotonic()
    wheel = one(release, "sdtune-*+cu130-cp311-*.whl")
    subprocess.run([str(tmp_path / "venv/bin/pip"), "install", "--quiet", str(wheel)], check=True)
    installed = time.monotonic()
    done = subprocess.run([str(tmp_path / "venv/bin/sdtune"), "demo", "--output", str(tmp_path / "run"), "--device", "cpu"],
                          capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    print(f"installing {installed - started:.0f} s, demo {time.monotonic() - installed:.0f} s")
    assert (tmp_path / "run/sheet.png").is_file()
