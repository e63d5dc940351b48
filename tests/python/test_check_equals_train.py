"""`check` and `train` refuse the same things with the same lines, and a photo is decoded once between them.

Each fault of planted_faults_*.py is planted in a place of its own. Most are compared in this process, through the Python
module, which calls the same preflight; every sixth of them, and all that depend on words, files or the environment of the
program, are compared by running the program twice. throw_sites.txt says which statement of the sources a fault reaches,
and the lines must hold what only that statement says.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from planted_faults import ME, Fault, Place, both
from planted_faults_base import CONFIGS, SCHEDULERS, SDXL, TOKENIZER
from planted_faults_options import HUB, OPTIONS, PROCESSORS, RANKS, WORDS
from planted_faults_photos import FOLDERS, PHOTOS, all_photos
from planted_faults_resume import RESUMES, prepare
from planted_faults_weights import WEIGHTS
from planted_faults_yaml import YAML
from program import run
from throw_sites import Site, all_sites, is_said, read_list

BY_MODULE: dict[str, Fault] = {**OPTIONS, **PHOTOS, **FOLDERS, **CONFIGS, **TOKENIZER, **SCHEDULERS, **SDXL, **WEIGHTS,
                               **RESUMES, **HUB}
ONLY_BY_PROGRAM: dict[str, Fault] = {**WORDS, **YAML, **RANKS, **PROCESSORS, "all photos at once": all_photos}
CASES = {**BY_MODULE, **ONLY_BY_PROGRAM}
BY_PROGRAM = [*list(BY_MODULE)[::6], *ONLY_BY_PROGRAM]
DEFAULTS = {"--instance-prompt": "a photo of sks person", "--max-train-steps": "1", "--report-to": "none"}


@pytest.fixture(scope="module")
def sites() -> dict[str, list[Site]]:
    """The statements that each case reaches."""
    reached: dict[str, list[Site]] = {}
    by_key = {site.key: site for site in all_sites()}
    for key, entry in read_list().items():
        for name in entry.cases:
            reached.setdefault(name, []).append(by_key[key])
    return reached


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, tiny_sd1: Path) -> Path:
    """A run of a few steps with a checkpoint."""
    place = Place(tmp_path_factory.mktemp("trained"), tiny_sd1)
    ended = run(["train", *with_defaults(place, prepare(place))])
    assert ended.returncode == 0, ended.stderr
    return place.folder / "run"


@pytest.fixture
def plant(tmp_path: Path, trained: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Callable:
    """plant(name): the place with that fault, and the options that go with it."""
    def planted(name: str) -> tuple[Place, list[str]]:
        place = Place(tmp_path, tiny_folder("sdxl" if name in SDXL else "sd1"))
        words = []
        if name in RESUMES:
            words = prepare(place)
            shutil.copytree(trained, place.folder / "run")
        words += CASES[name](place)
        monkeypatch.chdir(place.folder)
        for variable, value in place.environment.items():
            monkeypatch.setenv(variable, value)
        return place, with_defaults(place, words)

    return planted


def with_defaults(place: Place, words: list[str]) -> list[str]:
    """The words after those of a usual run."""
    defaults = {"--images": str(place.photos), "--base": str(place.base), "--output": str(place.folder / "run"), **DEFAULTS}
    return [word for name, value in defaults.items() if name not in words for word in (name, value)] + words


def code_of(name: str) -> int:
    """3 where a checkpoint was asked for and there is none that is whole."""
    return 3 if name.startswith("checkpoint") or name in {"nothing to resume", "no such checkpoint"} else 2


def say(name: str, lines: list[str], sites: dict[str, list[Site]]) -> None:
    """The lines hold what the statements say that the case is for."""
    silent = [site.key for site in sites.get(name, []) if not is_said(site, "\n".join(lines))]
    assert not silent, lines


def keywords(words: list[str]) -> dict[str, object]:
    """Options of the command line as the module takes them."""
    found: dict[str, object] = {}
    for at, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name = word[2:].replace("-", "_")
        value = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("--") else True
        if value is True and name.startswith("no_"):
            name, value = name[3:], False
        if name in ("concepts", "report_to"):
            value = [*found.get(name, []), value]
        found[name] = value
    return found


@pytest.mark.parametrize("name", BY_MODULE)
def test_module_refuses_as_it_checks(name: str, plant: Callable, sites: dict[str, list[Site]]) -> None:
    import sdtune

    place, words = plant(name)
    settings = sdtune.TrainConfig(**keywords(words))
    lines = [f"{problem.where}: {problem.what}; {problem.hint}" for problem in sdtune.check(settings)]
    with pytest.raises(sdtune.Error) as refused:
        sdtune.train(settings)
    assert lines == [f"{problem.where}: {problem.what}; {problem.hint}" for problem in refused.value.problems]
    assert lines and refused.value.exit_code == code_of(name)
    assert name in RESUMES or not (place.folder / "run" / "metrics.jsonl").exists()
    say(name, lines, sites)


@pytest.mark.parametrize("name", BY_PROGRAM)
def test_program_refuses_as_it_checks(name: str, plant: Callable, sites: dict[str, list[Site]]) -> None:
    place, words = plant(name)
    checked, trained = (run([command, *words], cwd=place.folder) for command in ("check", "train"))
    lines = [line for line in checked.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert lines and lines == [line for line in trained.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert (checked.returncode, trained.returncode) == (2, code_of(name))
    say(name, lines, sites)


def test_all_is_said_in_one_go(plant: Callable, tmp_path: Path, tiny_sd1: Path) -> None:
    """Faults of different things, planted together, give the lines that each of them gives alone."""
    names = ["unknown device", "micro_batch does not divide", "photo that is empty", "channels into the UNet",
             "tensor too many", "no mask anywhere", "weight that is not a number"]
    alone = []
    for name in names:
        place = Place(tmp_path / name, tiny_sd1)
        alone += refusals(place, CASES[name])
    together = refusals(Place(tmp_path / "all", tiny_sd1), both(*(CASES[name] for name in names)))
    assert {line.replace(str(tmp_path / "all"), "") for line in together} == {
        line.replace(str(tmp_path / name), "") for line in alone for name in names if str(tmp_path / name) in line} | {
        line for line in alone if str(tmp_path) not in line}


def refusals(place: Place, fault: Fault) -> list[str]:
    import sdtune

    settings = sdtune.TrainConfig(**keywords(with_defaults(place, fault(place))))
    return [f"{problem.where}: {problem.what}" for problem in sdtune.check(settings)]


def test_a_classifier_that_is_not_used_is_not_refused(tmp_path: Path, tiny_sd1: Path) -> None:
    """`check` reads it to compare the people on rendered photos, and `train` without identity_steps does not."""
    place = Place(tmp_path, tiny_sd1)
    place.write("classifier/judge.json", "{")
    words = with_defaults(place, ["--identity-classifier", str(place.folder / "classifier")])
    assert [run([command, *words]).returncode for command in ("check", "train")] == [0, 0]


@pytest.mark.parametrize("crop", ["center", "face"])
def test_photos_are_read_once(crop: str, tmp_path: Path, tiny_sd1: Path) -> None:
    """Whoever takes the photos away once the model is being loaded changes nothing."""
    import sdtune

    place = Place(tmp_path, tiny_sd1)
    held = shutil.copytree(ME, tmp_path / "held")
    phases: list[str] = []

    def take_away(name: str, done: int, total: int) -> None:
        phases.append(name)
        if name.startswith("loading"):
            shutil.rmtree(place.photos)
            shutil.rmtree(held)

    settings = sdtune.TrainConfig(images=str(place.photos), base=str(place.base), output=str(tmp_path / "run"), device="cpu",
                                  max_train_steps=1, crop_style=crop, validation_data_dir=str(held), validation_steps=1)
    result = sdtune.train(settings, on_phase=take_away)
    assert any(name.startswith("loading") for name in phases)
    assert result.model_path
