"""Model folders beside diffusers': what it writes loads here completely, what is written here it loads bit by bit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import diffusers
import pytest
import sdtune
import torch
from program import run
from safetensors.torch import load_file, save_file

FAMILIES = ("sd1", "sd2", "sdxl")
PARTS = ("unet", "vae", "text_encoder", "text_encoder_2")
OLD_VAE_NAMES = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
SHARD_BYTES = 100_000

Pipeline = diffusers.DiffusionPipeline
TinyFolder = Callable[[str], Path]


def weights_of(pipeline: Pipeline) -> dict[str, torch.Tensor]:
    """Every tensor of every part, by "part: name"."""
    return {f"{part}: {name}": tensor for part in PARTS if getattr(pipeline, part, None) is not None
            for name, tensor in getattr(pipeline, part).state_dict().items()}


def differing(left: Pipeline, right: Pipeline) -> list[str]:
    """Names of tensors that only one has, or that are not equal bit by bit."""
    a, b = weights_of(left), weights_of(right)
    return [name for name in a.keys() | b.keys()
            if name not in a or name not in b or a[name].dtype != b[name].dtype or not torch.equal(a[name], b[name])]


def diffusers_load(folder: Path, **options: object) -> Pipeline:
    """The folder as diffusers has it."""
    return Pipeline.from_pretrained(str(folder), safety_checker=None, low_cpu_mem_usage=False, **options)


def through_sdtune(folder: Path, out: Path, dtype: str = "float32") -> Pipeline:
    """Loaded by sdtune, written by sdtune, loaded by diffusers."""
    sdtune.StableDiffusionPipeline.from_pretrained(str(folder), dtype=dtype, device="cpu").save_pretrained(str(out))
    return diffusers_load(out, dtype=getattr(torch, dtype))


@pytest.fixture(params=FAMILIES)
def folder(request: pytest.FixtureRequest, tiny_folder: TinyFolder) -> Iterator[Path]:
    """A folder of each family."""
    yield tiny_folder(request.param)


def test_round_trip_is_equal_bit_by_bit(folder: Path, tmp_path: Path) -> None:
    """Weights, configurations, scheduler and tokenizer ids all survive diffusers -> sdtune -> diffusers."""
    ours, theirs = through_sdtune(folder, tmp_path / "out"), diffusers_load(folder)
    assert type(ours) is type(theirs)
    assert differing(ours, theirs) == []
    for part in ("unet", "vae"):
        mine, original = dict(getattr(ours, part).config), dict(getattr(theirs, part).config)
        assert {key: mine[key] for key in original if not key.startswith("_")} == {
            key: value for key, value in original.items() if not key.startswith("_")}
    assert type(ours.scheduler) is type(theirs.scheduler)
    for key, value in theirs.scheduler.config.items():
        assert key.startswith("_") or ours.scheduler.config[key] == value, key
    names = load_file(tmp_path / "out/text_encoder/model.safetensors").keys()
    assert names and all(name.startswith("text_model.") for name in names)  # the ruling of interface.md
    index, original_index = (json.loads((place / "model_index.json").read_text()) for place in (tmp_path / "out", folder))
    assert index == {key: value for key, value in original_index.items() if key != "_name_or_path"}
    text = "a photo of sks person, été 😀 <|endoftext|>"
    for name in ("tokenizer", "tokenizer_2"):
        if hasattr(theirs, name):
            assert getattr(ours, name)(text).input_ids == getattr(theirs, name)(text).input_ids
            assert getattr(ours, name).pad_token_id == getattr(theirs, name).pad_token_id


def test_the_comparison_sees_one_changed_bit(tiny_sd1: Path) -> None:
    """The mutant of the test above: the last bit of one weight."""
    changed, original = diffusers_load(tiny_sd1), diffusers_load(tiny_sd1)
    assert differing(changed, original) == []
    changed.unet.conv_in.weight.data.view(torch.int32).view(-1)[0] ^= 1
    assert differing(changed, original) == ["unet: conv_in.weight"]


@pytest.mark.parametrize("prefix", [True, False])
def test_text_encoder_is_read_with_and_without_the_prefix(prefix: bool, tiny_sd1: Path, tmp_path: Path) -> None:
    """As transformers 4 and transformers 5 write it; with the old buffer position_ids beside."""
    folder = Path(shutil.copytree(tiny_sd1, tmp_path / "model"))
    file = folder / "text_encoder/model.safetensors"
    tensors = {name.removeprefix("text_model."): tensor for name, tensor in load_file(file).items()}
    start = "text_model." if prefix else ""
    tensors["embeddings.position_ids"] = torch.arange(77)[None]
    save_file({start + name: tensor for name, tensor in tensors.items()}, file, metadata={"format": "pt"})
    assert differing(through_sdtune(folder, tmp_path / "out"), diffusers_load(tiny_sd1)) == []


def test_shards(folder: Path, tmp_path: Path) -> None:
    """A folder that diffusers cut into several files a part."""
    pipeline = diffusers_load(folder)
    pipeline.save_pretrained(tmp_path / "shards", max_shard_size=SHARD_BYTES)
    assert len(list((tmp_path / "shards/unet").glob("*-of-*.safetensors"))) > 1
    assert differing(through_sdtune(tmp_path / "shards", tmp_path / "out"), pipeline) == []


def test_half_variant_stands_in_for_the_plain_files(folder: Path, tmp_path: Path) -> None:
    """`.fp16` files alone, read into float32."""
    pipeline = diffusers_load(folder, dtype=torch.float16)
    pipeline.save_pretrained(tmp_path / "half", variant="fp16")
    assert not list((tmp_path / "half").glob("*/model.safetensors"))
    assert differing(through_sdtune(tmp_path / "half", tmp_path / "out"), pipeline.to(torch.float32)) == []


def test_bfloat16_folder(folder: Path, tmp_path: Path) -> None:
    """Weights stored in bfloat16, kept in it."""
    pipeline = diffusers_load(folder, dtype=torch.bfloat16)
    pipeline.save_pretrained(tmp_path / "half")
    assert differing(through_sdtune(tmp_path / "half", tmp_path / "out", "bfloat16"), pipeline) == []


def test_old_names_of_the_vae_attention(tiny_sd1: Path, tmp_path: Path) -> None:
    """query, key, value and proj_attn, stored as 1 x 1 convolutions: the files of 2022."""
    folder = Path(shutil.copytree(tiny_sd1, tmp_path / "model"))
    file = folder / "vae/diffusion_pytorch_model.safetensors"
    tensors = {}
    for name, tensor in load_file(file).items():
        for new, old in OLD_VAE_NAMES.items():
            if f".{new}." in name:
                name = name.replace(new, old)
                tensor = tensor[:, :, None, None] if tensor.ndim == 2 else tensor
                break
        tensors[name] = tensor.contiguous()
    assert any("proj_attn" in name for name in tensors)
    save_file(tensors, file, metadata={"format": "pt"})
    assert differing(through_sdtune(folder, tmp_path / "out"), diffusers_load(tiny_sd1)) == []


def test_a_swapped_key_is_an_error_that_names_it(tiny_sd1: Path, tmp_path: Path) -> None:
    """Nothing is filled in, nothing is left over."""
    folder = Path(shutil.copytree(tiny_sd1, tmp_path / "model"))
    file = folder / "unet/diffusion_pytorch_model.safetensors"
    tensors = load_file(file)
    tensors["conv_inn.weight"] = tensors.pop("conv_in.weight")
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(sdtune.WeightError, match=r"1 tensors missing \(conv_in.weight\), 1 unexpected \(conv_inn.weig"):
        sdtune.StableDiffusionPipeline.from_pretrained(str(folder), device="cpu")


def test_a_pickle_is_refused_unread_with_a_way_out(tiny_sd1: Path, tmp_path: Path) -> None:
    """A .bin that would leave a file behind if anything unpickled it."""
    folder = Path(shutil.copytree(tiny_sd1, tmp_path / "model"))
    canary = tmp_path / "canary"
    (folder / "unet/diffusion_pytorch_model.safetensors").unlink()
    (folder / "unet/diffusion_pytorch_model.bin").write_bytes(
        b"\x80\x02cos\nsystem\nX" + len(f"touch {canary}").to_bytes(4, "little") + f"touch {canary}".encode() + b"\x85R.")
    with pytest.raises(sdtune.WeightError, match="diffusion_pytorch_model.bin: is a pickle.*sdtune convert --pickle"):
        sdtune.StableDiffusionPipeline.from_pretrained(str(folder), device="cpu")
    assert not canary.exists()


def test_hub_ids_come_from_the_local_cache_alone(tiny_sd1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot laid out as huggingface_hub does it; an absent one is an error that prints the command."""
    repository = tmp_path / "hub/models--someone--tiny"
    snapshot = repository / "snapshots/0123abc"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs/main").write_text("0123abc")
    for number, file in enumerate(path for path in tiny_sd1.rglob("*") if path.is_file()):
        blob, link = repository / f"blobs/{number}", snapshot / file.relative_to(tiny_sd1)
        blob.parent.mkdir(exist_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, blob)
        link.symlink_to(Path(*[".."] * (len(link.relative_to(repository).parts) - 1)) / f"blobs/{number}")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert differing(through_sdtune(Path("someone/tiny"), tmp_path / "out"), diffusers_load(tiny_sd1)) == []
    with pytest.raises(sdtune.WeightError, match="sdtune fetch someone/else"):
        sdtune.StableDiffusionPipeline.from_pretrained("someone/else", device="cpu")


def test_generates_what_diffusers_generates_from_our_folder(folder: Path, tmp_path: Path) -> None:
    """The same latents from the folder written here, in both; another seed's are far off."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(str(folder), device="cpu")
    pipe.save_pretrained(str(tmp_path / "out"))
    theirs = diffusers_load(tmp_path / "out")
    theirs.set_progress_bar_config(disable=True)
    options = {"num_inference_steps": 5, "guidance_scale": 5.0, "output_type": "latent"}
    reference = theirs("a cat", generator=torch.Generator("cpu").manual_seed(3), **options).images

    def error(seed: int) -> float:
        ours = torch.from_numpy(pipe("a cat", seed=seed, **options).images)
        return ((ours - reference).norm() / reference.norm()).item()

    assert error(3) <= 1e-4 < 10 * error(3) + 1e-3 < error(4)


def test_float64_of_a_folder_is_rounded_only_when_asked(tiny_sd1: Path, tmp_path: Path) -> None:
    """As in a single file: convert's --dtype auto says that it keeps every stored bit."""
    wide = shutil.copytree(tiny_sd1, tmp_path / "wide")
    file = next((wide / "vae").glob("*.safetensors"))
    weights = load_file(file)
    weights["quant_conv.bias"] = weights["quant_conv.bias"].double() / 3
    save_file(weights, file, metadata={"format": "pt"})
    words = ["convert", "--model", str(wide), "--output", str(tmp_path / "out.safetensors")]
    for more in ([], ["--dry-run"]):
        refused = run([*words, *more])
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr
        assert "holds float64 numbers (quant_conv.bias), which would be rounded" in refused.stderr
    assert not (tmp_path / "out.safetensors").exists()
    done = run([*words, "--dtype", "float32"])
    assert done.returncode == 0, done.stderr
    stored = load_file(tmp_path / "out.safetensors")["first_stage_model.quant_conv.bias"]
    assert torch.equal(stored, weights["quant_conv.bias"].float())


def test_numbers_too_large_for_float16_are_refused(tiny_sd1: Path, tmp_path: Path) -> None:
    """They would be infinite, in the file and in every image. A dry run says so too; other formats and sums that fit are written."""
    wide = shutil.copytree(tiny_sd1, tmp_path / "wide")
    file = next((wide / "unet").glob("*.safetensors"))
    weights = load_file(file)
    weights["conv_out.bias"][0] = 70000
    save_file(weights, file, metadata={"format": "pt"})
    to_file = ["convert", "--model", str(wide), "--output", str(tmp_path / "wide.safetensors")]
    to_folder = ["convert", "--model", str(tmp_path / "wide.safetensors"), "--output", str(tmp_path / "out"), "--config", str(wide)]
    for words in (to_file, to_folder):
        for more in ([], ["--dry-run"]):
            refused = run([*words, "--dtype", "float16", *more])
            assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr
            assert "holds numbers that are too large for float16 (conv_out.bias), which would become infinite" in refused.stderr
        done = run([*words, "--dtype", "bfloat16" if words is to_folder else "float32"])
        assert done.returncode == 0, done.stderr
    sample = ["sample", "--model", str(wide), "--prompt", "a", "--steps", "2", "--output", str(tmp_path / "images"), "--dtype"]
    refused = run([*sample, "float16"])
    assert refused.returncode == 6, refused.stderr
    assert "the image: holds numbers that are not finite; float16 overflows above 65504" in refused.stderr
    assert not list(tmp_path.glob("images/*"))
    save_file({"lora_unet_conv_in.lora_down.weight": torch.full((1, 4, 3, 3), 300.0),
               "lora_unet_conv_in.lora_up.weight": torch.full((32, 1, 1, 1), 300.0)}, tmp_path / "large.safetensors")
    merge = ["merge", "--model", str(tiny_sd1), "--output", str(tmp_path / "merged"), "--dtype", "float16", "--lora"]
    refused = run([*merge, str(tmp_path / "large.safetensors")])
    assert refused.returncode == 2 and "the merged unet: holds numbers that are too large for float16 (conv_in.weight)" in refused.stderr
    assert not (tmp_path / "merged").exists()
    other = run(["merge", "--model", str(tiny_sd1), "--lora", str(tmp_path / "large.safetensors"), "--output", str(tmp_path / "merged.ckpt")])
    assert other.returncode == 2 and "--output: names a file that sdtune does not write" in other.stderr
    assert not (tmp_path / "merged.ckpt").exists()
    done = run([*merge, str(tmp_path / "large.safetensors") + ":0.5"])
    assert done.returncode == 0, done.stderr
