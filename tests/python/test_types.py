"""mypy --strict on the package and on programs that use it: what is right passes, a misspelt value or a wrong type does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import sdtune
from sdtune import types
from sdtune._annotations import alias

ROOT = Path(__file__).resolve().parents[2]

GOOD = '''
from pathlib import Path

import sdtune
from sdtune.types import Concept, LrScheduler, Sampler

concepts: list[Concept] = [{"images": "photos/ann", "instance_prompt": "a photo of sks woman", "repeats": 2}]
schedule: LrScheduler = "cosine"
config = sdtune.TrainConfig(images=Path("me"), method="lora", optimizer="prodigy", lr_scheduler=schedule, concepts=concepts,
                            mixed_precision="bf16", resolution=None)
config.crop_style = "face"
config.output = Path("runs/me")
config.lora_layers = ("to_q", "to_k")
text: str = config.output
sampler: Sampler = "dpm++2m"
report = sdtune.render(output=Path("people"), count=2, set="reserved", detail="128")
sheet: Path | None = report.contact_sheet
merged = sdtune.merge(model="base", lora=["one.safetensors:0.5", Path("two.safetensors")], output="merged", dtype="float16")
weights: list[float] = [lora.weight for lora in merged.loras]
found = sdtune.doctor(config)
if isinstance(found, sdtune.PhotoReport):
    names: list[str] = [photo.file.name for photo in found.photos if found.warnings_of(photo)]
prepared = sdtune.prepare(config, progress=False)
warnings: sdtune.Problems = prepared.photos.warnings
figures = sdtune.evaluate(model="runs/me", subject=3).rows["tuned"]["subject_fidelity"].value + 1.0


again: sdtune.EvaluationReport = sdtune.eval(model="runs/me", subject=3)


def sample(pipe: sdtune.StableDiffusionPipeline) -> sdtune.PipelineOutput:
    return pipe("a photo", sampler=sampler, prompt_syntax="weighted")


def resume(stopped: sdtune.TrainResult) -> sdtune.Run:
    others: list[Concept] = [{"images": Path("photos/bob"), "class_data_dir": Path("class")}]
    config.concepts = others
    return sdtune.start(config, resume_from_checkpoint=stopped.checkpoint)
'''

# Each line alone must fail, with this in what mypy says.
BAD = {
    'pipe("a photo", sampler="dpm++2n")': "dpm++2n",
    'config.optimizer = "adam"': "Literal['adam']",
    'sdtune.TrainConfig(lr_scheduler="cosinus")': "cosinus",
    'sdtune.TrainConfig(method="lorra")': "lorra",
    'sdtune.TrainConfig(max_train_step=3)': "max_train_step",
    'sdtune.TrainConfig(max_train_steps="many")': '"str"',
    'sdtune.TrainConfig(concepts=[{"images": "a", "repeat": 2}])': "Concept",
    'sdtune.TrainConfig(concepts=[{"instance_prompt": "a"}])': "Concept",
    'sdtune.render(set="trainings")': "trainings",
    'sdtune.merge(dtype="half")': "half",
    "sdtune.fetch()": "id",
    'sdtune.doctor("me")': "TrainConfig",
    "sdtune.prepare(config).photos.warning": "warning",
}


def mypy(*words: str) -> subprocess.CompletedProcess[str]:
    """mypy --strict, on this interpreter's sdtune."""
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *words], cwd=ROOT, capture_output=True,
                          text=True, check=False)


def test_the_package_passes() -> None:
    done = mypy("python/sdtune")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_typed_program_passes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(GOOD)
    done = mypy(str(program))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_mistake_is_found(tmp_path: Path) -> None:
    """One file, so that mypy runs once: an error on each line of it, and nowhere else."""
    program = tmp_path / "program.py"
    start = 'import sdtune\nconfig = sdtune.TrainConfig()\npipe = sdtune.StableDiffusionPipeline.from_pretrained("base")\n'
    program.write_text(start + "".join(f"{line}\n" for line in BAD))
    said = mypy(str(program)).stdout
    first = start.count("\n") + 1
    for number, (line, words) in enumerate(BAD.items(), first):
        own = [text for text in said.splitlines() if f"program.py:{number}: error" in text]
        assert own and any(words in text for text in own), f"{line}\n{said}"
    assert not [text for text in said.splitlines() if ": error" in text and int(text.split(":")[1]) < first]


def declared(options: list[dict[str, object]]) -> dict[str, tuple[str, ...]]:
    """Alias -> choices, of the options that have any."""
    return {alias(option): tuple(option["choices"]) for option in options if option.get("choices")}  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [sdtune.TrainConfig.options(), sdtune.StableDiffusionPipeline.options()], ids=["train", "call"])
def test_literals_are_the_declared_choices(options: list[dict[str, object]]) -> None:
    """None is missing, none is extra; the mutant has one more."""
    choices = declared(options)
    assert choices
    for name, values in choices.items():
        assert get_args(getattr(types, name)) == values
        assert get_args(getattr(types, name)) != (*values, "another")


def test_every_choice_is_accepted_and_no_other() -> None:
    """What a Literal allows is what the core takes."""
    for option in sdtune.TrainConfig.options():
        for choice in option["choices"]:
            sdtune.TrainConfig(**{option["name"]: choice})
        if option["choices"]:
            with pytest.raises(sdtune.ConfigError):
                sdtune.TrainConfig(**{option["name"]: "another"})


def test_a_concept_has_the_declared_keys() -> None:
    assert set(types.Concept.__annotations__) == {option["name"] for option in sdtune._native._concept_options()}
    assert types.Concept.__required_keys__ <= {"images"}
