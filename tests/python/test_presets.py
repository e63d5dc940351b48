"""The presets that come with the installation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from program import run
from tiny_models import make_pipeline
from training_reference import write_base, write_photos

import sdtune

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
TABLES = ("gpus.yaml", "preset_memory.yaml", "processors.yaml")
PRESETS = sorted(path.name for path in CONFIGS.glob("*.yaml") if path.name not in TABLES)


def test_every_method_and_family_has_one() -> None:
    assert {f"{method}_{family}.yaml" for method in ("full", "lora") for family in ("sd15", "sd21", "sdxl", "portrait-64", "portrait-128")} <= set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_read_and_explained(name: str) -> None:
    """Every key is known and every value allowed; the comment says what it is for."""
    config = sdtune.TrainConfig.from_yaml(CONFIGS / name)
    if name.startswith(("full", "lora")):
        assert config.method == name.split("_")[0].removesuffix(".yaml")
    assert (CONFIGS / name).read_text().startswith("# ")


def test_a_preset_is_found_by_its_name_alone() -> None:
    assert sdtune.TrainConfig.from_yaml("full_sd15") == sdtune.TrainConfig.from_yaml("full_sd15.yaml")
    with pytest.raises(sdtune.ConfigError, match="full_sd16"):
        sdtune.TrainConfig.from_yaml("full_sd16")


def test_epochs_that_are_asked_for_are_not_hidden_by_a_preset() -> None:
    """The bundled bases' presets have a number of steps."""
    base = CONFIGS.parent / "models" / "portrait-64"
    assert sdtune.TrainConfig(base=str(base)).max_train_steps > 0
    assert sdtune.TrainConfig(base=str(base), num_train_epochs=3).max_train_steps is None
    assert sdtune.TrainConfig(base=str(base), num_train_epochs=3, max_train_steps=7).max_train_steps == 7
    images = CONFIGS.parent / "examples" / "me"
    run = sdtune.plan(sdtune.TrainConfig(images=str(images), base=str(base), num_train_epochs=3, train_batch_size=1), savings=False)["run"]
    assert run["total_steps"] == 3 * run["photos"]


def test_lora_learns_faster_than_all_weights() -> None:
    """The second matrix of a layer starts at zero: a LoRA's rate is tens of times that of the weights themselves."""
    for family in ("sd15", "sd21", "sdxl"):
        full, lora = (sdtune.TrainConfig.from_yaml(CONFIGS / f"{method}_{family}.yaml") for method in ("full", "lora"))
        assert lora.learning_rate >= 20 * full.learning_rate


@pytest.mark.parametrize("base", ["portrait-64", "portrait-128"])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_bundled_base_carries_its_presets(method: str, base: str) -> None:
    copy = CONFIGS.parent / "models" / base / ("sdtune_defaults.yaml" if method == "full" else f"sdtune_defaults_{method}.yaml")
    """But for the line that names the schema, which is beside the one and not beside the other."""
    text = (CONFIGS / f"{method}_{base}.yaml").read_text()
    assert copy.read_text() == text.replace("# yaml-language-server: $schema=train.schema.json\n", "")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a preset of its own for LoRA."""
    folder = tmp_path_factory.mktemp("presets")
    path = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base", block_out_channels=(16, 32), layers_per_block=1,
                      attention_head_dim=2)
    (path / "sdtune_defaults_lora.yaml").write_text(
        "with_prior_preservation: true\nnum_class_images: 6\nclass_num_inference_steps: 3\nrank: 2\nmax_train_steps: 9\n")
    return path


def words(base: Path, folder: Path) -> list[str]:
    """A run of two steps; its first flags override two values of the preset."""
    return ["--max-train-steps=2", "--rank=3", "--method=lora", "--base", str(base), "--images", str(write_photos(folder / "photos", 2, seed=0)),
            "--output", str(folder / "run"), "--report-to=none", "--device=cpu"]


SET = "preset   base/sdtune_defaults_lora.yaml: with_prior_preservation true, num_class_images 6, class_num_inference_steps 3"
GENERATED = "generate 6 class images of 3 steps, before training; those found in class_data_dir are not generated again"


def test_a_run_says_what_a_preset_set_before_it_generates(base: Path, tmp_path: Path) -> None:
    """Values, file, number of images and time; what flags override is left out."""
    options = words(base, tmp_path)
    ended = run(["train", *options])
    assert ended.returncode == 0, ended.stderr
    lines = ended.stderr.splitlines()
    assert lines[:2] == [SET, GENERATED]
    told = next(i for i, line in enumerate(lines) if line.startswith("time     about ") and "for 6 class images (" in line)
    assert told < next(i for i, line in enumerate(lines) if line.startswith("model    "))
    again = run(["train", *options, "--overwrite"])  # the images are there
    assert again.returncode == 0 and "for 6 class images (" not in again.stderr


def test_check_and_plan_say_it_too(base: Path, tmp_path: Path) -> None:
    options = words(base, tmp_path)
    checked = run(["check", *options])
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.splitlines()[:2] == [SET, GENERATED] and "sdtune plan --probe" in checked.stdout
    found = json.loads(run(["check", *options, "--json"]).stdout)
    assert found["preset"]["values"] == {"with_prior_preservation": "true", "num_class_images": "6", "class_num_inference_steps": "3"}
    assert Path(found["preset"]["file"]) == base / "sdtune_defaults_lora.yaml"
    assert found["generation"] == [GENERATED.removeprefix("generate ")]
    planned = run(["plan", *options]).stdout
    assert SET.replace("preset   ", "preset ") in planned and GENERATED in planned


def test_a_base_without_preset_says_nothing(base: Path, tmp_path: Path) -> None:
    """Method full has none here."""
    options = [word for word in words(base, tmp_path) if word not in ("--method=lora", "--rank=3")]
    ended = run(["check", *options, "--method=full"])
    assert ended.returncode == 0 and "preset" not in ended.stdout and "generate" not in ended.stdout


def test_the_preset_of_stable_diffusion_is_named(tmp_path: Path) -> None:
    """`train --method lora --base SD15` generates 200 class images, which the plain defaults do not say."""
    said = run(["plan", "--family=sd15", "--photos=10", "--method=lora", "--savings=false", "--mixed-precision=no"]).stdout
    line = next(line for line in said.splitlines() if line.startswith("preset "))
    assert line.startswith("preset lora_sd15.yaml: ") and "with_prior_preservation true, num_class_images 200" in line
    assert "generate 200 class images of 50 steps, before training" in said


def test_help_and_reference_list_what_each_preset_sets() -> None:
    """Every value of every file, and at the option that a preset may set another default."""
    said = " ".join(run(["train", "--help"]).stdout.split())
    assert "[default: false, or as the base's preset sets]" in said[said.index("--with-prior-preservation"):]
    reference = (CONFIGS.parent / "docs" / "reference.md").read_text()
    assert "| `--num-class-images` | int | `100` ([preset](#presets)) |" in reference
    options = {option["name"]: option["presets"] for option in sdtune.TrainConfig.options()}
    for name in (name for name in PRESETS if name.startswith(("full", "lora")) and not name.endswith("_16gb.yaml")):
        keys = re.findall(r"^(\w+):", (CONFIGS / name).read_text(), re.MULTILINE)
        assert sorted(option for option, values in options.items() if name in values) == sorted(keys)
        listed = ", ".join(f"{option} {values[name]}" for option, values in options.items() if name in values)
        assert listed in said and f"| `{name}` |" in reference and f"| {listed} |" in reference


def test_python_says_what_a_preset_set(base: Path) -> None:
    config = sdtune.TrainConfig(base=str(base), method="lora", rank=3)
    assert config.preset_values() == {"with_prior_preservation": "true", "num_class_images": "6", "class_num_inference_steps": "3",
                                      "max_train_steps": "9"}
    assert sdtune.TrainConfig(base=str(base)).preset_values() == {}


def test_a_preset_is_found_by_its_name(base: Path, tmp_path: Path) -> None:
    """The user's own file of that name comes first; what is nowhere is refused as a file."""
    words = ["plan", "--images", str(CONFIGS.parent / "examples" / "me"), "--base", str(base), "--savings", "false", "--json"]
    named = run([*words, "--config", "full_sd15_16gb.yaml"], cwd=tmp_path)
    assert json.loads(named.stdout)["run"]["optimizer"] == "adamw_8bit"
    (tmp_path / "full_sd15_16gb.yaml").write_text("optimizer: lion\n")
    own = run([*words, "--config", "full_sd15_16gb.yaml"], cwd=tmp_path)
    assert json.loads(own.stdout)["run"]["optimizer"] == "lion"
    missing = run([*words, "--config", "nowhere.yaml"], cwd=tmp_path)
    assert missing.returncode == 2 and "nowhere.yaml" in missing.stderr


def test_the_table_of_memory_is_of_one_mind_with_its_page() -> None:
    import subprocess
    import sys
    script = CONFIGS.parent / "scripts" / "make_memory_table.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    page = (CONFIGS.parent / "docs" / "weights.md").read_text()
    needs = re.findall(r"^(\S+\.yaml): ([0-9.]+)$", (CONFIGS / "preset_memory.yaml").read_text(), re.MULTILINE)
    assert len(needs) == 8
    for name, gib in needs:
        assert f"| {name} | {float(gib):.1f} | " in page and (CONFIGS / name).is_file()


def test_the_memory_table_says_the_sides_that_are_planned() -> None:
    """SD 2.1 is planned at 768 px, and the page said 512."""
    page = (CONFIGS.parent / "docs" / "weights.md").read_text()
    words = ["--method", "lora", "--photos", "10", "--no-savings", "--json"]
    plans = [run(["plan", "--family", family, *words]).stdout for family in ("sd15", "sd21", "sdxl")]
    sides = ", ".join(str(json.loads(plan)["run"]["resolution"]) for plan in plans)
    assert f"in bf16 at the family's side ({sides} px)" in page
