"""Whether scripts/setup.sh and scripts/demo.sh compile CUDA kernels: one rule for both, asked on machines that a folder stands for. And what
setup.sh refuses before it downloads anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from program import ROOT

DEVICES = {"none": None, "a driver": "nvidiactl", "WSL": "dxg"}


def machine(folder: Path, device: str | None) -> dict[str, str]:
    (folder / "dev").mkdir()
    if device is not None:
        (folder / "dev" / device).write_text("")
    return {"SDTUNE_SYSTEM_ROOT": str(folder), "PATH": "/usr/bin:/bin"}


def demo(folder: Path, environment: dict[str, str]) -> str:
    """What demo.sh leaves to setup.sh in SDTUNE_CUDA."""
    (folder / "scripts").mkdir()
    for name in ("demo.sh", "gpu_devices.sh"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    program = folder / ".venv" / "bin" / "sdtune"
    program.parent.mkdir(parents=True)
    for file, text in {folder / "scripts" / "setup.sh": 'echo "cuda=${SDTUNE_CUDA:-unset}"', program: "true"}.items():
        file.write_text(f"#!/usr/bin/env bash\n{text}\n")
        file.chmod(0o755)
    ended = subprocess.run([str(folder / "scripts" / "demo.sh")], capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[0].removeprefix("cuda=")


def setup(environment: dict[str, str]) -> str:
    """What setup.sh decides where no nvcc is."""
    script = (ROOT / "scripts" / "setup.sh").read_text()
    text = script[script.index("find_cuda() {"):]
    function = text[:text.index("\n}\n") + 3].replace("/usr/local/cuda/bin/nvcc", "/nowhere/nvcc")
    code = f"set -euo pipefail\n. scripts/gpu_devices.sh\n{function}find_cuda\necho $SDTUNE_CUDA"
    return subprocess.run(["bash", "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment, check=True).stdout.strip()


@pytest.mark.parametrize("case", DEVICES)
def test_setup_and_demo_see_the_same_gpus(tmp_path: Path, case: str) -> None:
    environment = machine(tmp_path, DEVICES[case])
    has_gpu = DEVICES[case] is not None
    assert setup(environment) == ("ON" if has_gpu else "OFF")
    assert demo(tmp_path, environment) == ("unset" if has_gpu else "OFF")


def test_what_the_user_says_stands(tmp_path: Path) -> None:
    environment = machine(tmp_path, None) | {"SDTUNE_CUDA": "ON"}
    assert demo(tmp_path, environment) == "ON" and setup(environment) == "ON"


def test_setup_reads_the_rule() -> None:
    """And states none of its own."""
    for script in ("setup.sh", "demo.sh"):
        text = (ROOT / "scripts" / script).read_text()
        assert ". scripts/gpu_devices.sh" in text and "nvidiactl" not in text and "dxg" not in text


@pytest.mark.parametrize(("option", "script", "said"), [
    ("SDTUNE_SETUP_PYTHON", "exit 1", "is no Python 3.11 or later"), ("CXX", "echo 11", "has version 11, and C++20 needs g++ 12"),
    ("CXX", "exit 1", "does not run")], ids=["python", "compiler", "no compiler"])
def test_what_is_too_old_is_said_before_a_download(option: str, script: str, said: str, tmp_path: Path) -> None:
    """As on Ubuntu 22.04, where numpy of the pinned version is not to be had."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    (tmp_path / "scripts").mkdir()  # a tree without .venv
    for name in ("setup.sh", "gpu_devices.sh", "compile_jobs.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    ended = subprocess.run(["bash", str(tmp_path / "scripts" / "setup.sh"), "--tools"], capture_output=True, text=True, check=False,
                           env={"PATH": "/usr/bin:/bin", "SDTUNE_SKIP_APT": "1", "SDTUNE_SETUP_PYTHON": sys.executable, option: str(tool)})
    assert ended.returncode == 2 and said in ended.stderr and ended.stdout == "", ended.stderr + ended.stdout
