"""The process behind a function that runs the program: what it is given, how it is stopped, and which program it is."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from program import run
from test_twins import DOG, config

import sdtune
from sdtune import _commands, _program

# A value a user set, one of a file, one of a preset, one that a preset would set and the user unset, lists, mappings, Unicode.
CONFIGS: list[Callable[[Path], sdtune.TrainConfig]] = [
    lambda file: sdtune.TrainConfig(),
    lambda file: sdtune.TrainConfig(images="ä & 'b'", learning_rate=1e-7, seed=3, snr_gamma=None, lora_layers=["to_q", "to_k"]),
    lambda file: sdtune.TrainConfig.from_yaml(file, seed=5),
    lambda file: sdtune.TrainConfig(optimizer="prodigy"),
    lambda file: sdtune.TrainConfig(concepts=[{"images": "a", "repeats": 2}, {"images": "b"}], instance_prompt="--seed=4"),
    lambda file: sdtune.TrainConfig(validation_prompt=None, use_ema=True, max_train_steps=None, num_train_epochs=2),
]


@pytest.mark.parametrize("index", range(len(CONFIGS)))
def test_a_configuration_reaches_the_program_as_it_is(index: int, tiny_sd1: Path, tmp_path: Path) -> None:
    """Its options, as flags, make an equal configuration; also where the base was changed after its preset had been read."""
    file = tmp_path / "me.yaml"
    file.write_text("images: me\nresolution: 64\nvalidation_prompt: 'a: b'\n")
    for change in (False, True):
        ours = CONFIGS[index](file)
        if change:
            ours.base = str(tiny_sd1)
            ours.resolution = None
        given = _commands.given_options(ours)
        assert sdtune.TrainConfig(**given) == ours
        flags = [*_commands.flags_of(given, ours.options())]
        # What the program makes of the flags, in the words of config.yaml: `plan` of another option alone would not say.
        texts = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
        lists = {option["name"] for option in ours.options() if option["type"] == "list of strings"}
        again = {name.replace("-", "_"): text for name, text in texts.items() if name.replace("-", "_") not in lists}
        again |= {name: given[name] for name in lists & given.keys()}
        assert sdtune.TrainConfig(**again) == ours
    wrong = sdtune.TrainConfig(**{**given, "seed": 99})
    assert wrong != ours


def test_the_program_loads_the_same_configuration(tiny_sd1: Path, tmp_path: Path) -> None:
    """Its config.yaml of a run, which it writes itself, has the values of Python's."""
    ours = config(tiny_sd1, tmp_path / "run", learning_rate=3e-7, instance_prompt="a photo of 'x'", trainable_layers=["to_q"], snr_gamma=5)
    done = run(["train", *_commands.flags_of(_commands.given_options(ours), ours.options())])
    assert done.returncode == 0, done.stderr
    theirs = sdtune.TrainConfig.from_yaml(tmp_path / "run" / "config.yaml").to_dict()
    decided = {"class_data_dir", "mixed_precision", "micro_batch", "class_guidance_scale", "checkpoints_total_limit"}
    assert {name: (value, theirs[name]) for name, value in ours.to_dict().items() if value != theirs[name]}.keys() <= decided


INTERRUPTED = """
    import sys
    import sdtune
    try:
        sdtune.render(output=sys.argv[1], count=200000, size=64, captions=False, threads=1)
    except KeyboardInterrupt:
        print("interrupted")
"""


def children_of(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def running_render(tmp_path: Path) -> tuple[subprocess.Popen[str], int]:
    """A Python process that renders, and the process of the program below it."""
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(tmp_path / "r")], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(600):
        time.sleep(0.1)
        if (tmp_path / "r").is_dir() and len(list((tmp_path / "r").glob("*.png"))) > 3:
            break
    (child,) = children_of(process.pid)
    return process, child


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_interrupting_stops_the_program_as_in_a_shell(tmp_path: Path) -> None:
    """Once: render ends its folder, so that labels.jsonl lists what is there; then KeyboardInterrupt is raised."""
    process, child = running_render(tmp_path)
    assert os.getpgid(child) != os.getpgid(process.pid)  # Ctrl-C of a terminal reaches Python alone
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(timeout=60)
    assert output == "interrupted\n", said
    listed = (tmp_path / "r" / "labels.jsonl").read_text().splitlines()
    assert 0 < len(listed) == len(list((tmp_path / "r").glob("*.png"))) < 200000
    assert not is_running(child)


def test_a_kernel_that_is_killed_takes_the_program_along(tmp_path: Path) -> None:
    process, child = running_render(tmp_path)
    process.kill()
    process.wait()
    for _ in range(600):
        if not is_running(child):
            break
        time.sleep(0.1)
    assert not is_running(child)


def test_a_program_that_dies_is_said_to_have_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "sdtune"
    monkeypatch.setattr(_program, "places", lambda: [fake])
    for end, said, code in (("kill -9 $$", "was ended by SIGKILL", 137), ("kill -TERM $$", "was ended by SIGTERM", 143),
                            ("echo odd >&2; exit 7", "ended with exit code 7 and no report: odd", 7)):
        fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "sdtune {sdtune.__version__}" && exit\n{end}\n')
        fake.chmod(0o755)
        with pytest.raises(sdtune.Error) as caught:
            sdtune.render(progress=False)
        assert said in str(caught.value) and caught.value.exit_code == code and type(caught.value) is sdtune.Error


@pytest.mark.parametrize("package, program", [("lib/python3.11/site-packages/sdtune", "bin/sdtune"), ("sdtune", "bin/sdtune"),
                                              ("python/sdtune", "app/sdtune")], ids=["environment", "pip --target", "build folder"])
def test_the_program_is_found_in_every_layout(package: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an environment, of `pip install --target`, of a build folder; where pip's own list names it, there first."""
    module = tmp_path / package / "_native.so"
    monkeypatch.setattr(_program._native, "__file__", str(module))
    assert tmp_path / program in _program.places()

    class Listed:
        """A line of pip's list."""
        def __init__(self, path: Path) -> None:
            self.name, self.path = path.name, path

        def locate(self) -> Path:
            return self.path

    def listed(own: Path) -> object:
        return lambda name: SimpleNamespace(files=[Listed(own), Listed(tmp_path / "elsewhere" / "sdtune")])

    monkeypatch.setattr(importlib.metadata, "distribution", listed(module))
    assert _program.places()[0] == tmp_path / "elsewhere" / "sdtune"
    monkeypatch.setattr(importlib.metadata, "distribution", listed(tmp_path / "another" / "_native.so"))
    assert tmp_path / "elsewhere" / "sdtune" not in _program.places()


def test_only_the_program_of_this_module_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never one on PATH; a missing one and one of another version are named."""
    other = tmp_path / "sdtune"
    other.write_text("#!/bin/sh\ntouch ran\necho sdtune 0.0.9\n")
    other.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert sdtune.inspect(DOG)["images"] == 5 and not (tmp_path / "ran").exists()
    monkeypatch.setattr(_program, "places", lambda: [tmp_path / "missing"])
    with pytest.raises(sdtune.ConfigError, match="the program of this module is not there") as caught:
        sdtune.inspect(DOG)
    assert str(tmp_path / "missing") in str(caught.value) and caught.value.exit_code == 2
    broken = tmp_path / "broken"
    for end, said in (("echo 'libtorch.so: cannot open' >&2; exit 127", "does not start: libtorch.so: cannot open"),
                      ("exit 3", "does not start: exit code 3 and no message")):
        broken.write_text(f"#!/bin/sh\n{end}\n")
        broken.chmod(0o755)
        monkeypatch.setattr(_program, "places", lambda: [broken])
        with pytest.raises(sdtune.ConfigError, match=said) as caught:
            sdtune.inspect(DOG)
        assert caught.value.exit_code == 2
    monkeypatch.setattr(_program, "places", lambda: [other])
    with pytest.raises(sdtune.ConfigError, match=rf"is of version 0.0.9 \(needed: {sdtune.__version__}"):
        sdtune.inspect(DOG)
