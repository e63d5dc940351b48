"""Functions that run the program: each reports and writes what its command does in a shell, and refuses with the same line."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_server import TOKEN, Hub, serve
from PIL import Image
from program import ROOT, run
from safetensors.torch import save_file
from test_eval import classifier  # noqa: F401

import sdtune
from sdtune import _commands

DOG = ROOT / "examples" / "backpack_dog"


def printed(words: list[str], code: int = 0, **environment: str) -> dict[str, Any]:
    """What the command prints with --json in a shell."""
    done = run([*words, "--json"], **environment)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def assert_documented(command: str, report: dict[str, Any]) -> None:
    """docs/commands.md names the keys that --json prints."""
    (row,) = [line for line in (ROOT / "docs" / "commands.md").read_text().splitlines() if line.startswith(f"| `{command}` |")]
    assert set(re.findall(r"`(\w+)`", row.split("|")[4])) == report.keys()


def contents(folder: Path) -> dict[str, bytes]:
    """Path -> bytes of every file."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def renamed(report: dict[str, Any], old: object, new: object) -> dict[str, Any]:
    """The report of a command that wrote elsewhere."""
    found: dict[str, Any] = json.loads(json.dumps(report).replace(str(old), str(new)))
    return found


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sharp photo, a small one, one that is no image, and a file that is no photo."""
    folder = tmp_path_factory.mktemp("photos") / "me & <b>"
    folder.mkdir()
    draw = np.random.default_rng(0)
    for name, side in (("a.png", 96), ("b.png", 40), ("c.png", 96)):
        Image.fromarray(draw.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(folder / name)
    (folder / "a.txt").write_text("a photo of <i>sks</i> person")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff" + bytes(100))
    (folder / "notes.pdf").write_text("no photo")
    return folder


@pytest.fixture(scope="module")
def lora(tiny_sd1: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one step on the tiny model."""
    folder = tmp_path_factory.mktemp("lora") / "run"
    result = sdtune.train(config(tiny_sd1, folder, method="lora", rank=2))
    assert result.model_path is not None
    return result.model_path / "pytorch_lora_weights.safetensors"


def config(base: Path, output: Path, **others: Any) -> sdtune.TrainConfig:
    """A run of one step."""
    settings = {"images": DOG, "base": str(base), "output": str(output), "device": "cpu", "resolution": 32, "max_train_steps": 1,
                "with_prior_preservation": False, "train_batch_size": 1, "report_to": "none", "report_images": 0, **others}
    return sdtune.TrainConfig(**settings)


def test_render(tmp_path: Path) -> None:
    words = ["--count", "2", "--views", "2", "--size", "32", "--set", "validation"]
    expected = printed(["render", *words, "--output", str(tmp_path / "b"), "--contact-sheet", str(tmp_path / "b.png")])
    report = sdtune.render(output=tmp_path / "a", count=2, views=2, size=32, set="validation", contact_sheet=tmp_path / "a.png")
    found = report.to_dict()
    assert_documented("render", found)
    assert found.pop("seconds") >= 0 and expected.pop("seconds") >= 0
    assert found == renamed(expected, tmp_path / "b", tmp_path / "a")
    assert contents(tmp_path / "a") == contents(tmp_path / "b") and len(contents(tmp_path / "a")) == 9
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (report.images, report.planned, report.contact_sheet) == (4, 4, tmp_path / "a.png")
    assert repr(report).startswith("RenderReport(output=PosixPath(") and "data:image/png" in report._repr_html_()


def test_inspect(tiny_sd1: Path, photos: Path, lora: Path) -> None:
    for path in (tiny_sd1, tiny_sd1 / "vae", photos, lora, lora.parent.parent, DOG / "00.jpg"):
        found = sdtune.inspect(path)
        assert found == printed(["inspect", str(path)])
        assert found.kind in repr(found) and str(found["path"]) in repr(found) and "<table" in found._repr_html_()


def test_doctor(photos: Path, tmp_path: Path) -> None:
    """The photo that is refused is in the report: the command exits with 2, the function returns."""
    expected = printed(["doctor", "--images", str(photos), "--resolution", "64", "--contact-sheet", str(tmp_path / "b.png")], 2)
    report = sdtune.doctor(sdtune.TrainConfig(images=photos, resolution=64), contact_sheet=tmp_path / "a.png")
    assert isinstance(report, sdtune.PhotoReport) and not report.ok
    assert report.to_dict() == renamed(expected, tmp_path / "b.png", tmp_path / "a.png")
    assert_documented("doctor", expected)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert [photo.file.name for photo in report.photos] == ["a.png", "b.png", "c.png"]
    (refused,) = report.problems
    assert refused.where.endswith("broken.jpg")
    assert [warning.what for warning in report.warnings_of(report.photos[1])][0].startswith("is smaller than")
    assert str(refused) in repr(report) and "1 refused" in repr(report)


def test_doctor_of_the_machine() -> None:
    """The same checks; what they find, such as free memory, changes from one call to the next."""
    expected = printed(["doctor", "--machine"])
    report = sdtune.doctor(machine=True)
    assert isinstance(report, sdtune.MachineReport) and report.ok
    assert report.to_dict().keys() == expected.keys()
    assert_documented("doctor --machine", expected)
    assert [check.name for check in report.checks] == [check["name"] for check in expected["checks"]]
    assert report.device == expected["device"] and all(check.name in repr(report) for check in report.checks)


def test_prepare(tiny_sd1: Path, tmp_path: Path) -> None:
    """The same cache and contact sheet; train then finds its images encoded."""
    ours = config(tiny_sd1, tmp_path / "a", with_prior_preservation=True, num_class_images=2, class_num_inference_steps=1)
    report = sdtune.prepare(ours)
    flags = [*_commands.flags_of(_commands.given_options(ours), ours.options())]
    expected = printed(["prepare", *flags, "--output", str(tmp_path / "b")])
    assert report.to_dict() == renamed(expected, tmp_path / "b", tmp_path / "a")
    assert contents(report.cache).keys() == contents(tmp_path / "b" / "cache").keys() and contents(report.cache)
    assert report.contact_sheet.read_bytes() == (tmp_path / "b" / "contact_sheet.png").read_bytes()
    assert_documented("prepare", expected)
    assert report.class_images == 2 and report.photos.ok and len(report.photos.photos) == 5
    before = {path: path.stat().st_mtime_ns for path in report.cache.rglob("*")}
    assert sdtune.train(ours).step == 1
    assert {path: path.stat().st_mtime_ns for path in report.cache.rglob("*")} == before


def test_convert_in_all_its_kinds(tiny_sd1: Path, lora: Path, tmp_path: Path) -> None:
    import torch
    torch.save({"state_dict": {"a": torch.ones(2), "epoch": 3}}, tmp_path / "p.ckpt")
    calls: dict[str, dict[str, Any]] = {
        "model": {"model": tiny_sd1, "dtype": "float16"},
        "lora": {"model": tiny_sd1, "lora": lora, "lora_naming": "kohya"},
        "pickle": {"pickle": tmp_path / "p.ckpt"}}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    for kind, options in calls.items():
        # A single file names itself in its metadata, so that both have one name.
        ours, theirs = tmp_path / "a" / f"{kind}.safetensors", tmp_path / "b" / f"{kind}.safetensors"
        flags = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
        expected = printed(["convert", *flags, "--output", str(theirs)])
        report = sdtune.convert(**options, output=ours)
        assert report.to_dict() == renamed(expected, theirs, ours) and report.kind == kind and report.output == ours
        assert_documented("convert" if kind == "model" else f"convert --{kind}", expected)
        assert ours.read_bytes() == theirs.read_bytes()
        assert sdtune.convert(**options, output=tmp_path / "no.safetensors", dry_run=True).output is None
        assert not (tmp_path / "no.safetensors").exists()
    assert report.ignored == ("epoch",) and report.tensors == 1


def test_merge(tiny_sd1: Path, lora: Path, tmp_path: Path) -> None:
    expected = printed(["merge", "--model", str(tiny_sd1), "--lora", f"{lora}:0.5", "--lora", str(lora), "--output", str(tmp_path / "b")])
    report = sdtune.merge(model=tiny_sd1, lora=[f"{lora}:0.5", lora], output=tmp_path / "a")
    assert report.to_dict() == renamed(expected, tmp_path / "b", tmp_path / "a")
    assert_documented("merge", expected)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert [one.weight for one in report.loras] == [0.5, 1.0] and report.branches > 0


@pytest.mark.long
def test_evaluate(classifier: Path, tiny_base: Path, tmp_path: Path) -> None:  # noqa: F811
    words = ["--model", str(tiny_base), "--base", str(tiny_base), "--quick", "--steps", "1", "--device", "cpu", "--subject", "3"]
    expected = printed(["eval", *words, "--classifier", str(classifier), "--output", str(tmp_path / "b")])
    report = sdtune.evaluate(model=tiny_base, base=tiny_base, quick=True, steps=1, device="cpu", subject=3, classifier=classifier,
                             output=tmp_path / "a")
    assert report.to_dict() == renamed(expected, tmp_path / "b", tmp_path / "a")
    assert (tmp_path / "a" / "sheet.png").read_bytes() == (tmp_path / "b" / "sheet.png").read_bytes()
    assert_documented("eval", expected)
    figure = expected["rows"]["tuned"]["subject_fidelity"]["value"]
    assert report.rows["tuned"]["subject_fidelity"].value == figure and f"{figure:.3f}" in repr(report)
    assert sdtune.eval is sdtune.evaluate and report.sheet.is_file() and "data:image/png" in report._repr_html_()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with serve() as running:
        for name, value in {"HF_ENDPOINT": running.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN,
                            "HF_HUB_CACHE": ""}.items():
            monkeypatch.setenv(name, value)
        yield running


def test_push_and_fetch(hub: Hub, lora: Path, tmp_path: Path) -> None:
    run_folder = lora.parent.parent
    dry = sdtune.push(run_folder, "org/lora", dry_run=True)
    assert dry.to_dict() == printed(["push", str(run_folder), "org/lora", "--dry-run"])
    assert_documented("push", dry.to_dict())
    assert not dry.uploaded and dry.commit is None and "org/lora" in dry.card and not hub.models
    pushed = sdtune.push(run_folder, "org/lora", commit_message="mine")
    assert pushed.uploaded and pushed.url == f"{hub.url}/org/lora" and hub.models["org/lora"].messages[-1] == "mine"
    assert {file.file for file in pushed.files} <= hub.models["org/lora"].commits[pushed.commit or ""].keys()
    expected = printed(["fetch", "org/lora", "--file", lora.name, "--cache-dir", str(tmp_path / "b")])
    report = sdtune.fetch("org/lora", file=[lora.name], cache_dir=tmp_path / "a")
    assert report.to_dict() == renamed(expected, tmp_path / "b", tmp_path / "a")
    assert_documented("fetch", expected)
    assert report.path.read_bytes() == lora.read_bytes() and report.files[0].downloaded and report.commit == pushed.commit
    assert not sdtune.fetch("org/lora", file=lora.name, cache_dir=tmp_path / "a").files[0].downloaded


REFUSED: dict[str, tuple[Callable[[], object], list[str]]] = {
    "a value out of range": (lambda: sdtune.render(count=0), ["render", "--count=0"]),
    "a wrong type": (lambda: sdtune.render(count="many"), ["render", "--count=many"]),
    "an unknown keyword": (lambda: sdtune.render(cout=3), ["render", "--cout=3"]),
    "an unknown keyword that is None": (lambda: sdtune.render(cout=None), ["render", "--cout=none"]),
    "two problems": (lambda: sdtune.render(count=0, size=1), ["render", "--count=0", "--size=1"]),
    "options that contradict": (lambda: sdtune.render(subject=1, seed=0), ["render", "--subject=1", "--seed=0"]),
    "a wrong choice": (lambda: sdtune.merge(dtype="half"), ["merge", "--dtype=half"]),
    "nothing given": (lambda: sdtune.convert(), ["convert"]),
    "no file": (lambda: sdtune.inspect("nowhere"), ["inspect", "nowhere"]),
    "a file of another kind": (lambda: sdtune.inspect(ROOT / "README.md"), ["inspect", str(ROOT / "README.md")]),
    "no run": (lambda: sdtune.push("nowhere", "org/name"), ["push", "nowhere", "org/name"]),
    "no id": (lambda: sdtune.fetch("noname"), ["fetch", "noname"]),
    "no photos named": (lambda: sdtune.doctor(), ["doctor"]),
    "an empty folder": (lambda: sdtune.doctor(sdtune.TrainConfig(images="scripts")), ["doctor", "--images=scripts"]),
    "no folder": (lambda: sdtune.prepare(sdtune.TrainConfig(images="nowhere", output="x")),
                  ["prepare", "--images=nowhere", "--output=x"]),
    "no subject": (lambda: sdtune.evaluate(quick=True), ["eval", "--quick"]),
    "a disk that refuses": (lambda: sdtune.render(output="/proc/renders", count=1), ["render", "--output=/proc/renders", "--count=1"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_the_command(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same lines and exit code, as the class that the module has for it, and nothing on stderr beside."""
    monkeypatch.chdir(ROOT)
    call, words = REFUSED[name]
    shell = run(words, cwd=ROOT)
    lines = [line.removeprefix("sdtune: error: ") for line in shell.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert lines and shell.returncode > 0
    with pytest.raises(sdtune.Error) as caught:
        call()
    assert str(caught.value).splitlines() == lines == [str(problem) for problem in caught.value.problems]
    assert caught.value.exit_code == shell.returncode
    kind = {"inspect": sdtune.DataError if name == "no file" else sdtune.WeightError, "push": sdtune.WeightError}
    expected = sdtune.StorageError if shell.returncode == 5 else kind.get(words[0], sdtune.ConfigError)
    if name == "an empty folder":
        expected = sdtune.DataError
    assert type(caught.value) is expected


def test_errors_are_json_where_they_are_asked_for(tmp_path: Path) -> None:
    """What other programs may use as well: in the file, and then not on stderr. A file that cannot be written: on stderr."""
    told = tmp_path / "error.json"
    done = run(["render", "--count=0"], SDTUNE_ERROR_FILE=str(told))
    assert done.returncode == 2 and done.stderr == ""
    error = json.loads(told.read_text())
    assert error["error"] == "ConfigError" and error["exit_code"] == 2
    assert [problem["where"] for problem in error["problems"]] == ["--count"]
    assert "sdtune: error: --count" in run(["render", "--count=0"], SDTUNE_ERROR_FILE=str(tmp_path / "no" / "folder")).stderr


@pytest.mark.parametrize("call", [
    lambda: sdtune.render(count=[1, 2]), lambda: sdtune.render(output="a\0b"), lambda: sdtune.render(progress="no"),
    lambda: sdtune.doctor({"images": "me"}), lambda: sdtune.evaluate(seed={"a": 1})], ids=["list", "nul", "progress", "dict", "mapping"])
def test_what_no_command_line_could_say_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(sdtune.ConfigError) as caught:
        call()
    assert caught.value.exit_code == 2 and caught.value.problems[0].where


def test_words_that_begin_like_options_are_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """--help would print a page."""
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (8, 8)).save("--help.png")
    assert sdtune.inspect("--help.png")["width"] == 8
    with pytest.raises(sdtune.ConfigError, match="is no name of a model"):
        sdtune.fetch("--help")


def test_what_the_program_says_is_shown_unless_it_shall_not(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sdtune.render(output=tmp_path / "a", count=1, size=16)
    assert "1 images of 16 px" in capfd.readouterr().err
    sdtune.render(output=tmp_path / "b", count=1, size=16, progress=False)
    assert capfd.readouterr().err == ""


def test_every_option_of_the_command_is_a_keyword() -> None:
    """From the program's own list; the mutant has one less."""
    import inspect
    listed = json.loads(run(["reference", "--json"]).stdout)
    of_train = {option["name"] for option in listed["train"]["options"]}
    for command, (function, _) in _commands.FUNCTIONS.items():
        own = {option["name"] for option in listed[command]["options"]} - {"json"}
        expected = own - of_train if of_train <= own else own
        words = {word["name"] for word in listed[command]["words"]}
        found = set(inspect.signature(getattr(sdtune, function.__name__)).parameters) - {"progress"}
        assert found == expected | words | ({"config"} if of_train <= own else set())
        assert found != (expected | words) - {min(found)}
        text = inspect.getdoc(getattr(sdtune, function.__name__)) or ""
        assert all(f"  {name}: " in text for name in expected)


def test_reports_pickle_and_copy(tmp_path: Path) -> None:
    report = sdtune.render(output=tmp_path / "a", count=1, size=16)
    for other in (pickle.loads(pickle.dumps(report)), copy.copy(report), copy.deepcopy(report)):
        assert other == report and other.to_dict() == report.to_dict()
    with pytest.raises(AttributeError):
        report.images = 5
    report.to_dict()["images"] = 5
    assert report.to_dict()["images"] == 1


def test_a_lora_without_weights_is_not_merged(tiny_sd1: Path, tmp_path: Path) -> None:
    """A refusal after the model was read leaves nothing behind."""
    save_file({"unet.a.lora_A.weight": __import__("torch").ones(2, 2)}, tmp_path / "odd.safetensors")
    with pytest.raises(sdtune.Error):
        sdtune.merge(model=tiny_sd1, lora=[tmp_path / "odd.safetensors"], output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
