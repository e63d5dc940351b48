#!/usr/bin/env python3
"""Full-size parity: a UNet of real size with random weights through diffusers and through sdtune, float32 on the CPU.

diffusers writes the weights into a temporary folder. Each side runs in a process of its own, one after the other, so only
one is in memory (about 4 GiB for sd15 and sd21, 11 GiB for sdxl). Prints one JSON object; exit 1 when the relative L2
error is above the bound, or when another timestep does not show. Its seconds are of one first call each, for which weights may still be
read from the disk: no measure of speed, which scripts/bench.py is for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BOUND = 1e-5
SIZES = {
    "sd15": dict(sample_size=64, cross_attention_dim=768),
    "sd21": dict(sample_size=64, cross_attention_dim=1024, attention_head_dim=[5, 10, 20, 20],
                 use_linear_projection=True),
    "sdxl": dict(sample_size=128, cross_attention_dim=2048, attention_head_dim=[5, 10, 20],
                 use_linear_projection=True, block_out_channels=[320, 640, 1280],
                 down_block_types=["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
                 up_block_types=["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
                 transformer_layers_per_block=[1, 2, 10], addition_embed_type="text_time",
                 addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816),
}


def make_inputs(config: dict, latent: int) -> dict[str, np.ndarray]:
    """One sample's inputs, the same for both sides."""
    random = np.random.default_rng(0)
    draw = lambda *shape: random.standard_normal(shape).astype(np.float32)  # noqa: E731
    inputs = dict(sample=draw(1, 4, latent, latent), timestep=np.array([501]),
                  context=draw(1, 77, config["cross_attention_dim"]))
    if "addition_embed_type" in config:
        inputs |= dict(text_embeds=draw(1, 1280), time_ids=np.array([[1024, 1024, 0, 0, 1024, 1024]], np.float32))
    return inputs


def write_model(folder: Path, config: dict) -> None:
    """Random weights by diffusers."""
    import torch
    from diffusers import UNet2DConditionModel

    torch.manual_seed(0)
    UNet2DConditionModel(**config).save_pretrained(folder / "unet", max_shard_size="20GB")


def run_reference(folder: Path) -> None:
    import torch
    from diffusers import UNet2DConditionModel

    unet = UNet2DConditionModel.from_pretrained(folder / "unet").eval()
    inputs = {name: torch.from_numpy(value) for name, value in np.load(folder / "inputs.npz").items()}
    added = {name: inputs[name] for name in ("text_embeds", "time_ids") if name in inputs}
    started = time.perf_counter()
    with torch.inference_mode():
        output = unet(inputs["sample"], inputs["timestep"], inputs["context"], added_cond_kwargs=added).sample
    np.savez(folder / "reference.npz", output=output.numpy(), seconds=time.perf_counter() - started)


def run_ours(folder: Path) -> None:
    import sdtune

    unet = sdtune.UNet2DConditionModel.from_pretrained(str(folder / "unet"), device="cpu")
    inputs = dict(np.load(folder / "inputs.npz"))
    added = {name: inputs[name] for name in ("text_embeds", "time_ids") if name in inputs} or None
    started = time.perf_counter()
    output = unet(inputs["sample"], inputs["timestep"], inputs["context"], added_cond_kwargs=added)
    seconds = time.perf_counter() - started
    # The mutant: another timestep must show, or the bound proves nothing.
    mutant = unet(inputs["sample"], inputs["timestep"] + 1, inputs["context"], added_cond_kwargs=added)
    np.savez(folder / "ours.npz", output=output, mutant=mutant, seconds=seconds)


def compare(folder: Path, model: str, latent: int) -> dict:
    reference, ours = np.load(folder / "reference.npz"), np.load(folder / "ours.npz")
    norm = np.linalg.norm(reference["output"])
    error, mutant = (float(np.linalg.norm(ours[name] - reference["output"]) / norm) for name in ("output", "mutant"))
    return dict(model=model, latent=latent, relative_l2=error, bound=BOUND, mutant_relative_l2=mutant,
                passed=error <= BOUND < mutant, seconds_diffusers=round(float(reference["seconds"]), 2),
                seconds_sdtune=round(float(ours["seconds"]), 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(SIZES), required=True)
    parser.add_argument("--latent", type=int, default=64, help="latent height and width (default 64)")
    parser.add_argument("--side", choices=("write", "reference", "ours"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    config = SIZES[options.model]
    if options.side:
        step = {"write": lambda folder: write_model(folder, config), "reference": run_reference, "ours": run_ours}
        step[options.side](options.folder)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "inputs.npz", **make_inputs(config, options.latent))
        for side in ("write", "reference", "ours"):
            subprocess.run([sys.executable, __file__, "--model", options.model, "--side", side, "--folder", name],
                           check=True, stdout=sys.stderr)
        result = compare(folder, options.model, options.latent)
    print(json.dumps(result))
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
