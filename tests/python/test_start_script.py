"""scripts/docker/start.sh and build.sh without a container: a stop lets what it runs end by itself, as tini -g sends it to the whole group.
test_container.py has the rest of it, in the image."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from program import ROOT

START = ROOT / "scripts" / "docker" / "start.sh"

# As a run that writes a checkpoint: slow at its end, with a folder of temporary files that must still be there.
SLOW = """#!/usr/bin/env bash
save() {
  for part in 1 2 3 4 5; do sleep 0.1; done
  if [ -d "$TMPDIR" ]; then echo saved >"$WORKSPACE/saved"; fi
  exit 7
}
trap save TERM INT USR1
echo ready
while :; do sleep 0.05; done
"""


@pytest.mark.parametrize(("words", "sent"), [
    (["slow"], signal.SIGTERM), (["slow"], signal.SIGINT), (["slow"], signal.SIGUSR1), ([], signal.SIGTERM), ([], signal.SIGINT),
], ids=["command-TERM", "command-INT", "command-USR1", "JupyterLab-TERM", "JupyterLab-INT"])
def test_a_stop_waits_for_what_runs(words: list[str], sent: signal.Signals, tmp_path: Path) -> None:
    """And the exit code is that of what ran. JupyterLab in the background cannot see a SIGINT, and gets a SIGTERM for it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("slow", "jupyter"):
        (programs / name).write_text(SLOW)
        (programs / name).chmod(0o755)
    workspace = tmp_path / "work"
    workspace.mkdir()
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), "WORKSPACE": str(workspace), "JUPYTER_TOKEN": "token"}
    process = subprocess.Popen(["bash", str(START), *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    assert process.stdout is not None and process.stderr is not None
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        os.killpg(process.pid, sent)
        assert process.wait(timeout=60) == 7
        assert (workspace / "saved").read_text() == "saved\n", "the run had its time, and its folder of temporary files"
    finally:
        process.kill()
        process.stdout.close()
        process.stderr.close()


def test_a_command_s_exit_code_is_that_of_the_container(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "WORKSPACE": str(tmp_path)}
    for code in (0, 2, 143):
        done = subprocess.run(["bash", str(START), "bash", "-c", f"exit {code}"], env=environment, capture_output=True, check=False)
        assert done.returncode == code


@pytest.mark.parametrize(("wheel", "options", "said"), [
    ("sdtune-0.1.0+cpu-cp311-cp311-linux_x86_64.whl", ["--cuda"], "has no CUDA kernels, which --cuda asks for"),
    ("sdtune-0.1.0+cu130-cp311-cp311-linux_x86_64.whl", [], "has CUDA kernels, and needs --cuda"),
])
def test_an_image_is_of_the_kind_of_its_wheel(wheel: str, options: list[str], said: str, tmp_path: Path) -> None:
    """Its tag would name what it does not hold."""
    (tmp_path / wheel).write_text("")
    done = subprocess.run(["bash", str(ROOT / "scripts" / "docker" / "build.sh"), *options, "--wheel", str(tmp_path / wheel)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr == f"build: error: --wheel: {wheel} {said}\n"
