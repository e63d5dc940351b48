"""`sdtune eval` as a program: its table, JSON and sheet on models that generate noise, its refusals, and the table of subjects.

That its figures are right is shown in tests/train/portrait/evaluate, on known inputs. The classifier here has random weights: what is
checked does not depend on how good it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from program import ROOT, run
from safetensors.torch import save_file

sys.path.insert(0, str(ROOT / "scripts"))

import compare_recipes  # noqa: E402
import eval_best_table  # noqa: E402
import eval_settings  # noqa: E402
import student  # noqa: E402

COLORS = ["red", "green", "blue", "yellow", "orange", "purple", "pink", "black", "white"]
HEADS = {
    "hat": ["none", "beanie", "cap", "top hat", "wide-brimmed hat"],
    "hat_color": COLORS,
    "glasses": ["none", "round glasses", "square glasses", "sunglasses"],
    "clothes": ["t-shirt", "striped sweater", "hoodie", "shirt", "jacket"],
    "clothes_color": COLORS,
    "expression": ["neutral", "smile", "laugh", "sad", "surprised"],
    "place": ["wall", "beach", "forest", "city night", "mountains", "bricks"],
    "wall_color": COLORS,
    "style": ["photo", "black and white", "sketch", "cartoon"],
    "hair_style": ["bald", "short", "afro", "long", "bob", "bun", "mohawk", "quiff"],
    "hair_color": ["black", "brown", "blond", "red", "grey", "white", "blue", "pink"],
    "facial_hair": ["none", "moustache", "goatee", "beard"],
    "streak": ["none", "left", "middle", "right"],
    "birthmark": ["none", "left cheek", "right cheek", "forehead", "chin"],
    "earrings": ["none", "gold", "red", "turquoise"],
    "mole": ["none", "first place", "second place", "third place", "fourth place"],
    "scar": ["none", "scar"],
}
NUMBERS = ["skin_tone", "skin_warmth", "hair_shade", "face_width", "jaw_width", "chin_width", "face_length", "eye_size",
           "eye_distance", "nose_length", "nose_width", "lip_size", "brow_thickness", "brow_slope", "ear_size", "hairline",
           "freckles"]


def classifier_weights() -> dict[str, torch.Tensor]:
    """The portrait classifier with random weights."""
    torch.manual_seed(0)
    weights: dict[str, torch.Tensor] = {}

    def layer(name: str, *shape: int) -> None:
        fan_in = torch.Size(shape[1:]).numel()
        weights[f"{name}.weight"] = torch.randn(shape) / fan_in**0.5
        weights[f"{name}.bias"] = torch.zeros(shape[0])

    def norm(name: str, channels: int) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = torch.ones(channels), torch.zeros(channels)

    widths = [32, 64, 128, 256]
    layer("conv_in", widths[0], 12, 3, 3)
    norm("norm_in", widths[0])
    for level, (before, width) in enumerate(zip(widths, widths[1:])):
        layer(f"downsamplers.{level}", width, before, 3, 3)
        for half in (1, 2):
            norm(f"resnets.{level}.norm{half}", width)
            layer(f"resnets.{level}.conv{half}", width, width, 3, 3)
    norm("norm_out", widths[-1])
    layer("conv_out", 64, widths[-1], 1, 1)
    layer("feature_proj", 256, 1024)
    layer("class_head", sum(len(classes) for classes in HEADS.values()), 256)
    layer("number_head", len(NUMBERS), 256)
    layer("embedding_head", 128, 256)
    return {name: weight.half() for name, weight in weights.items()}


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judge")
    identity = {"auc": 0.5, "threshold": 0.99, "accepted": 0.01}
    figures = {"people": 2, "views": 3, "references": 2, "accuracy": {}, "mean_error": {}, "by_pair": identity,
               "by_references": identity}
    info = {"format": 1, "size": 64, "features": 256, "embedding": 128, "heads": HEADS, "numbers": NUMBERS,
            "figures": figures}
    save_file(classifier_weights(), folder / "judge.safetensors")
    (folder / "judge.json").write_text(json.dumps(info))
    return folder


@pytest.fixture(scope="module")
def quick(tiny_base: Path) -> list[str]:
    return ["--model", str(tiny_base), "--base", str(tiny_base), "--quick", "--steps", "1", "--device", "cpu"]


@pytest.fixture(scope="module")
def evaluated(classifier: Path, quick: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A folder written by eval, and what it printed as JSON."""
    folder = tmp_path_factory.mktemp("eval") / "out"
    done = run(["eval", *quick, "--judge", str(classifier), "--subject", "3", "--output", str(folder), "--json"])
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_prints_and_keeps_every_figure_of_every_row(evaluated: tuple[Path, dict]) -> None:
    folder, printed = evaluated
    assert printed == json.loads((folder / "eval.json").read_text())
    assert list(printed["rows"]) == ["tuned", "renders", "base", "shuffled"]
    tuned = printed["rows"]["tuned"]
    assert set(tuned) == set(printed["rows"]["renders"]) == set(printed["rows"]["base"])
    for figure in tuned.values():
        assert figure["low"] <= figure["value"] <= figure["high"] and figure["count"] > 0
    # The model was not tuned: it is its own base, to the last digit.
    assert tuned == printed["rows"]["base"]
    assert printed["diversity_kept"] == printed["class_fidelity_kept"] == 1.0


def test_quick_says_what_it_saves(evaluated: tuple[Path, dict]) -> None:
    """By the images of a model: 14 of the subject, 32 of the class and one a prompt of it, where it said a fifth of the time."""
    tuned, header = evaluated[1]["rows"]["tuned"], (ROOT / "app/commands/eval_options.h").read_text()
    images, class_images = (int(re.search(rf" {name} = (\d+);", header)[1]) for name in ("num_images", "num_class_images"))
    prompts = tuned["subject_fidelity"]["count"]
    quick = prompts + tuned["leak"]["count"] + prompts
    whole = prompts * images + class_images + prompts * 2
    assert 1 / 5 < quick / whole < 1 / 3
    assert "less than a third of the time" in " ".join(run(["eval", "--help"]).stdout.split())


def test_the_sheet_has_three_rows_of_fourteen(evaluated: tuple[Path, dict]) -> None:
    with Image.open(evaluated[0] / "sheet.png") as sheet:
        assert sheet.size == (14 * 64 + 15 * 4, 3 * 64 + 4 * 4)


def test_reads_the_subject_off_rendered_photos(classifier: Path, quick: list[str], evaluated: tuple[Path, dict],
                                               tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    assert run(["render", "--subject", "3", "--views", "5", "--size", "64", "--detail", "64", "--output", str(photos)]).returncode == 0
    done = run(["eval", *quick, "--judge", str(classifier), "--images", str(photos), "--output", str(tmp_path / "out"),
                "--json"])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["images"] == str(photos) and evaluated[1]["images"] is None and found["output"] == str(tmp_path / "out")
    # The same five views as without --images.
    assert {**found, "images": None, "output": ""} == {**evaluated[1], "output": ""}
    other = run(["eval", *quick, "--judge", str(classifier), "--images", str(photos), "--subject", "4"])
    assert other.returncode == 2 and "--subject" in other.stderr


@pytest.mark.long
def test_the_base_is_the_one_that_the_run_names(classifier: Path, tiny_base: Path, tmp_path: Path) -> None:
    """Where --base is not given; one that is gone is said by name."""
    folder = tmp_path / "run"
    shutil.copytree(tiny_base, folder / "model")
    words = ["eval", "--model", str(folder), "--quick", "--steps", "1", "--device", "cpu", "--judge", str(classifier), "--subject", "3", "--json",
             "--output", str(tmp_path / "out")]
    (folder / "config.yaml").write_text(f"base: {tiny_base}\n")
    done = run(words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["base"] == str(tiny_base)
    (folder / "config.yaml").write_text("base: ./nowhere\n")
    done = run(words)
    assert done.returncode == 2 and "./nowhere" in done.stderr
    done = run(["eval", "--model", f"{folder}/model/", *words[3:]])
    assert done.returncode == 2 and "./nowhere" in done.stderr, "with the slash that a shell's completion adds"
    (folder / "config.yaml").write_text(f"base: {tiny_base}\nno_such_option: 1\n")
    done = run(words)
    assert done.returncode == 2 and "config.yaml" in done.stderr and "no_such_option" in done.stderr and "--base" in done.stderr, done.stderr
    done = run([*words, "--base", str(tiny_base)])
    assert done.returncode == 0, done.stderr


def test_a_base_of_another_size_is_not_taken_for_the_model_s(tmp_path: Path) -> None:
    """Nothing says what portrait-64 was trained from, and the bundled base is portrait-128, whose figures are no base's of it."""
    done = run(["eval", "--model", "portrait-64", "--subject", "3", "--quick", "--steps", "1", "--device", "cpu", "--output", str(tmp_path / "out")])
    assert done.returncode == 2, done.stderr
    assert "--base: is not given, and " in done.stderr and "generates images of 128 px, the model of 64" in done.stderr
    assert not (tmp_path / "out").exists()


def test_refuses_what_it_cannot_measure(classifier: Path, quick: list[str], tmp_path: Path) -> None:
    asked = [(["--judge", str(classifier)], "--subject"), (["--judge", str(tmp_path), "--subject", "1"], "judge.json"),
             (["--judge", str(classifier), "--subject", "1", "--instance-prompt", "sks person"], "--instance-prompt")]
    for more, named in asked:
        done = run(["eval", *quick, *more, "--output", str(tmp_path / "out")])
        assert done.returncode == 2 and named in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_photos_of_another_detail_are_refused(classifier: Path, quick: list[str], tmp_path: Path) -> None:
    """The same number is another face in people of 128 px, whom this classifier was not trained on."""
    photos = tmp_path / "photos"
    assert run(["render", "--subject", "3", "--views", "2", "--size", "64", "--detail", "128", "--output", str(photos)]).returncode == 0
    done = run(["eval", *quick, "--judge", str(classifier), "--images", str(photos), "--output", str(tmp_path / "out")])
    assert done.returncode == 2, done.stderr
    assert "shows people of detail 128, and the classifier reads those of detail 64" in done.stderr and not (tmp_path / "out").exists()


def test_a_folder_of_photos_that_is_none_is_named(quick: list[str], tmp_path: Path) -> None:
    for more in ([], ["--subject", "3"]):
        done = run(["eval", *quick, "--images", str(tmp_path / "nowhere"), "--output", str(tmp_path / "out"), *more])
        assert done.returncode == 2 and f"--images: there is no such folder (got {tmp_path / 'nowhere'})" in done.stderr, done.stderr
        assert "labels.jsonl" not in done.stderr


def test_quick_and_numbers_of_images_contradict(quick: list[str]) -> None:
    done = run(["eval", *quick, "--subject", "3", "--num-images", "2", "--num-class-images", "64"])
    assert done.returncode == 2, done.stderr
    for option in ("--num-images", "--num-class-images"):
        assert f"{option}: contradicts --quick, which sets it" in done.stderr


def test_an_output_that_cannot_be_is_refused_first(quick: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(["eval", *quick, "--subject", "3", "--judge", str(tmp_path), "--output", str(tmp_path / "file" / "out")])
    assert done.returncode == 2 and f"--output: {tmp_path / 'file'} is not a folder" in done.stderr, done.stderr
    assert "judge" not in done.stderr, "before the models are looked at"


def test_figures_are_printed_although_a_file_cannot_be_written(classifier: Path, quick: list[str], tmp_path: Path) -> None:
    (tmp_path / "out" / "eval.json" / "full").mkdir(parents=True)
    done = run(["eval", *quick, "--judge", str(classifier), "--subject", "3", "--output", str(tmp_path / "out")])
    assert done.returncode not in (0, 2) and "eval.json" in done.stderr, done.stderr
    assert "subject_fidelity" in done.stdout and "diversity_kept" in done.stdout


def test_many_subjects_become_one_table(evaluated: tuple[Path, dict], tmp_path: Path) -> None:
    shares = {0: 0.9, 1: 0.7, 2: 0.8}
    for number, share in shares.items():
        evaluation = json.loads(json.dumps(evaluated[1]))
        evaluation["accepted_of_renders"] = share
        evaluation["rows"]["tuned"]["leak"]["value"] = 0.06
        evaluation["rows"]["tuned"]["copied"]["value"] = share
        for band, value in (("fine", 1.1), ("middle", 1.2), ("coarse", 0.8)):
            evaluation["rows"]["tuned"][f"sharpness_{band}"] = {"value": value}
        folder = tmp_path / str(number) / "eval"
        folder.mkdir(parents=True)
        (folder / "eval.json").write_text(json.dumps(evaluation))
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "eval_table.py"), str(tmp_path)], capture_output=True,
                          text=True, check=True)
    share = json.loads((tmp_path / "eval_subjects.json").read_text())["summary"]["accepted, share of renders"]
    assert share["mean"] == pytest.approx(0.8) and share["interval"][0] == pytest.approx(0.8 - 4.303 * 0.1 / 3**0.5), "of Student's t"
    assert not share["meets_bar"] and share["meets_floor"]
    assert "| accepted, share of renders | 0.90 | 0.70 | 0.80 | 0.80 (0.55..1.05) | 0.95: missed | 0.75: met |" in done.stdout
    assert "| copied | 0.90 | 0.70 | 0.80 | 0.80 (0.55..1.00) | 0.12: missed |" in done.stdout, "a share is 1 at most"
    assert "| leak | 0.06 | 0.06 | 0.06 | 0.06 (0.06..0.06) | 0.02: missed | 0.08: met |" in done.stdout
    for band, verdict in (("fine", "met"), ("middle", "missed"), ("coarse", "missed")):  # too sharp is as wrong as too soft
        line = next(line for line in done.stdout.splitlines() if line.startswith(f"| sharpness, {band},"))
        assert line.endswith(f"| 0.85 to 1.15: {verdict} |  |")
    some = subprocess.run([sys.executable, str(ROOT / "scripts" / "eval_table.py"), str(tmp_path), "0", "2"], capture_output=True,
                          text=True, check=True)
    assert "| figure | 0 | 2 | mean (95 %) |" in some.stdout
    summary = json.loads((tmp_path / "eval_subjects.json").read_text())["summary"]
    for name, row, figure in (("prompt fidelity, base", "base", "prompt_fidelity"), ("subject fidelity, shuffled", "shuffled", "subject_fidelity"),
                              ("leak, renders", "renders", "leak"), ("copied, base", "base", "copied")):
        assert summary[name]["mean"] == pytest.approx(evaluated[1]["rows"][row][figure]["value"]) and "bar" not in summary[name], name
    missing = subprocess.run([sys.executable, str(ROOT / "scripts" / "eval_table.py"), str(tmp_path), "0", "5"], capture_output=True,
                             text=True, check=False)
    assert missing.returncode == 2 and "no 5/eval/eval.json" in missing.stderr


def test_the_difference_of_one_subject_has_no_interval(evaluated: tuple[Path, dict], tmp_path: Path) -> None:
    for kind in ("best", "last"):
        (tmp_path / "0" / kind).mkdir(parents=True)
        shutil.copy(evaluated[0] / "eval.json", tmp_path / "0" / kind / "eval.json")
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "eval_best_table.py"), str(tmp_path)], capture_output=True, text=True, check=True)
    assert "nan" not in done.stdout and "| +0.000 |" in done.stdout, done.stdout
    assert json.loads((tmp_path / "eval_best.json").read_text())["summary"]["leak"]["interval"] is None


def test_both_tables_have_one_quantile_of_student() -> None:
    assert eval_best_table.interval([0.0, 1.0, 2.0])[2] == pytest.approx(1 + 4.303 / 3**0.5)
    assert student.mean_and_half([0.0, 1.0, 2.0]) == (1.0, pytest.approx(4.303 / 3**0.5))
    assert student.quantile(9) == 2.262 and student.quantile(1000) == 2.042


PROGRAM = """#!/usr/bin/env python3
import os, pathlib, sys
words = sys.argv[1:]
if words == ["--version"]:
    sys.exit(print("sdtune", os.environ.get("STUB_VERSION", "1.0")))
output = pathlib.Path(words[words.index("--output") + 1])
output.mkdir(parents=True, exist_ok=True)
(output / {"render": "labels.jsonl", "train": "model", "eval": "eval.json"}[words[0]]).write_text(pathlib.Path(%r).read_text())
with open(%r, "a") as log:
    print(*words, file=log)
"""


def test_results_of_other_settings_are_not_mixed(evaluated: tuple[Path, dict], tiny_base: Path, tmp_path: Path) -> None:
    log, program, folder, base = (tmp_path / name for name in ("log", "sdtune", "subjects", "base"))
    program.write_text(PROGRAM % (str(evaluated[0] / "eval.json"), str(log)))
    program.chmod(0o755)
    shutil.copytree(tiny_base, base)

    def called(script: str = "eval_subjects.sh", **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "SDTUNE_PROGRAM": str(program), "BASE": str(base), "SUBJECTS": "3 4", **more}
        return subprocess.run([str(ROOT / "scripts" / script), str(folder)], capture_output=True, text=True, env=environment, check=False)

    assert (done := called()).returncode == 0, done.stderr
    assert "| figure | 3 | 4 | mean" in done.stdout
    first = log.read_text()
    (folder / "7" / "eval").mkdir(parents=True)
    shutil.copy(folder / "3" / "eval" / "eval.json", folder / "7" / "eval" / "eval.json")
    assert "| figure | 3 | 4 | mean" in called().stdout, "the other number is not asked for"
    assert log.read_text() == first, "nothing is done again"
    refused = called(EVAL_FLAGS="--quick")
    assert refused.returncode == 2 and "settings.json: eval_flags is ''" in refused.stderr, refused.stderr
    refused = called(STUB_VERSION="1.1")
    assert refused.returncode == 2 and "settings.json: program is 'sdtune 1.0', now 'sdtune 1.1'" in refused.stderr, refused.stderr
    for name in ("sdtune_defaults.yaml", "scheduler/scheduler_config.json"):
        before = (base / name).read_text() if (base / name).is_file() else None
        (base / name).write_text(f"{before or ''}\n")
        assert (refused := called()).returncode == 2 and "settings.json: base_files is " in refused.stderr, name
        (base / name).unlink() if before is None else (base / name).write_text(before)
    (base / "README.md").write_text("a card\n")
    assert called().returncode == 0 and log.read_text() == first, "the card changes no result"
    shutil.rmtree(folder / "4")
    (folder / "4" / "photos").mkdir(parents=True)
    (folder / "4" / "train_seconds").write_text("1")
    assert called().returncode == 0 and log.read_text().count("render --subject 4") == 2, "photos without labels are not complete"
    (folder / "settings.json").unlink()
    assert (unknown := called()).returncode == 2 and "no settings.json" in unknown.stderr
    shutil.rmtree(folder)
    assert (done := called("eval_best.sh")).returncode == 0, done.stderr
    assert "2 subjects." in done.stdout and "train_flags" in json.loads((folder / "settings.json").read_text())
    refused = called("eval_best.sh", EVAL_FLAGS="--quick")
    assert refused.returncode == 2 and "settings.json: eval_flags is ''" in refused.stderr, refused.stderr


def test_every_file_of_the_classifier_counts(classifier: Path, tmp_path: Path) -> None:
    shutil.copytree(classifier, tmp_path / "judge")
    before = eval_settings.hash_of_files(tmp_path / "judge")
    assert before == eval_settings.hash_of_files(classifier)
    (tmp_path / "judge" / "judge.json").write_text("{}")
    assert eval_settings.hash_of_files(tmp_path / "judge") != before


def test_the_detail_of_a_base_is_that_of_its_resolution(tmp_path: Path) -> None:
    for name, detail in (("portrait-64", "64"), ("portrait-128", "128")):
        base = tmp_path / f"{name}-of-1280-steps"
        for part in ("unet", "vae"):
            (base / part).mkdir(parents=True)
            shutil.copy(ROOT / "models" / name / part / "config.json", base / part / "config.json")
        assert eval_settings.detail_of_base(str(base)) == eval_settings.detail_of_base(name) == detail


def test_a_recipe_of_fewer_steps_is_a_run_of_its_own(tmp_path: Path) -> None:
    assert compare_recipes.run_for(tmp_path, 200) == (tmp_path / "run", [])
    (tmp_path / "run").mkdir()
    assert compare_recipes.run_for(tmp_path, 200) == (tmp_path / "run", ["--overwrite"]), "it has no checkpoint to resume from"
    (tmp_path / "run" / "checkpoints" / "step-00000325").mkdir(parents=True)
    resumed = (tmp_path / "run", ["--resume-from-checkpoint", "auto"])
    assert compare_recipes.run_for(tmp_path, 325) == resumed
    assert compare_recipes.run_for(tmp_path, 200) == (tmp_path / "run_200", ["--overwrite"])
    (tmp_path / "eval_350").mkdir()
    assert compare_recipes.run_for(tmp_path, 325) == (tmp_path / "run_325", ["--overwrite"])
    assert compare_recipes.run_for(tmp_path, 350) == resumed
    assert compare_recipes.name_of(("--learning-rate", "1e-4")) != compare_recipes.name_of(("--learning-rate", "1e4"))
