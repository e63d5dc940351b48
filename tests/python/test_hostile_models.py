"""Models from untrusted sources: numbers that would fill the memory, integers for weights, names that command a terminal."""

from __future__ import annotations

import json
import os
import resource
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from program import SDTUNE
from safetensors.torch import load_file, save_file

UNET = "unet/diffusion_pytorch_model.safetensors"
MEMORY = 16 << 30  # bytes of addresses

HUGE = {
    "layers": ("unet", "layers_per_block", 10**9),
    "depth": ("unet", "transformer_layers_per_block", 10**9),
    "UNet channels": ("unet", "block_out_channels", [10**12] * 2),
    "latent side": ("unet", "sample_size", 10**9),
    "text width": ("unet", "cross_attention_dim", 10**12),
    "kernel": ("unet", "conv_in_kernel", 10**9 + 1),
    "text layers": ("text_encoder", "num_hidden_layers", 10**7),
    "vocabulary": ("text_encoder", "vocab_size", 10**12),
    "text hidden size": ("text_encoder", "hidden_size", 10**12),
    "positions": ("text_encoder", "max_position_embeddings", 10**12),
    "VAE channels": ("vae", "block_out_channels", [10**12] * 3),
    "VAE layers": ("vae", "layers_per_block", 10**9),
    "image side": ("vae", "sample_size", 10**9),
    "levels": ("vae", "block_out_channels", [32] * 64),
    "timesteps": ("scheduler", "num_train_timesteps", 10**12),
}


def limited(*words: object) -> subprocess.CompletedProcess[str]:
    """sdtune, which may not take more addresses than that."""
    return subprocess.run([str(SDTUNE), *(str(word) for word in words)], capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))


@pytest.fixture
def model(tiny_folder: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder("sd1"), tmp_path / "model"))


@pytest.mark.parametrize("name", HUGE)
def test_huge_numbers_are_refused_before_anything_is_built(name: str, model: Path) -> None:
    part, key, value = HUGE[name]
    path = model / part / ("scheduler_config.json" if part == "scheduler" else "config.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    ended = limited("sample", "--model", model, "--prompt", "a", "--output", model.parent / "out", "--device", "cpu")
    assert ended.returncode == 2, (ended.returncode, ended.stderr)
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert str(path) in line and key in line and "allowed" in line
    assert limited("inspect", model).returncode in (0, 2)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_integers_are_no_weights(dtype: torch.dtype, model: Path) -> None:
    weights = load_file(model / UNET)
    weights["conv_in.weight"] = weights["conv_in.weight"].to(dtype)
    save_file(weights, model / UNET)
    ended = limited("sample", "--model", model, "--prompt", "a", "--output", model.parent / "out", "--device", "cpu")
    assert ended.returncode == 2, ended.stderr
    assert "conv_in.weight: " + {torch.int64: "I64", torch.uint8: "U8"}[dtype] in ended.stderr


def test_a_name_commands_no_terminal(model: Path) -> None:
    weights = load_file(model / UNET)
    weights["a\x1b]0;owned\x07\x9b2J"] = torch.zeros(1)
    save_file(weights, model / UNET)
    for words in (["sample", "--model", model, "--prompt", "a", "--output", model.parent / "out", "--device", "cpu"],
                  ["inspect", model], ["inspect", model / UNET], ["inspect", model, "--json"]):
        ended = limited(*words)
        said = ended.stdout + ended.stderr
        assert not any(ord(letter) < 32 and letter != "\n" or 127 <= ord(letter) < 160 for letter in said), said
    assert "a\\x1b]0;owned\\x07\\xc2\\x9b2J" in limited("inspect", model).stdout
    assert json.loads(limited("inspect", model, "--json").stdout)["components"]["unet"]["unexpected"] == ["a\x1b]0;owned\x07\x9b2J"]


def test_a_tensor_without_numbers_has_no_huge_sides(tmp_path: Path) -> None:
    """Its bytes are none, but LibTorch's strides overflow."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [0, 1 << 62, 1 << 62], "data_offsets": [0, 0]}}).encode()
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    ended = limited("inspect", tmp_path / "w.safetensors")
    assert ended.returncode == 2 and "w: has a shape whose size overflows" in ended.stderr, (ended.returncode, ended.stderr)
