"""Files that the LyCORIS package itself writes, beside the images that diffusers generates with its layers; what we do not read is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from lora_files import load_pipeline
from program import run
from test_lora import TOLERANCE, error, latents_of_ours, latents_of_theirs

import sdtune

RANK, ALPHA = 3, 4.5  # odd on purpose
PRESET = """
enable_conv = true
lora_prefix = "lora_unet"
target_module = ["Transformer2DModel", "ResnetBlock2D", "Downsample2D", "Upsample2D"]
"""

# LyCORIS' algorithm and options, of those that we read.
READ: dict[str, dict[str, Any]] = {
    "LoCon": {"algo": "locon"},
    "LoCon, Tucker": {"algo": "locon", "use_tucker": True},
    "LoCon, scalar": {"algo": "locon", "use_scalar": True},
    "LoHa": {"algo": "loha"},
    "LoHa, Tucker": {"algo": "loha", "use_tucker": True},
    "LoHa, scalar": {"algo": "loha", "use_scalar": True},
    "LoKr": {"algo": "lokr"},
    "LoKr, Tucker": {"algo": "lokr", "use_tucker": True},
    "LoKr, factor 2": {"algo": "lokr", "factor": 2},
    "LoKr, unbalanced": {"algo": "lokr", "unbalanced_factorization": True, "factor": 2},
    "LoKr, both decomposed": {"algo": "lokr", "decompose_both": True, "linear_dim": 1},
    "LoKr, whole matrices": {"algo": "lokr", "full_matrix": True},
    "LoKr, scalar": {"algo": "lokr", "use_scalar": True},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "DoRA": ({"algo": "locon", "dora_wd": True}, "DoRA"),
    "LoHa with DoRA": ({"algo": "loha", "dora_wd": True}, "DoRA"),
    "OFT": ({"algo": "diag-oft"}, "OFT"),
    "BOFT": ({"algo": "boft"}, "OFT"),
    "whole weights": ({"algo": "full"}, "is a full LyCORIS .it holds lora_unet_"),
    "IA3": ({"algo": "ia3"}, "is a IA3 .it holds lora_unet_"),
    "GLoRA": ({"algo": "glora"}, "is a GLoRA .it holds lora_unet_"),
}


def write(theirs: Any, path: Path, options: dict[str, Any]) -> Any:
    """Puts LyCORIS' layers with random factors on the UNet, and lets LyCORIS write them. Returns its network."""
    preset = path.with_name("preset.toml")
    preset.write_text(PRESET)
    torch.manual_seed(0)
    words = {"linear_dim": RANK, "linear_alpha": ALPHA, "conv_dim": RANK, "conv_alpha": ALPHA, **options}
    network = oracles.load("lycoris").create_lycoris(theirs.unet, 1.0, preset=str(preset), **words)
    network.apply_to()
    for name, parameter in network.named_parameters():
        if name.endswith("scalar"):
            torch.nn.init.constant_(parameter, 0.7)
        elif not name.endswith("dora_scale"):
            torch.nn.init.normal_(parameter, std=0.2)
    network.eval()
    network.save_weights(str(path), None, {})
    return network


@pytest.mark.parametrize("method", READ)
def test_a_file_of_lycoris_generates_as_with_lycoris(method: str, tiny_sd1: Path, tmp_path: Path) -> None:
    theirs = load_pipeline(tiny_sd1)
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    plain = latents_of_ours(ours)
    network = write(theirs, tmp_path / "lycoris.safetensors", READ[method])
    assert len(network.loras) > 20
    ours.load_lora_weights(tmp_path / "lycoris.safetensors")
    wanted = latents_of_theirs(theirs)
    got = latents_of_ours(ours)
    print(f"{method}: {error(got, wanted):.1e}, without {error(plain, wanted):.1e}")
    assert error(got, wanted) <= TOLERANCE
    assert error(plain, wanted) > 100 * TOLERANCE
    network.set_multiplier(0.5)  # the mutant, and a scale of ours
    halved = latents_of_theirs(theirs)
    assert error(got, halved) > 100 * TOLERANCE
    ours.unload_lora_weights()
    ours.load_lora_weights(tmp_path / "lycoris.safetensors", scale=0.5)
    assert error(latents_of_ours(ours), halved) <= TOLERANCE


@pytest.mark.parametrize("method", REFUSED)
def test_what_is_not_read_is_refused_by_name(method: str, tiny_sd1: Path, tmp_path: Path) -> None:
    options, said = REFUSED[method]
    write(load_pipeline(tiny_sd1), tmp_path / "lycoris.safetensors", options)
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    plain = latents_of_ours(ours)
    with pytest.raises(sdtune.WeightError, match=said):
        ours.load_lora_weights(tmp_path / "lycoris.safetensors")
    assert np.array_equal(latents_of_ours(ours), plain)


@pytest.mark.parametrize(("method", "kind", "ranks"), [("LoCon", "LoRA (kohya's names)", [RANK]), ("LoHa", "LoHa (LyCORIS)", [RANK]),
                                                       ("LoKr, whole matrices", "LoKr (LyCORIS)", None)])
def test_inspect_says_which_method_it_is(method: str, kind: str, ranks: list[int] | None, tiny_sd1: Path, tmp_path: Path) -> None:
    write(load_pipeline(tiny_sd1), tmp_path / "lycoris.safetensors", READ[method])
    said = json.loads(run(["inspect", str(tmp_path / "lycoris.safetensors"), "--json"]).stdout)
    assert (said["kind"], said.get("rank")) == (kind, ranks)
