"""Names of options that were ever accepted stay accepted: as flags, as keys of YAML files and in Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from program import run

import sdtune

NAMES: dict[str, list[list[str]]] = {}
for line in (Path(__file__).parent / "options_68da9cb.txt").read_text().splitlines():
    if not line.startswith("#"):
        command, *names = line.split()
        NAMES.setdefault(command, []).append(names)
TRAINING = ("train", "check", "doctor", "prepare", "plan")
WITH_FILE = (*TRAINING, "sample", "eval", "render", "pretrain")  # --config of convert and merge is a folder
UNKNOWN = "no_such_option"


def names_of(command: str) -> list[list[str]]:
    """The options that the command had, each with its aliases."""
    own = NAMES.get(command, [])
    return own + NAMES["train"] if command in TRAINING and command != "train" else own


def unknown_in(text: str, what: str) -> set[str]:
    """The options or keys that the errors call unknown."""
    pattern = r"--([\w-]+): unknown option" if what == "flag" else r"unknown key (\w+)"
    return {name.replace("-", "_") for name in re.findall(pattern, text)}


def test_the_list_is_whole() -> None:
    assert set(NAMES) == {*TRAINING, "sample", "inspect", "render", "pretrain", "eval", "convert", "merge"} - {"prepare"}
    assert sum(map(len, NAMES.values())) == 235


@pytest.mark.parametrize("command", sorted({*NAMES, "prepare"}))
def test_every_flag_is_accepted(command: str, tmp_path: Path) -> None:
    """One call with all of them. A flag that is not known makes it fail before anything is done, and is the only unknown one."""
    flags = [f"--{name}=0" for names in names_of(command) for name in names if name != "config"]
    assert flags
    ended = run([command, *flags, f"--{UNKNOWN}"], cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert unknown_in(ended.stderr, "flag") == {UNKNOWN}, ended.stderr
    kebab = [flag.replace("_", "-") for flag in flags]
    assert unknown_in(run([command, *kebab, f"--{UNKNOWN}"], cwd=tmp_path).stderr, "flag") == {UNKNOWN}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", WITH_FILE)
def test_every_key_is_accepted(command: str, tmp_path: Path) -> None:
    """First the names, then the first alias of each that has one, and so on: two names of one option contradict each other."""
    own = [names for names in NAMES.get(command, []) if command not in TRAINING or command == "train"] or NAMES["train"]
    for place in range(max(map(len, own))):
        keys = [names[place] for names in own if len(names) > place and names[place] != "config"]
        path = tmp_path / f"{place}.yaml"
        path.write_text("".join(f"{key}: \"0\"\n" for key in [*keys, UNKNOWN]))
        ended = run([command, "--config", str(path)], cwd=tmp_path)
        assert ended.returncode == 2, ended.stderr
        assert unknown_in(ended.stderr, "key") == {UNKNOWN}, ended.stderr


def test_every_keyword_and_attribute_is_accepted() -> None:
    config = sdtune.TrainConfig()
    for names in NAMES["train"]:
        for name in names:
            if name == "config":
                continue
            value = getattr(config, name)
            assert getattr(sdtune.TrainConfig(**{name: value}), name) == value
            setattr(config, name, value)


def test_old_names_have_the_new_ones_value(tmp_path: Path) -> None:
    """What `identity_judge` sets is what `identity_classifier` reads; config.yaml has the new name."""
    old = sdtune.TrainConfig(identity_judge="somewhere")
    assert old.identity_classifier == old.identity_judge == "somewhere"
    assert old.to_dict()["identity_classifier"] == "somewhere" and "identity_judge" not in old.to_dict()
    path = tmp_path / "config.yaml"
    path.write_text("identity_judge: elsewhere\n")
    assert sdtune.TrainConfig.from_yaml(path).identity_classifier == "elsewhere"


def test_the_old_name_of_a_stage_is_accepted(tmp_path: Path) -> None:
    """`--stage judge` is the classifier's: what is refused is the folder that it shall start from, not the word."""
    for stage in ("judge", "classifier"):
        ended = run(["pretrain", "--design", "nano", "--stage", stage, "--initial-judge", "nowhere", "--output", str(tmp_path / "run")])
        assert ended.returncode == 2 and "initial_classifier: is not a folder" in ended.stderr, ended.stderr
    assert "--stage: is unknown" in run(["pretrain", "--stage", "jury"], cwd=tmp_path).stderr
