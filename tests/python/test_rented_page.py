"""docs/rented_machine.md: every command of sdtune on it has these options, and runs in its order on a tiny base. And how pages install
a wheel."""

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
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
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


def late_shutdowns(block: str) -> list[str]:
    """Trainings of a block that may meet the shutdown of an earlier try, which they do not revoke first."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line for at, line in enumerate(lines) if line.startswith("sdtune train ") and "shutdown -h +" in line
            and "sudo shutdown -c" not in lines[:at]]


def test_a_second_try_revokes_the_shutdown_of_the_first() -> None:
    """--on-finish runs at a refused or interrupted end too, and what it has planned is half an hour away."""
    assert [line for block in BLOCKS for line in late_shutdowns(block)] == []
    assert any("sudo shutdown -c\n" in block for block in BLOCKS)
    train = next(block for block in BLOCKS if "shutdown -h +" in block)
    assert len(late_shutdowns(train.replace("sudo shutdown -c\n", ""))) == 1, "without that line"


def bare_installs(block: str) -> list[str]:
    """Lines that install a wheel before an environment was made and entered."""
    lines = block.splitlines()
    found = []
    for at, line in enumerate(lines):
        made = re.findall(r"^python3 -m venv (\S+)$", "\n".join(lines[:at]), re.MULTILINE)
        if "pip install" in line and ".whl" in line and not any(f". {folder}/bin/activate" in lines[:at] for folder in made):
            found.append(line)
    return found


def test_a_wheel_is_installed_into_an_environment() -> None:
    """Debian 12's Python refuses another place: externally-managed-environment. On every page."""
    blocks = [block for page in PAGES for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)]
    assert [line for block in blocks for line in bare_installs(block)] == []
    (wheel,) = [block for block in BLOCKS if ".whl" in block]
    assert len(bare_installs(re.sub(r"^python3 -m venv .*\n", "", wheel, flags=re.MULTILINE))) == 1, "without its line"
    assert "python3-venv" in wheel


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
