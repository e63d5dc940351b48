"""docs/measurements/scale.md and scale.svg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scale.step_model import Bucket, Network, Step, alone_seconds, efficiency

GPU = "H100"
FLOPS = 989e12 * 0.15  # configs/gpus.yaml: the data sheet's rate, and the utilisation that `sdtune plan` assumes
UPDATE_BYTES = 3.35e12 * 0.8  # a second that AdamW reads and writes, of the data sheet's memory bandwidth
UPDATE_OF_A_NUMBER = 30  # weight, master, gradient and two moments, read and written
BATCH = 4  # photos of each rank in a step
# Nine tenths of what the names say. In a machine NVLink or PCIe; between machines one card, whatever number of GPUs is in it.
NETWORKS = [
    Network("NVLink, InfiniBand 8 x 400 Gbit/s", 0.8 * 450e9, 8 * 45e9, 3e-6, 5e-6),
    Network("NVLink, InfiniBand 400 Gbit/s", 0.8 * 450e9, 45e9, 3e-6, 5e-6),
    Network("NVLink, Ethernet 100 Gbit/s", 0.8 * 450e9, 11.25e9, 3e-6, 20e-6),
    Network("PCIe, Ethernet 100 Gbit/s", 20e9, 11.25e9, 5e-6, 20e-6),
    Network("PCIe, Ethernet 25 Gbit/s", 20e9, 2.8e9, 5e-6, 30e-6),
]
COLORS = ["#1b6ca8", "#2a9d8f", "#e9a820", "#d1495b", "#6a4c93"]


def step_of(model: dict[str, Any], layout: dict[str, Any], batch: int) -> Step:
    compute = model["flops_of_a_photo"] * batch / FLOPS
    forward = layout["forward_seconds"] / (layout["forward_seconds"] + layout["backward_seconds"])
    numbers = sum(size for size, _, _ in layout["buckets"]) / 4
    return Step(forward=compute * forward, backward=compute * (1 - forward), update=numbers * UPDATE_OF_A_NUMBER / UPDATE_BYTES,
                weight_bytes=int(numbers * 2), buckets=[Bucket(*bucket) for bucket in layout["buckets"]])


def efficiencies(recorded: dict[str, Any], ranks: tuple[int, ...]) -> dict[tuple[str, str, str], list[float]]:
    """Model, shard, network -> by number of ranks."""
    found = {}
    for name, model in recorded.items():
        if name == "processor":
            continue
        for shard in ("none", "optimizer"):
            for network in NETWORKS:
                row = []
                for count in ranks:
                    step = step_of(model, model["layouts"]["none" if shard == "none" else f"optimizer {count}"], BATCH)
                    row.append(efficiency(step, alone_seconds(step), count, network))
                found[name, shard, network.name] = row
    return found


def table(found: dict[tuple[str, str, str], list[float]], ranks: tuple[int, ...]) -> list[str]:
    lines = ["| model | shard | network | " + " | ".join(f"{count} ranks" for count in ranks) + " |", "|---|---|---|" + "---|" * len(ranks)]
    for (name, shard, network), row in found.items():
        lines.append(f"| {name} | {shard} | {network} | " + " | ".join(f"{value:.2f}" for value in row) + " |")
    return lines


def check_table(gloo: dict[str, Any]) -> list[str]:
    lines = ["| ranks | shard | cable | step without a bound | predicted | measured | model / measured |", "|---|---|---|---|---|---|---|"]
    for row in gloo["rows"]:
        lines.append(f"| {row['ranks']} | {row['shard']} | {row['mbit']} Mbit/s | {row['unbound_s']:.3f} s | {row['predicted_s']:.3f} s | "
                     f"{row['measured_s']:.3f} s | {row['predicted_s'] / row['measured_s']:.2f} |")
    return lines


def bucket_table(recorded: dict[str, Any]) -> list[str]:
    lines = ["| model | layout | buckets | bytes | before the last fifth of backward |", "|---|---|---|---|---|"]
    for name, model in recorded.items():
        if name == "processor":
            continue
        for layout, part in model["layouts"].items():
            size = sum(bucket[0] for bucket in part["buckets"])
            lines.append(f"| {name} | {layout} | {len(part['buckets'])} | {size / 1e9:.2f} GB | {part['overlapped_share']:.3f} |")
    return lines


def sizes_of(recorded: dict[str, Any]) -> str:
    return ", ".join(f"{name} at {model['cells']} x {model['cells']} latents" + (" with gradient_checkpointing" if model["recomputed"] else "")
                     for name, model in recorded.items() if name != "processor")


def plot(found: dict[tuple[str, str, str], list[float]], ranks: tuple[int, ...]) -> str:
    """A panel a model and shard; the axis of ranks is logarithmic."""
    panels = list(dict.fromkeys((name, shard) for name, shard, _ in found))
    width, height, left, top = 260, 200, 40, 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * (width + 60)} {len(panels) // 2 * (height + 70) + 120}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for number, (name, shard) in enumerate(panels):
        x0, y0 = left + number % 2 * (width + 60), top + number // 2 * (height + 70)
        parts.append(f'<text x="{x0}" y="{y0 - 10}" font-weight="bold">{name}, shard: {shard} (modelled)</text>')
        for tenth in range(0, 11, 2):
            y = y0 + height * (1 - tenth / 10)
            parts.append(f'<line x1="{x0}" y1="{y:.0f}" x2="{x0 + width}" y2="{y:.0f}" stroke="#ddd"/>'
                         f'<text x="{x0 - 6}" y="{y + 4:.0f}" text-anchor="end">{tenth / 10:.1f}</text>')
        places = [x0 + 20 + index * (width - 40) / (len(ranks) - 1) for index in range(len(ranks))]
        for place, count in zip(places, ranks):
            parts.append(f'<text x="{place:.0f}" y="{y0 + height + 16}" text-anchor="middle">{count} ranks</text>')
        for network, color in zip(NETWORKS, COLORS):
            points = " ".join(f"{place:.0f},{y0 + height * (1 - value):.1f}" for place, value in zip(places, found[name, shard, network.name]))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
    y0 = len(panels) // 2 * (height + 70) + 25
    for index, (network, color) in enumerate(zip(NETWORKS, COLORS)):
        parts.append(f'<line x1="{left}" y1="{y0 + 17 * index}" x2="{left + 24}" y2="{y0 + 17 * index}" stroke="{color}" stroke-width="2"/>'
                     f'<text x="{left + 32}" y="{y0 + 17 * index + 4}">{network.name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def page(figures: dict[str, Any], ranks: tuple[int, ...]) -> str:
    recorded, gloo = figures["recorded"], figures["gloo"]
    found = efficiencies(recorded, ranks)
    rates = [f"| {one.name} | {one.in_node / 1e9:.0f} GB/s, {one.in_node_latency * 1e6:.0f} us | {one.between / 1e9:.1f} GB/s, "
             f"{one.between_latency * 1e6:.0f} us |" for one in NETWORKS]
    lines = [
        "# Scale, modelled", "",
        "**A model, not a measurement**: no run of sdtune on several GPUs stands behind these figures. scripts/scale_model.py computes them from the order",
        "and the sizes of the buckets in which a rank sends its gradients, which are recorded, and from the networks' rates below, which are assumed.", "",
        "![Efficiency over the number of ranks](scale.svg)", "",
        "Efficiency: samples a second of all ranks over those of as many GPUs that need not speak to each other. "
        f"{BATCH} photos a rank; full fine-tuning of the UNet;", f"the GPU is an {GPU} at {FLOPS / 1e12:.0f} TFLOP/s (`utilisation` of configs/gpus.yaml); "
        "machines of 8 GPUs; gradients are summed in float32 (`comm_hook: bf16` halves", "their bytes); `shard: optimizer` sends weights in bfloat16 after the update. Operations of a photo",
        "are those that `sdtune plan` counts in float32. Where `shard: optimizer` is below `none` (512 ranks: a bucket goes to one rank alone, through",
        "all the others), and its memory is not needed, choose `--shard none`.", "",
        *table(found, ranks), "", "## The networks", "",
        "| network | in a machine, a GPU | between machines, a machine |", "|---|---|---|", *rates, "",
        "An all-reduce takes the faster of a ring and of two trees, a sum for one rank and a broadcast a pipelined chain; one collective after the other, each",
        "when its bucket is complete. All GPUs are equally fast: `straggler_ratio` of a run (docs/cloud.md) says by how much that is wrong.", "",
        "## The buckets", "",
        f"Recorded by tests/scale/record_buckets.cpp on {recorded['processor']}, one photo; {sizes_of(recorded)}.", "",
        *bucket_table(recorded), "", "## The model against real ranks", "",
        f"Two hosts (network namespaces) with a cable of a set rate between them, half of the ranks on each, the bundled base, on {gloo['processor']}. The model",
        "gets the times of a step over the cable without a bound, and predicts the step over the bounded one, by Gloo's ways to send (scripts/scale/gloo_model.py).", "",
        *check_table(gloo), "",
    ]
    return "\n".join(lines)


def write_page(figures: dict[str, Any], folder: Path, ranks: tuple[int, ...], only_compare: bool) -> int:
    texts = {folder / "scale.md": page(figures, ranks), folder / "scale.svg": plot(efficiencies(figures["recorded"], ranks), ranks)}
    for path, text in texts.items():
        if not only_compare:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path}: differs from scale.json")
            return 1
    return 0
