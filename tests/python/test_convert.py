"""`sdtune convert`: LDM single files of the three families, both ways, beside diffusers' own reader of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from diffusers import DiffusionPipeline
from ldm_layout import ldm_tensors, write_ldm
from program import run
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, make_pipeline, make_tokenizer
from transformers import CLIPTextConfig, CLIPTextModel

# diffusers leaves out layer 23 of an OpenCLIP-H, and only that number: an encoder as deep as the published one.
SD2_LAYERS = 23
PARTS = ("unet", "vae", "text_encoder", "text_encoder_2")
Weights = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[DiffusionPipeline, Path]]:
    """models("sd1" | "sd2" | "sdxl"): a pipeline and its folder. Do not write into it."""
    made: dict[str, tuple[DiffusionPipeline, Path]] = {}

    def model_of(family: str) -> tuple[DiffusionPipeline, Path]:
        if family not in made:
            folder = tmp_path_factory.mktemp("convert") / family
            pipe = make_pipeline(family, folder.with_name("vocabulary"))
            if family == "sd2":
                settings = pipe.text_encoder.config.to_dict() | {"num_hidden_layers": SD2_LAYERS}
                pipe.text_encoder = CLIPTextModel(CLIPTextConfig(**settings)).eval()
            pipe.save_pretrained(folder)
            made[family] = pipe, folder
        return made[family]

    return model_of


def weights_of(pipe: DiffusionPipeline) -> Weights:
    """Every weight of a pipeline, by part and name."""
    return {f"{part}.{name}": tensor for part in PARTS if getattr(pipe, part, None) is not None
            for name, tensor in getattr(pipe, part).state_dict().items()}


def assert_same(ours: Weights, theirs: Weights) -> None:
    """The same names, the same bits."""
    assert set(ours) == set(theirs)
    different = [name for name in ours if ours[name].dtype != theirs[name].dtype
                 or not torch.equal(ours[name], theirs[name])]
    assert not different, different[:5]


def stored_of(folder: Path) -> Weights:
    """Every weight of a diffusers folder, by part and name, text encoders without the prefix that may be left out."""
    return {f"{part}.{name.removeprefix('text_model.')}": tensor for part in PARTS if (folder / part).is_dir()
            for file in (folder / part).glob("*.safetensors") for name, tensor in load_file(file).items()}


def convert(model: Path, output: Path, *more: str) -> str:
    """Runs it; returns what stderr said."""
    done = run(["convert", "--model", str(model), "--output", str(output), *more])
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("" if "--dry-run" in more else f"{output}\n")
    return done.stderr


def refusal(*words: str) -> str:
    """Exit 2 with one line and nothing on stdout; returns the line."""
    done = run(["convert", *words])
    assert done.returncode == 2, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("sdtune: error: ")
    return done.stderr


def read_by_diffusers(file: Path, folder: Path, kind: type[DiffusionPipeline]) -> DiffusionPipeline:
    """Offline, with the configs given."""
    return kind.from_single_file(str(file), config=str(folder), local_files_only=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_export_is_read_by_diffusers(family: str, models: Callable, tmp_path: Path) -> None:
    """from_single_file gives the folder's weights bit by bit, and a file with one swap or transposition does not."""
    pipe, folder = models(family)
    file = tmp_path / "model.safetensors"
    said = convert(folder, file)
    assert "checked  read again" in said
    assert_same(weights_of(read_by_diffusers(file, folder, type(pipe))), weights_of(pipe))
    tensors = load_file(file)
    for name, tensor in ldm_tensors(pipe, family).items():
        assert torch.equal(tensors.pop(name), tensor), name
    sd2_rest = {name for name in tensors if f".resblocks.{SD2_LAYERS}." in name}
    assert len(sd2_rest) == (12 if family == "sd2" else 0)
    assert {name.rsplit(".", 1)[1] for name in set(tensors) - sd2_rest} == {
        "sd1": set(), "sd2": {"text_projection", "logit_scale"}, "sdxl": {"logit_scale"}}[family]

    mutant = load_file(file)
    if family == "sdxl":
        mutant["conditioner.embedders.1.model.text_projection"] = mutant[
            "conditioner.embedders.1.model.text_projection"].T.contiguous()
    else:
        first, second = (f"first_stage_model.decoder.up.{level}.block.1.conv1.weight" for level in (0, 1))
        mutant[first], mutant[second] = mutant[second], mutant[first]
    save_file(mutant, tmp_path / "mutant.safetensors", {"format": "pt"})
    with pytest.raises(AssertionError):
        assert_same(weights_of(read_by_diffusers(tmp_path / "mutant.safetensors", folder, type(pipe))), weights_of(pipe))


@pytest.mark.parametrize("family", FAMILIES)
def test_foreign_file_is_read_bit_by_bit(family: str, models: Callable, tmp_path: Path) -> None:
    """A file written by the independent statement of the names becomes the pipeline that it was made from."""
    pipe, folder = models(family)
    file = write_ldm(pipe, family, tmp_path / "foreign.safetensors")
    said = convert(file, tmp_path / "read", "--config", str(folder))
    assert "0 missing, 0 unexpected" in said
    read = type(pipe).from_pretrained(tmp_path / "read", local_files_only=True)
    assert_same(weights_of(read), weights_of(pipe))
    assert dict(read.scheduler.config)["prediction_type"] == pipe.scheduler.config["prediction_type"]
    assert read.tokenizer("hello! wow!").input_ids == pipe.tokenizer("hello! wow!").input_ids

    mutant = load_file(file)
    middle = "model.diffusion_model.middle_block.{}.in_layers.2.weight"
    mutant[middle.format(0)], mutant[middle.format(2)] = mutant[middle.format(2)], mutant[middle.format(0)]
    save_file(mutant, tmp_path / "mutant.safetensors", {"format": "pt"})
    convert(tmp_path / "mutant.safetensors", tmp_path / "mutant", "--config", str(folder))
    with pytest.raises(AssertionError):
        assert_same(stored_of(tmp_path / "mutant"), stored_of(folder))


@pytest.mark.parametrize(("family", "dtype"), [("sd1", "float16"), ("sd2", "bfloat16"), ("sdxl", "float32")])
def test_round_trip_keeps_every_bit(family: str, dtype: str, models: Callable, tmp_path: Path) -> None:
    """Folder, file, folder, file: in the dtype asked for once, then kept without saying so."""
    _, folder = models(family)
    convert(folder, tmp_path / "one.safetensors", "--dtype", dtype)
    convert(tmp_path / "one.safetensors", tmp_path / "back", "--config", str(folder))
    convert(tmp_path / "back", tmp_path / "two.safetensors")
    rounded = {name: tensor.to(getattr(torch, dtype)) for name, tensor in stored_of(folder).items()}
    assert_same(stored_of(tmp_path / "back"), rounded)
    assert_same(load_file(tmp_path / "two.safetensors"), load_file(tmp_path / "one.safetensors"))
    for part in (*PARTS, "scheduler"):
        config = folder / part / ("scheduler_config.json" if part == "scheduler" else "config.json")
        if config.exists():
            ours, theirs = (json.loads((root / config.relative_to(folder)).read_text()) for root in (tmp_path / "back", folder))
            assert {key: ours[key] for key in ours if key in theirs and not key.startswith(("_", "architectures"))} == {
                key: theirs[key] for key in ours if key in theirs and not key.startswith(("_", "architectures"))}


@pytest.mark.parametrize(("family", "expected"), [
    ("sd1", {"architecture": "stable-diffusion-v1", "prediction_type": "epsilon", "resolution": "32x32"}),
    ("sd2", {"architecture": "stable-diffusion-v2-768-v", "prediction_type": "v", "resolution": "32x32"}),
    ("sdxl", {"architecture": "stable-diffusion-xl-v1-base", "prediction_type": "epsilon", "resolution": "32x32"})])
def test_export_says_what_it_is(family: str, expected: dict[str, str], models: Callable, tmp_path: Path) -> None:
    """modelspec's metadata, beside the format that transformers demands."""
    convert(models(family)[1], tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", "pt") as file:
        metadata = file.metadata()
    assert metadata["format"] == "pt" and metadata["modelspec.sai_model_spec"] == "1.0.0"
    assert {key: metadata[f"modelspec.{key}"] for key in expected} == expected


def test_tolerates_what_others_leave_in_files(models: Callable, tmp_path: Path) -> None:
    """Noise tables, EMA copy, position_ids, wrapped names, a text encoder without prefix; the EMA copy when asked."""
    pipe, folder = models("sd1")
    plain = ldm_tensors(pipe, "sd1")
    unet = "model.diffusion_model."
    ema = {"model_ema." + name.removeprefix("model.").replace(".", ""): tensor + 1.0 for name, tensor in plain.items()
           if name.startswith(unet)}
    crowded = {"module." + name.replace("diffusion_model.", "diffusion_model._orig_mod.")
               .replace("transformer.text_model.", "transformer."): tensor.clone() for name, tensor in plain.items()}
    crowded |= ema | {"betas": torch.zeros(3), "model_ema.decay": torch.zeros(()),
                      "first_stage_model.loss.logvar": torch.zeros(()),
                      "cond_stage_model.transformer.text_model.embeddings.position_ids": torch.arange(77)[None]}
    save_file(crowded, tmp_path / "crowded.safetensors")
    said = convert(tmp_path / "crowded.safetensors", tmp_path / "plain", "--config", str(folder))
    assert f"{len(ema) + 4} ignored" in said
    assert_same(stored_of(tmp_path / "plain"), stored_of(folder))
    convert(tmp_path / "crowded.safetensors", tmp_path / "ema", "--config", str(folder), "--extract-ema")
    expected = {name: tensor + 1.0 if name.startswith("unet.") else tensor for name, tensor in stored_of(folder).items()}
    assert_same(stored_of(tmp_path / "ema"), expected)


@pytest.mark.parametrize(("change", "said"), [
    (lambda t: t.pop("model.diffusion_model.out.2.bias"), "unet: does not fit its config.json: 1 tensors missing (conv_out"),
    (lambda t: t.update({"model.diffusion_model.extra": torch.zeros(1)}), "1 unexpected (model.diffusion_model.extra)"),
    (lambda t: t.update({"first_stage_model.quant_conv.bias": torch.zeros(3)}), "of a wrong shape (quant_conv.bias"),
    (lambda t: t.update({"control_model.x": torch.zeros(1)}), "1 tensors that are no part of the model (control_model.x)"),
    (lambda t: t.update({"model.diffusion_model.input_blocks.0.0.weight": torch.zeros(32, 9, 3, 3)}), "an inpainting model"),
    (lambda t: [t.pop(name) for name in list(t) if name.startswith("first_stage")], "holds no VAE"),
    (lambda t: [t.pop(name) for name in list(t) if name.startswith("cond_")], "holds no text encoder"),
    (lambda t: t.update({f"conditioner.embedders.0.model.{n}": t.pop(n) for n in list(t) if n.startswith("cond_")}),
     "is SDXL's refiner"),
    (lambda t: t.update({"conditioner.embedders.1.model.ln_final.bias": torch.zeros(1)}), "describes another family"),
    (lambda t: [t.pop(name) for name in list(t) if name.startswith("model.")], "is not a Stable Diffusion model in one"),
])
def test_refuses_by_name(change: Callable[[Weights], object], said: str, models: Callable, tmp_path: Path) -> None:
    """What is missing, too much, of a wrong shape, or of another kind; no output is left."""
    pipe, folder = models("sd1")
    tensors = {name: tensor.clone() for name, tensor in ldm_tensors(pipe, "sd1").items()}
    change(tensors)
    save_file(tensors, tmp_path / "bad.safetensors")
    assert said in refusal("--model", str(tmp_path / "bad.safetensors"), "--output", str(tmp_path / "out"), "--config",
                           str(folder))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.safetensors"]


def configs_only(folder: Path, target: Path, **scheduler: object) -> Path:
    """The folder without weights, its scheduler's settings changed."""
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("*.safetensors"))
    path = target / "scheduler" / "scheduler_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | scheduler))
    return target


def test_prediction_type_is_never_guessed(models: Callable, tmp_path: Path) -> None:
    """Metadata, v_pred, --config and the flag; two that contradict each other are refused, and the flag settles it."""
    pipe, folder = models("sdxl")
    epsilon = configs_only(folder, tmp_path / "epsilon")
    velocity = configs_only(folder, tmp_path / "velocity", prediction_type="v_prediction")
    tensors = {name: tensor.clone() for name, tensor in ldm_tensors(pipe, "sdxl").items()}
    marked, spoken = tmp_path / "marked.safetensors", tmp_path / "spoken.safetensors"
    save_file(tensors | {"v_pred": torch.empty(0), "ztsnr": torch.empty(0)}, marked)
    save_file(tensors, spoken, {"modelspec.prediction_type": "v"})
    for file in (marked, spoken):
        assert "and epsilon by the scheduler of --config" in refusal("--model", str(file), "--output", str(tmp_path / "x"),
                                                                     "--config", str(epsilon))
        assert "predicts v_prediction (" in convert(file, tmp_path / "x", "--config", str(velocity), "--dry-run")
    convert(marked, tmp_path / "settled", "--config", str(epsilon), "--prediction-type", "v_prediction")
    config = json.loads((tmp_path / "settled" / "scheduler" / "scheduler_config.json").read_text())
    assert config["prediction_type"] == "v_prediction" and config["rescale_betas_zero_snr"] is True
    convert(tmp_path / "settled", tmp_path / "again.safetensors")
    assert {"v_pred", "ztsnr"} < set(load_file(tmp_path / "again.safetensors"))


def published_size(family: str, path: Path) -> Path:
    """Names and shapes that only look like the published model: enough to get past the size, and no more."""
    width, text = {"sd1": (768, "cond_stage_model.transformer."), "sd2": (1024, "cond_stage_model.model.")}[family]
    unet = "model.diffusion_model."
    save_file({f"{unet}input_blocks.0.0.weight": torch.zeros(320, 4, 3, 3),
               f"{unet}input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight": torch.zeros(320, width),
               "first_stage_model.quant_conv.bias": torch.zeros(8), f"{text}x": torch.zeros(1)}, path)
    return path


def test_published_models_need_a_vocabulary_and_sd2_its_kind(models: Callable, tmp_path: Path) -> None:
    """Without --config: a size that is not the published one, no tokenizer, SD 2.x of an unknown kind."""
    tiny = write_ldm(models("sd1")[0], "sd1", tmp_path / "tiny.safetensors")
    output = ("--output", str(tmp_path / "out"))
    assert "got 32; allowed: 320" in refusal("--model", str(tiny), *output)
    sd1, sd2 = (published_size(family, tmp_path / f"{family}.safetensors") for family in ("sd1", "sd2"))
    line = refusal("--model", str(sd1), *output)
    assert "--tokenizer: is not given" in line and "vocab.json and merges.txt" in line
    assert "SD 2.x was published in both kinds" in refusal("--model", str(sd2), *output)
    make_tokenizer(tmp_path / "clip")
    line = refusal("--model", str(sd2), *output, "--prediction-type", "epsilon", "--tokenizer", str(tmp_path / "clip"))
    assert "tensors missing" in line


def test_output_is_never_lost_or_mistaken(models: Callable, tmp_path: Path) -> None:
    """No overwriting unasked, none of what is no model, no wrong kind of name, no options without effect."""
    _, folder = models("sd1")
    file, words = tmp_path / "m.safetensors", ("--model", str(folder))
    file.write_text("mine")
    assert "exists" in refusal(*words, "--output", str(file))
    assert file.read_text() == "mine"
    convert(folder, file, "--overwrite")
    assert "must end in .safetensors" in refusal(*words, "--output", str(tmp_path / "m.ckpt"))
    assert "names a file" in refusal("--model", str(file), "--output", str(tmp_path / "n.safetensors"))
    assert "--extract-ema: is for reading" in refusal(*words, "--output", str(tmp_path / "n.safetensors"), "--extract-ema")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("mine")
    assert "is not a model" in refusal("--model", str(file), "--output", str(tmp_path / "papers"), "--overwrite",
                                       "--config", str(folder))
    assert (tmp_path / "papers" / "thesis.txt").exists()
    convert(folder, tmp_path / "dry.safetensors", "--dry-run")
    assert not (tmp_path / "dry.safetensors").exists()


@pytest.mark.parametrize("command", [["sample", "--prompt", "a", "--model"], ["train", "--images", ".", "--base"]])
def test_other_commands_name_convert(command: list[str], models: Callable, tmp_path: Path) -> None:
    """A single file where a folder is needed: the error says what makes one of it."""
    file = write_ldm(models("sd1")[0], "sd1", tmp_path / "m.safetensors")
    done = run([*command, str(file)], cwd=tmp_path)
    assert done.returncode == 2
    assert "sdtune convert --model FILE --output FOLDER" in done.stderr
