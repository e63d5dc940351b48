"""`sdtune completion`: what real bash, zsh and fish offer, compared with the options that the program declares."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from program import ROOT, SDTUNE, run

SHELLS = ("bash", "zsh", "fish")
BASH = r"""
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sdtune
printf '%s\n' "${COMPREPLY[@]}"
"""
# zsh completes in a terminal alone: one of zpty's. Each candidate that compadd takes is printed between marks. Functions and marks
# stand in a file, since the terminal may print what is typed into it a second time, before zsh turns that off.
ZSH_SETUP = r"""
PS1=
stty -echo columns 300
autoload -Uz compinit
compinit -u -d "$PWD/zcompdump"
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  typeset -a found
  builtin compadd -A found "$@"
  local one
  for one in $found; do print -r -- "<<$one>>"; done
  builtin compadd "$@"
}
finish() { exit }
zle -N finish
bindkey "^X" finish
zstyle ":completion:*" list-grouped false
setopt no_auto_menu no_list_beep
ready() { print "==ready""==" }
"""
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $2; source $1; ready"
zpty -r shell line '*==ready==*'
zpty -w -n shell "$3"$'\t\C-X'
while zpty -r shell line; do print -r -- "$line"; done
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("completion")
    found = {}
    for shell in SHELLS:
        ended = run(["completion", shell])
        assert ended.returncode == 0, ended.stderr
        found[shell] = folder / f"sdtune.{shell}"
        found[shell].write_text(ended.stdout)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder and a file to complete."""
    (tmp_path / "my photos").mkdir()
    (tmp_path / "my file.yaml").write_text("")
    return tmp_path


Offers = Callable[..., set[str]]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed; scripts/setup.sh --tests installs it")
    return request.param


@pytest.fixture
def offers(shell: str, scripts: dict[str, Path], place: Path) -> Offers:
    """offers("train", "--met"): what the shell offers for the last word."""
    environment = {**os.environ, "PATH": f"{SDTUNE.parent}:{os.environ['PATH']}", "HOME": str(place), "TERM": "dumb",
                   "XDG_CONFIG_HOME": str(place / ".c"), "XDG_DATA_HOME": str(place / ".d")}

    def words_of(command: list[str]) -> str:
        ended = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def offered(*words: str) -> set[str]:
        script = str(scripts[shell])
        if shell == "bash":
            return set(filter(None, words_of(["bash", "-c", BASH, "bash", script, "sdtune", *words]).splitlines()))
        line = " ".join(["sdtune", *words])
        if shell == "fish":
            text = words_of(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"])
            return {candidate.split("\t")[0] for candidate in text.splitlines()}
        setup = scripts[shell].with_name("setup.zsh")
        setup.write_text(ZSH_SETUP)
        text = words_of(["zsh", "-f", "-c", ZSH, "zsh", script, str(setup), line])
        return {found.rstrip("=") for found in re.findall(r"<<([^<>]+)>>", text)}

    return offered


def declared(command: str) -> set[str]:
    """The flags that --help lists, --no-... of each bool, and --help."""
    reference = (ROOT / "docs" / "reference.md").read_text()
    sections = {section.split("\n", 1)[0]: section for section in reference.split("\n## sdtune ")[1:]}
    rows = re.findall(r"^\| `(--[a-z0-9-]+)`[^|]*\| ([a-z ]+) \|", sections[command], re.MULTILINE)
    if "Takes the options of `sdtune train` too" in sections[command]:
        rows += re.findall(r"^\| `(--[a-z0-9-]+)`[^|]*\| ([a-z ]+) \|", sections["train"], re.MULTILINE)
    flags = {name for name, _ in rows} | {"--no-" + name[2:] for name, kind in rows if kind == "bool"}
    return flags | {"--help"}


def commands() -> set[str]:
    return set(re.findall(r"^## sdtune (\S+)", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE))


def test_commands(offers: Offers) -> None:
    assert offers("") - {"--help", "--version"} == commands()
    assert offers("tr") == {"train"}


@pytest.mark.parametrize("command", ["train", "sample", "check", "convert", "completion", "launch"])
def test_flags(command: str, offers: Offers) -> None:
    """Every declared one, and none besides."""
    assert offers(command, "--") == declared(command)


def test_some_flags(offers: Offers) -> None:
    assert offers("train", "--valid") == {name for name in declared("train") if name.startswith("--valid")}
    assert offers("train", "--use-e") == {"--use-ema"}
    assert offers("train", "--no-use-e") == {"--no-use-ema"}


def test_choices(offers: Offers, shell: str) -> None:
    methods = {"full", "lora"}
    assert offers("train", "--method", "") == methods
    assert offers("train", "--seed", "3", "--method", "l") == {"lora"}
    joined = offers("train", "--method", "=", "") if shell == "bash" else offers("train", "--method=")
    assert {word.removeprefix("--method=") for word in joined} == methods
    trackers = {"tensorboard", "wandb", "mlflow", "trackio", "all", "none"}
    assert offers("train", "--report-to", "wandb", "--report-to", "") == trackers
    assert offers("completion", "") - {"--help"} == set(SHELLS)


def test_files_and_folders(offers: Offers) -> None:
    def names(*words: str) -> set[str]:
        return {re.sub(r"[\\/]", "", word) for word in offers(*words)}

    assert names("train", "--config", "my") >= {"my file.yaml"}
    assert names("train", "--images", "my") == {"my photos"}
    assert names("inspect", "my") == {"my file.yaml", "my photos"}
    assert offers("train", "--instance-prompt", "my") == set()


def test_behind_two_hyphens(offers: Offers, shell: str) -> None:
    """demo takes options of train there; launch a whole command."""
    assert "--max-train-steps" in offers("demo", "--", "--max")
    assert "--max-train-steps" in offers("launch", "--nproc", "2", "--", "train", "--max")
    if shell != "fish":
        assert offers("launch", "--", "tra") == {"train"}
        assert offers("demo", "--", "--method", "") == {"full", "lora"}


def test_scripts_are_read_without_a_word(shell: str, scripts: dict[str, Path]) -> None:
    """Sourced by a shell that completes nothing yet. The mutant has a quote that is open."""
    prepare = "autoload -Uz compinit; compinit -u -D; " if shell == "zsh" else ""  # -D: writes no file
    words = [shell, *(["-f"] if shell == "zsh" else [])]
    ended = subprocess.run([*words, "-c", f"{prepare}source {scripts[shell]}"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    broken = scripts[shell].with_name("broken")
    broken.write_text(scripts[shell].read_text() + "'\n")
    assert subprocess.run([*words, "-c", f"source {broken}"], capture_output=True, check=False).returncode != 0


def test_unknown_shells_are_refused() -> None:
    for words, said in ((["completion", "tcsh"], "tcsh: unknown shell (allowed: bash, zsh, fish)"), (["completion"], "takes one shell (got 0"),
                        (["schema", "x"], "x: unexpected word; sdtune schema takes none")):
        ended = run(words)
        assert ended.returncode == 2 and said in ended.stderr and ended.stdout == ""
