"""docs/rented_machine.md: every command of sdtune on it has these options, and runs in its order on a tiny base."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from program import ROOT, run

PAGE = (ROOT / "docs/rented_machine.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
BASE = "stable-diffusion-v1-5/stable-diffusion-v1-5"


def commands() -> list[list[str]]:
    """The words of each line that begins with sdtune, whole where it goes on behind a backslash."""
    lines = "".join(BLOCKS).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("sdtune ")]


def flags_of(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The flags of each command of the page, from its help."""
    return {name: set(re.findall(r"--[a-z][\w-]*", run([name, "--help"]).stdout)) for name in {words[0] for words in commands()}}


def test_every_flag_is_one_of_its_command(known: dict[str, set[str]]) -> None:
    assert len(commands()) >= 7 and {"doctor", "plan", "fetch", "check", "train", "sample"} <= known.keys()
    for words in commands():
        assert flags_of(words) <= known[words[0]], words
    assert "--budget" not in known["train"], "a flag that is none is found"


def test_what_the_text_names_is_there(known: dict[str, set[str]]) -> None:
    """In backquotes, outside of the blocks."""
    text = re.sub(r"^```\n.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    options = known["train"] | known["doctor"]
    assert {flag for flag in re.findall(r"`(--[a-z][\w-]*)", text)} <= options
    assert set(re.findall(r"`sdtune (\w+)", text)) <= set(re.findall(r"^  (\w+)  +", run(["--help"]).stdout, re.MULTILINE))
    start = (ROOT / "scripts/docker/start.sh").read_text()
    assert all(name in start for name in re.findall(r"-e (\w+)=", PAGE)), "variables of the container"
    assert "workbench" in (ROOT / "scripts/docker/Dockerfile").read_text()


@pytest.mark.parametrize("block", BLOCKS)
def test_the_shell_can_read_it(block: str) -> None:
    assert subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False).stderr == ""


def test_the_commands_run_in_their_order(tiny_sd1: Path, tmp_path: Path) -> None:
    """On a tiny base in place of Stable Diffusion and without a cloud; nothing is fetched, and nothing is shut down."""
    shutil.copytree(ROOT / "examples/backpack_dog", tmp_path / "me", ignore=shutil.ignore_patterns("*.md"))
    small = ["--device", "cpu", "--resolution", "32", "--train-batch-size", "1", "--num-class-images", "2",
             "--class-num-inference-steps", "1", "--validation-inference-steps", "1", "--max-train-steps", "3", "--report-to", "none"]
    changes = {BASE: str(tiny_sd1), "ec2": "none", "sudo shutdown -h +30": 'echo "$SDTUNE_EXIT_CODE" > finished'}
    for words in commands():
        if words[0] == "fetch":
            continue
        given = [changes.get(word, word) for word in words]
        given += {"train": small, "check": small, "sample": ["--device", "cpu", "--num-inference-steps", "1"]}.get(words[0], [])
        ended = run(given, cwd=tmp_path)
        # This machine, and these photos, may have faults that the doctor names: that is what it is for.
        assert ended.returncode == 0 or words[0] == "doctor", (given, ended.stderr)
    assert (tmp_path / "finished").read_text() == "0\n"
    assert (tmp_path / "runs/me/model/pytorch_lora_weights.safetensors").is_file() and (tmp_path / "runs/me/report.html").is_file()
    assert len(list((tmp_path / "runs/portraits").glob("*.png"))) >= 20
