"""`trainable_layers`: the selected layers are trained, every other weight of the result is the base's, in bfloat16 too.

That the steps are right, test_training.py compares with PyTorch.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from program import run
from safetensors.torch import load_file
from tiny_models import make_pipeline
from training_reference import small_material, write_base

FILES = {"unet": "unet/diffusion_pytorch_model.safetensors", "text_encoder": "text_encoder/model.safetensors"}
LAYERS = ["attn2.to_k", "attn2.to_v", "q_proj"]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return small_material(tmp_path_factory.mktemp("layers"), photos=2)


def words(material: tuple[Path, Path], output: Path, *options: str, layers: list[str]) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu", "--report-to", "none",
            "--max-train-steps", "2", "--learning-rate", "1e-3", *options, *(f"--trainable-layers={layer}" for layer in layers)]


def weights(model: Path) -> dict[str, torch.Tensor]:
    # transformers 5 writes no "text_model."
    return {f"{part}.{name.removeprefix('text_model.')}": tensor for part, file in FILES.items() for name, tensor in load_file(model / file).items()}


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_every_other_weight_is_the_bases(material: tuple[Path, Path], tmp_path: Path, precision: str) -> None:
    ended = run(words(material, tmp_path / "run", "--train-text-encoder", "--mixed-precision", precision, layers=LAYERS))
    assert ended.returncode == 0, ended.stderr
    base, tuned = weights(material[0]), weights(tmp_path / "run" / "model")
    assert base.keys() == tuned.keys()
    changed = {name for name, tensor in base.items() if not torch.equal(tensor, tuned[name])}
    assert changed == {name for name in base if any(f".{layer}." in name for layer in LAYERS) and name.endswith(("weight", "bias"))}
    # What a module in bfloat16 holds would show.
    assert sum(not torch.equal(tensor, tensor.bfloat16().float()) for tensor in base.values()) > len(base) / 2


def test_layers_that_no_loss_depends_on_are_not_rounded(material: tuple[Path, Path], tmp_path: Path) -> None:
    """The last of SDXL's first text encoder, whose states are taken before it."""
    base = write_base(make_pipeline("sdxl", tmp_path / "vocabulary"), tmp_path / "base")
    ended = run(words((base, material[1]), tmp_path / "run", "--train-text-encoder", "--mixed-precision", "bf16", layers=[]))
    assert ended.returncode == 0, ended.stderr
    before, after = weights(base), weights(tmp_path / "run" / "model")
    last = max(int(name.split(".layers.")[1].split(".")[0]) for name in before if name.startswith("text_encoder.") and ".layers." in name)
    unused = [name for name in before if name.startswith("text_encoder.") and (f".layers.{last}." in name or "final_layer_norm" in name)]
    assert unused and all(torch.equal(before[name], after[name]) for name in unused)
    assert any(not torch.equal(before[name], before[name].bfloat16().float()) for name in unused)


@pytest.mark.parametrize(("options", "layers", "said"), [
    ((), ["to_q", "to_nothing"], "to_nothing"),
    ((), ["q_proj"], "q_proj"),  # of the text encoder, which is not trained
    (("--train-text-encoder",), ["to_q"], "text_encoder"),
    (("--method", "lora"), ["to_q"], "lora_layers")])
def test_what_trains_nothing_is_refused(material: tuple[Path, Path], tmp_path: Path, options: tuple[str, ...], layers: list[str],
                                        said: str) -> None:
    for command in ("train", "check"):
        ended = run([command, *words(material, tmp_path / "run", *options, layers=layers)[1:]])
        assert ended.returncode == 2, ended.stderr
        assert "trainable_layers" in ended.stderr + ended.stdout and said in ended.stderr + ended.stdout
    assert not (tmp_path / "run").exists()


def test_a_run_resumes_with_its_own_layers_alone(material: tuple[Path, Path], tmp_path: Path) -> None:
    assert run(words(material, tmp_path / "run", "--checkpointing-steps", "1", layers=["to_q"])).returncode == 0
    more = ("--max-train-steps", "3", "--resume-from-checkpoint", "latest")
    ended = run(words(material, tmp_path / "run", *more, layers=["to_k"]))
    assert ended.returncode == 2 and "trainable_layers" in ended.stderr, ended.stderr
    ended = run(words(material, tmp_path / "run", *more, layers=["to_q"]))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(("layers", "is_warned"), [(["to_q"], True), (["to_q", "q_proj"], False)])
def test_a_lora_that_leaves_the_text_encoder_out_says_so(material: tuple[Path, Path], tmp_path: Path, layers: list[str], is_warned: bool) -> None:
    """A list of the UNet's layers, as diffusers' scripts take them, and --train-text-encoder."""
    ended = run(words(material, tmp_path / "run", "--method", "lora", "--train-text-encoder", *(f"--lora-layers={layer}" for layer in layers),
                      layers=[]))
    assert ended.returncode == 0, ended.stderr
    assert ("lora_layers: selects no layer of a text encoder" in ended.stderr) == is_warned, ended.stderr
    names = load_file(tmp_path / "run" / "model" / "pytorch_lora_weights.safetensors")
    assert any(name.startswith("text_encoder.") for name in names) != is_warned
