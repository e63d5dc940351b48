#!/usr/bin/env python3
"""Counts what the product asks of a GPU, and diffusers beside it, on a GPU of which only the calls exist. No GPU is needed.

    .venv/bin/python scripts/operator_trace.py           writes docs/measurements/operator_trace.json and .md
    .venv/bin/python scripts/operator_trace.py --check   only checks the bars

Needs a build with SDTUNE_CUDA=ON (build/gpu/operator_trace). The product runs as it is: its own program code, preset, step,
optimizer, log and sampler at Stable Diffusion 1.5's size, with --device cuda:0. LibTorch's CUDA operators and our kernels are
replaced by ones that are counted (tests/gpu/recorded). Exit 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from operators.eager import SAMPLING_STEPS, run_eager
from operators.product import LIBRARY, ROOT, Product, is_built
from operators.record import Part, Record
from operators.sd15 import BUNDLED, write_sd15

TABLE = ROOT / "docs" / "measurements" / "operator_trace.md"
NUMBERS = TABLE.with_suffix(".json")
MOST_OF_EAGER = 0.6  # operators of a training step at batch 1, in bf16 on both sides

# A training step is counted when kernels have proved themselves and lists are on the device.
STEADY = "step 2"
PLAIN = {"train_batch_size": 1, "train_text_encoder": False, "with_prior_preservation": False, "resolution": 512}
# Steps whose waits are looked for at the size of the bundled base: every optimizer and every option that changes the loop.
VARIANTS: dict[str, dict[str, object]] = {
    "AdamW": {}, "8-bit AdamW": {"optimizer": "adamw_8bit"}, "Lion": {"optimizer": "lion"},
    "Adafactor": {"optimizer": "adafactor"}, "Prodigy": {"optimizer": "prodigy"}, "LoRA": {"method": "lora"},
    "EMA": {"use_ema": True}, "EMA in host memory": {"use_ema": True, "offload_ema": True},
    "fp16 with loss scaling": {"mixed_precision": "fp16"}, "float32": {"mixed_precision": "no"},
    "gradient accumulation": {"gradient_accumulation_steps": 3}, "micro-batches": {"train_batch_size": 4, "micro_batch": 2},
    "recomputed activations": {"gradient_checkpointing": True}, "random flips and crops": {"random_flip": True, "center_crop": False},
    "images encoded in each step": {"cache_latents": False}, "min-SNR, noise offset": {"snr_gamma": 5, "noise_offset": 0.1},
    "Huber loss": {"loss_type": "huber"}, "Direct Consistency Optimization": {"dco_beta": 10, "train_text_encoder": True}, "text encoder and prior": {"train_text_encoder": True, "with_prior_preservation": True,
                                                                     "num_class_images": 4},
    "two ranks": {"ranks": 2}, "two ranks, --shard gradients": {"ranks": 2, "shard": "gradients"},
    "two ranks, --shard none": {"ranks": 2, "shard": "none"}, "two ranks, accumulation, LoRA": {"ranks": 2, "method": "lora", "gradient_accumulation_steps": 2},
}


@dataclass(frozen=True)
class Row:
    """One line of the table. `times`: what is counted holds so many steps."""

    name: str
    ours: Part
    eager: Part | None
    times: int = 1


def trace_variants(product: Product) -> dict[str, Part]:
    """The steady step of each variant, at the size of the bundled base."""
    return {name: product.train(BUNDLED, **{"with_prior_preservation": False, **options})[STEADY]
            for name, options in VARIANTS.items()}


def trace_sd15(product: Product, base: Path, eager: Record) -> tuple[list[Row], Record, Record]:
    """Rows at Stable Diffusion 1.5's size; a training that validates; a sampling."""
    plain = product.train(base, **PLAIN, validation_prompt="a photo", validation_steps=3, num_validation_images=1,
                          validation_inference_steps=SAMPLING_STEPS)
    sampled = product.sample(base, steps=SAMPLING_STEPS)
    preset, lora = ({"num_class_images": 2}, {"num_class_images": 2, "method": "lora"})
    rows = [
        Row("training step, UNet, batch 1, bf16", plain["step 1"], eager["train bf16"]),
        Row("the same against weights in bf16, which diffusers' script refuses", plain["step 1"], eager["train pure bf16"]),
        Row("training step, UNet, batch 1, float32", product.train(base, **PLAIN, mixed_precision="no")[STEADY],
            eager["train float32"]),
        Row("training step, 4 rounds of accumulation, bf16",
            product.train(base, **PLAIN, gradient_accumulation_steps=4)[STEADY], eager["train bf16, 4 rounds"]),
        Row("training step of the preset: text encoder, batch 2 + 2 class images", product.train(base, **preset)[STEADY], None),
        Row("training step of the LoRA preset", product.train(base, **lora)[STEADY], None),
        Row("validation, a sampling step with guidance, bf16", plain["denoising"], eager["denoising"], SAMPLING_STEPS - 2),
        Row("`sample`, a sampling step with guidance, bf16", sampled["denoising"], eager["denoising"], SAMPLING_STEPS - 1),
        Row("`sample`, decoding to the image", sampled["after denoising"], eager["after denoising"]),
    ]
    return rows, plain, sampled


def faults(rows: list[Row], plain: Record, sampled: Record, variants: dict[str, Part]) -> list[str]:
    """Every bar that is missed."""
    found = []
    steps = {row.name: row.ours for row in rows[:-1]}
    steps.update({f"{name} (bundled base)": part for name, part in variants.items()})
    steps["sample, before denoising"] = sampled["before denoising"]
    for name, part in steps.items():
        if part.waits:
            found.append(f"{name}: the host waits ({part.waits})")
    for name, part in steps.items():
        in_unet = "float32" not in name and "before" not in name and "encoded" not in name and "crops" not in name
        if in_unet and part.layouts:
            found.append(f"{name}: layout copies ({part.layout_copies})")
    # Numbers of the steps before are told, and the image is read; nothing else.
    if plain[STEADY].waits != {"event": 1}:
        found.append(f"before a validation image: the host waits ({plain[STEADY].waits})")
    for name, part in {"validation": plain["after denoising"], "sample": sampled["after denoising"]}.items():
        if part.waits != {"copy to the host": 1}:
            found.append(f"{name}, the image: the host waits ({part.waits})")
    first = rows[0]
    share = first.ours.count / first.eager.count
    if share > MOST_OF_EAGER:
        found.append(f"{first.name}: {share:.0%} of eager's operators (allowed: {MOST_OF_EAGER:.0%})")
    return found


def gigabytes(part: Part, times: int) -> str:
    """Bytes of one step, readable."""
    return f"{part.bytes / times / 1e9:.2f}"


def write_table(rows: list[Row], variants: dict[str, Part], versions: dict[str, str]) -> None:
    """The Markdown."""
    lines = [
        "# What a step asks of a GPU", "",
        f"Written by `scripts/operator_trace.py` with torch {versions['torch']} and diffusers {versions['diffusers']}, on a machine "
        "without a GPU. The product's own loops, and diffusers', ran at Stable Diffusion 1.5's size with the device cuda:0, on which each "
        "operator was counted and none computed (tests/gpu/recorded).", "",
        "- **operators**: calls that LibTorch would run on the GPU and that are no view and no allocation. Our kernels count once a "
        "launch (a group norm is three), LibTorch's operators once a call, however many kernels they launch.",
        "- **GB**: read and written by them, each tensor once a call; caches are not known.",
        "- **layout copies**: copies that change the memory order alone, those inside convolutions and norms too.",
        "- **waits**: reads of a value, copies that block, uploads from memory that is not pinned, waiting for events and streams. An "
        "event counts as over once the host is 1024 launches ahead of it. What LibTorch's allocators ask of the driver is not seen.",
        "- diffusers: the step of its DreamBooth script after encoding, with latents and prompt embeddings given; in bf16 with "
        "autocast and float32 weights, as that script has it; AdamW with its default, foreach; sampling by its pipeline with weights "
        "in bf16.", "",
        "| part | operators | diffusers | share | GB | diffusers | layout copies | diffusers | waits | diffusers |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        ours, eager, times = row.ours, row.eager, row.times
        cells = [f"{ours.count / times:.0f}", "", "", gigabytes(ours, times), "", f"{ours.layouts / times:.0f}", "",
                 str(ours.wait_count), ""]
        if eager is not None:
            eager_times = SAMPLING_STEPS - 1 if times > 1 else 1
            cells[1] = f"{eager.count / eager_times:.0f}"
            cells[2] = f"{ours.count / times / (eager.count / eager_times):.0%}"
            cells[4], cells[6] = gigabytes(eager, eager_times), f"{eager.layouts / eager_times:.0f}"
            cells[8] = str(eager.wait_count)
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    lines += [
        "", "The wait at the end of `sample` and of a validation is the image itself, which the host reads. Before a validation the host "
        "also waits for the numbers of the steps that are not told yet. In float32 convolutions run in NCHW order, so every transformer "
        "turns its map, as diffusers' do.", "",
        "## Every optimizer and option", "",
        "A step at the size of the bundled base (portrait-64), bf16 unless said otherwise. Pinned copies are copies between host and GPU "
        "that the host does not wait for.", "",
        "| step with | operators | GB | layout copies | waits | pinned copies |", "|---|---:|---:|---:|---:|---:|"]
    lines += [f"| {name} | {part.count} | {gigabytes(part, 1)} | {part.layouts} | {part.wait_count} | "
              f"{part.copies_to_device + part.copies_to_host} |" for name, part in variants.items()]
    lines += ["", "Images encoded in each step are laid out for the autoencoder once (in the row with random crops, too).", ""]
    TABLE.write_text("\n".join(lines))


def part_numbers(part: Part | None) -> dict[str, object] | None:
    """For the JSON: sums, and the operators by name."""
    if part is None:
        return None
    return {"operators": part.count, "bytes": part.bytes, "layout_copies": part.layout_copies, "waits": part.waits,
            "copies_to_host": part.copies_to_host, "copies_to_device": part.copies_to_device,
            "calls": {name: calls for name, (calls, _) in sorted(part.operators.items())}}


def main() -> int:
    """Counts, checks, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    if not is_built():
        print("operator_trace: build/gpu/operator_trace is missing: build with SDTUNE_CUDA=ON", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        product = Product(Path(folder))
        rows, plain, sampled = trace_sd15(product, write_sd15(Path(folder) / "sd15"), run_eager(LIBRARY))
        variants = trace_variants(product)
    missed = faults(rows, plain, sampled, variants)
    for line in missed:
        print(f"operator_trace: {line}", file=sys.stderr)
    if not options.check:
        import diffusers
        import torch
        versions = {"torch": torch.__version__, "diffusers": diffusers.__version__}
        write_table(rows, variants, versions)
        numbers = {"command": "scripts/operator_trace.py", **versions,
                   "rows": [{"part": row.name, "steps": row.times, "sdtune": part_numbers(row.ours),
                             "diffusers": part_numbers(row.eager)} for row in rows],
                   "variants": {name: part_numbers(part) for name, part in variants.items()}}
        NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
