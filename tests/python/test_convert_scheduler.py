"""`sdtune convert`: what a single file says of its model's noise schedule, beside the weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from test_convert import convert, refusal


def scheduler_of(folder: Path) -> Path:
    return folder / "scheduler" / "scheduler_config.json"


def with_scheduler(folder: Path, target: Path, **settings: object) -> Path:
    """A copy of the folder, its scheduler's settings changed."""
    shutil.copytree(folder, target)
    scheduler_of(target).write_text(json.dumps(json.loads(scheduler_of(folder).read_text()) | settings))
    return target


@pytest.mark.parametrize("family", ["sd2", "sdxl"])
def test_zero_terminal_snr_goes_into_the_file_and_back(family: str, tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    """With the usual betas such a model generates other images, and A1111 looks for the tensor in files of every family."""
    usual = with_scheduler(tiny_folder(family), tmp_path / "usual", prediction_type="v_prediction")
    rescaled = with_scheduler(usual, tmp_path / "rescaled", rescale_betas_zero_snr=True)
    for folder, is_rescaled in ((usual, False), (rescaled, True)):
        file, back = (tmp_path / f"{folder.name}{end}" for end in (".safetensors", "-back"))
        convert(folder, file)
        assert ("ztsnr" in load_file(file)) == is_rescaled
        convert(file, back, "--config", str(usual))
        assert bool(json.loads(scheduler_of(back).read_text()).get("rescale_betas_zero_snr")) == is_rescaled


def test_a_file_of_comfyui_says_what_it_predicts(tiny_sdxl: Path, tmp_path: Path) -> None:
    """By a key of its own, without which an SDXL of v-prediction would be taken for one of epsilon."""
    plain, theirs = tmp_path / "plain.safetensors", tmp_path / "comfyui.safetensors"
    convert(tiny_sdxl, plain)
    save_file(load_file(plain), theirs, {"modelspec.predict_key": "v"})
    line = refusal("--model", str(theirs), "--output", str(tmp_path / "x"), "--config", str(tiny_sdxl))
    assert "is v_prediction by modelspec.predict_key and epsilon by the scheduler of --config" in line
    said = convert(theirs, tmp_path / "x", "--config", str(with_scheduler(tiny_sdxl, tmp_path / "velocity", prediction_type="v_prediction")))
    assert "predicts v_prediction (modelspec.predict_key)" in said
