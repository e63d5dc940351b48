#!/usr/bin/env python3
"""The Python side of scripts/gpu_check.sh: the same work by diffusers, the comparison, and one JSON.

With --device cpu it is a dry run: every part runs on tiny models, and the speeds mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests/python"), str(ROOT / "scripts/gpu")]

import torch  # noqa: E402
from bench.machine import describe_machine  # noqa: E402
from bench.models import MODELS, write_pipeline  # noqa: E402
from diffusers_side import diffusers_outputs, diffusers_sampling, diffusers_training, write_inputs  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

TOLERANCE = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 2e-2}
TIMED_STEPS = 20


class Probe:
    """Our side: the programs of tests/gpu."""

    def __init__(self, binaries: Path, device: str) -> None:
        self.binaries, self.device = binaries.resolve(), device

    def run(self, what: str, folder: Path, dtype: str, *arguments: str, nccl: bool = False) -> dict[str, object]:
        """One call; the JSON it prints, if any."""
        command = [str(self.binaries / "device_probe"), what, str(folder), self.device, dtype, *arguments]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "SDTUNE_FORCE_NCCL": "1" if nccl else "0"})
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
        return json.loads(done.stdout) if done.stdout.strip() else {}


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    """|got - want| / |want| in double."""
    got, want = got.double(), want.double()
    return float((got - want).norm() / want.norm().clamp_min(1e-30))


def errors_of(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> dict[str, float]:
    """Relative errors of the outputs and of all gradients as one vector."""
    gradients = [name for name in want if name.startswith("grad.")]
    errors = {name: relative(got[name], want[name]) for name in ("unet", "text", "mean", "decoded")}
    errors["gradient"] = relative(torch.cat([got[name].flatten() for name in gradients]),
                                  torch.cat([want[name].flatten() for name in gradients]))
    return errors


def check_parity(probe: Probe, folder: Path, scratch: Path, dtype: str) -> dict[str, object]:
    """Outputs and gradients of one model in one dtype, against diffusers on the same device.

    In half precision both sides round: the JSON also has how far each side is from diffusers' float32.
    """
    inputs, outputs = scratch / "inputs.safetensors", scratch / "outputs.safetensors"
    write_inputs(folder, inputs)
    probe.run("parity", folder, dtype, str(inputs), str(outputs))
    ours, tolerance = load_file(outputs), TOLERANCE[dtype]
    theirs = diffusers_outputs(folder, inputs, probe.device, dtype)
    errors = errors_of(ours, theirs)
    result = {"dtype": dtype, "model": folder.name, "errors": errors, "tolerance": tolerance}
    passed = {name: error <= tolerance for name, error in errors.items()}
    if dtype != "float32":
        truth = diffusers_outputs(folder, inputs, probe.device, "float32")
        to_truth, theirs_to_truth = errors_of(ours, truth), errors_of(theirs, truth)
        result |= {"to_float32": to_truth, "diffusers_to_float32": theirs_to_truth}
    mutant = relative(ours["unet"], theirs["unet"] * 1.05)
    return {**result, "passed": all(passed.values()) and mutant > tolerance}


def check_nccl(probe: Probe, folder: Path) -> dict[str, object]:
    """A process group of one rank must change no loss."""
    alone = probe.run("train", folder, "float32", "1", "3")
    grouped = probe.run("train", folder, "float32", "1", "3", nccl=True)
    error = max(abs(a - b) / abs(b) for a, b in zip(grouped["losses"], alone["losses"], strict=True))
    sent = grouped["reduced_bytes"] > 0 or probe.device == "cpu"
    return {"losses": [alone["losses"], grouped["losses"]], "relative_error": error, "passed": error <= 1e-5 and sent}


def measure_training(probe: Probe, folder: Path, batch: int, dtype: str) -> dict[str, object]:
    """Twenty timed steps of each side, after five to warm up."""
    ours = probe.run("train", folder, dtype, str(batch), str(TIMED_STEPS + 5))["seconds"][5:]
    theirs = diffusers_training(folder, probe.device, dtype, batch, TIMED_STEPS)
    ours_s, theirs_s = sorted(ours)[len(ours) // 2], min(theirs.values())
    return {"batch": batch, "dtype": dtype, "sdtune_s": ours_s, "diffusers_s": theirs, "ratio": theirs_s / ours_s,
            "passed": True}


def measure_sampling(probe: Probe, folder: Path, dtype: str, steps: int) -> dict[str, object]:
    """One image's latents, the fastest of two runs each."""
    ours = min(probe.run("sample", folder, dtype, str(steps))["seconds"][1:])
    theirs = diffusers_sampling(folder, probe.device, dtype, steps)
    return {"steps": steps, "dtype": dtype, "sdtune_s": ours, "diffusers_s": theirs, "ratio": theirs / ours,
            "passed": True}


def check_kernels(binaries: Path) -> dict[str, object]:
    """Our kernels against loops on the CPU."""
    done = subprocess.run([str(binaries / "check_kernels")], capture_output=True, text=True)
    return {"passed": done.returncode == 0, "output": (done.stdout + done.stderr).splitlines()}


def attempt(results: dict[str, object], name: str, part: object, *arguments: object) -> None:
    """Runs one part; a fault is recorded and the others still run."""
    try:
        results[name] = part(*arguments)
    except Exception as error:  # noqa: BLE001
        results[name] = {"passed": False, "error": f"{type(error).__name__}: {error}"}
    print(f"gpu_check: {name}: {'ok' if results[name]['passed'] else 'FAILED'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", type=Path, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    probe, results = Probe(options.binaries, options.device), {}
    on_gpu = options.device == "cuda"
    with tempfile.TemporaryDirectory() as temporary:
        import tiny_models
        scratch = Path(temporary)
        tiny = tiny_models.write_pipeline("sd1", scratch / "tiny-sd1")
        large = write_pipeline(MODELS["sd15"], scratch) if on_gpu else tiny
        if on_gpu:
            attempt(results, "kernels", check_kernels, options.binaries)
        for dtype in TOLERANCE if on_gpu else ["float32", "bfloat16"]:
            attempt(results, f"parity tiny {dtype}", check_parity, probe, tiny, scratch, dtype)
        if on_gpu:
            attempt(results, "parity sd15 float32", check_parity, probe, large, scratch, "float32")
            attempt(results, "nccl, one rank", check_nccl, probe, tiny)
        dtype = "bfloat16" if on_gpu else "float32"
        for batch in (1, 4):
            attempt(results, f"training, batch {batch}", measure_training, probe, large, batch, dtype)
        attempt(results, "sampling", measure_sampling, probe, large, dtype, 50 if on_gpu else 3)
    passed = all(result["passed"] for result in results.values())
    options.output.write_text(json.dumps({"passed": passed, "machine": describe_machine(), "device": options.device,
                                          "results": results}, indent=1) + "\n")
    print(f"gpu_check: {'all passed' if passed else 'FAILED'}; see {options.output}")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
