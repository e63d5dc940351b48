"""The presets that come with the installation."""

from __future__ import annotations

from pathlib import Path

import pytest

import sdtune

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
PRESETS = sorted(path.name for path in CONFIGS.glob("*.yaml") if path.name != "gpus.yaml")  # that is a table of prices


def test_every_method_and_family_has_one() -> None:
    assert {f"{method}_{family}.yaml" for method in ("full", "lora") for family in ("sd15", "sd21", "sdxl", "portrait-64")} <= set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_read_and_explained(name: str) -> None:
    """Every key is known and every value allowed; the comment says what it is for."""
    config = sdtune.TrainConfig.from_yaml(CONFIGS / name)
    if name.startswith(("full", "lora")):
        assert config.method == name.split("_")[0].removesuffix(".yaml")
    assert (CONFIGS / name).read_text().startswith("# ")


def test_lora_learns_faster_than_all_weights() -> None:
    """The second matrix of a layer starts at zero: a LoRA's rate is tens of times that of the weights themselves."""
    for family in ("sd15", "sd21", "sdxl"):
        full, lora = (sdtune.TrainConfig.from_yaml(CONFIGS / f"{method}_{family}.yaml") for method in ("full", "lora"))
        assert lora.learning_rate >= 20 * full.learning_rate


@pytest.mark.parametrize("method", ["full", "lora"])
def test_the_embedded_base_carries_its_presets(method: str) -> None:
    copy = CONFIGS.parent / "models" / "portrait-64" / ("sdtune_defaults.yaml" if method == "full" else f"sdtune_defaults_{method}.yaml")
    assert copy.read_bytes() == (CONFIGS / f"{method}_portrait-64.yaml").read_bytes()
