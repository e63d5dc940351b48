"""`sdtune convert`: LDM single files of the three families, both ways, beside diffusers' own reader of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from diffusers import AutoencoderKL, DDPMScheduler, DiffusionPipeline, UNet2DConditionModel
from ldm_layout import ldm_tensors, write_hollow, write_ldm
from program import run
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, make_pipeline, make_tokenizer
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

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


def settings_of(folder: Path) -> dict[str, object]:
    """Every setting of the parts and the scheduler, without what says who wrote the file."""
    found = {path.parent.name: json.loads(path.read_text()) for path in folder.glob("*/*config.json")
             if path.parent.name in (*PARTS, "scheduler")}
    return {f"{part}.{key}": value for part, config in found.items() for key, value in config.items()
            if not key.startswith("_") and key != "architectures"}


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
    assert "checked  read back" in said
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
        read = read_by_diffusers(tmp_path / "mutant.safetensors", folder, type(pipe))
        assert_same(weights_of(read), weights_of(pipe))


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
    ours, theirs = settings_of(tmp_path / "back"), settings_of(folder)
    assert len(set(ours) & set(theirs)) > 50
    assert {key: ours[key] for key in ours if key in theirs} == {key: theirs[key] for key in ours if key in theirs}


@pytest.mark.parametrize(("family", "expected"), [
    ("sd1", {"architecture": "stable-diffusion-v1", "prediction_type": "epsilon", "resolution": "32x32", "title": "caf\ufffd"}),
    ("sd2", {"architecture": "stable-diffusion-v2-768-v", "prediction_type": "v", "resolution": "32x32"}),
    ("sdxl", {"architecture": "stable-diffusion-xl-v1-base", "prediction_type": "epsilon", "resolution": "32x32"})])
def test_export_says_what_it_is(family: str, expected: dict[str, str], models: Callable, tmp_path: Path) -> None:
    """modelspec's metadata, beside the format that transformers demands."""
    output = tmp_path / ("caf\udce9.safetensors" if family == "sd1" else "m.safetensors")  # a name need not be UTF-8
    convert(models(family)[1], output)
    metadata = safe_open(output.rename(tmp_path / "n.safetensors"), "pt").metadata()
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
    crowded |= {f"cond_stage_model.{name}": torch.ones(()) for name in ("logit_scale", "text_projection", "transformer.text_projection.weight")}
    crowded |= ema | {"betas": torch.zeros(3), "model_ema.decay": torch.zeros(()),
                      "first_stage_model.loss.logvar": torch.zeros(()),
                      "cond_stage_model.transformer.text_model.embeddings.position_ids": torch.arange(77)[None]}
    save_file(crowded, tmp_path / "crowded.safetensors")
    said = convert(tmp_path / "crowded.safetensors", tmp_path / "plain", "--config", str(folder))
    assert f"{len(ema) + 7} ignored" in said
    assert_same(stored_of(tmp_path / "plain"), stored_of(folder))
    convert(tmp_path / "crowded.safetensors", tmp_path / "ema", "--config", str(folder), "--extract-ema")
    expected = {name: tensor + 1.0 if name.startswith("unet.") else tensor
                for name, tensor in stored_of(folder).items()}
    assert_same(stored_of(tmp_path / "ema"), expected)


def test_sd_2_in_the_names_of_sdxl(models: Callable, tmp_path: Path) -> None:
    pipe, folder = models("sd2")  # SD Turbo is published so
    save_file({name.replace("cond_stage_model.model.", "conditioner.embedders.0.model."): tensor.clone()
               for name, tensor in ldm_tensors(pipe, "sd2").items()}, tmp_path / "turbo.safetensors")
    convert(tmp_path / "turbo.safetensors", tmp_path / "read", "--config", str(folder))
    assert_same(stored_of(tmp_path / "read"), stored_of(folder))


def test_a_dry_run_refuses_what_does_not_fit_together(models: Callable, tmp_path: Path) -> None:
    bad = shutil.copytree(models("sd1")[1], tmp_path / "bad")
    words = json.loads((bad / "tokenizer" / "tokenizer.json").read_text())
    words["model"]["vocab"]["beyond</w>"] = 99999
    (bad / "tokenizer" / "tokenizer.json").write_text(json.dumps(words))
    whole, dry = (run(["convert", "--model", str(bad), "--output", str(tmp_path / "m.safetensors"), *more]) for more in ((), ("--dry-run",)))
    assert whole.returncode == dry.returncode == 2 and whole.stderr == dry.stderr


@pytest.mark.parametrize(("change", "said"), [
    (lambda t: t.pop("model.diffusion_model.out.2.bias"), "unet: does not fit its config.json: 1 tensors missing (con"),
    (lambda t: t.update({"model.diffusion_model.extra": torch.zeros(1)}), "1 unexpected (model.diffusion_model.extra)"),
    (lambda t: t.update({"first_stage_model.quant_conv.bias": torch.zeros(3)}), "of a wrong shape (quant_conv.bias"),
    (lambda t: t.update({"control_model.x": torch.zeros(1)}), "1 tensors that are no part of the model (control_"),
    (lambda t: t.update({"model.diffusion_model.input_blocks.0.0.weight": torch.zeros(32, 9, 3, 3)}), "an inpainting"),
    (lambda t: [t.pop(name) for name in list(t) if name.startswith("first_stage")], "holds no VAE"),
    (lambda t: [t.pop(name) for name in list(t) if name.startswith("cond_")], "holds no text encoder"),
    (lambda t: t.update({f"conditioner.embedders.0.model.{n}": t.pop(n) for n in list(t) if n.startswith("cond_")}
                        | {"model.diffusion_model.label_emb.0.0.weight": torch.zeros(1)}), "is SDXL's refiner"),
    (lambda t: t.update({"model.diffusion_model.out.2.bias": t["model.diffusion_model.out.2.bias"].double()}), "holds float64 numbers"),
    (lambda t: t.update({"conditioner.embedders.1.model.ln_final.bias": torch.zeros(1)}), "describes another family"),
    (lambda t: [t.pop(name) for name in list(t) if name.startswith("model.")], "is not a Stable Diffusion model"),
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
        line = refusal("--model", str(file), "--output", str(tmp_path / "x"), "--config", str(epsilon))
        assert "is v_prediction by" in line and "and epsilon by the scheduler of --config" in line
        assert "predicts v_prediction (" in convert(file, tmp_path / "x", "--config", str(velocity), "--dry-run")
    convert(marked, tmp_path / "settled", "--config", str(epsilon), "--prediction-type", "v_prediction")
    config = json.loads((tmp_path / "settled" / "scheduler" / "scheduler_config.json").read_text())
    assert config["prediction_type"] == "v_prediction" and config["rescale_betas_zero_snr"] is True
    convert(tmp_path / "settled", tmp_path / "again.safetensors")
    assert {"v_pred", "ztsnr"} < set(load_file(tmp_path / "again.safetensors"))


# What distinguishes the published models; the rest are diffusers' defaults.
PUBLISHED_UNETS = {
    "sd1": dict(cross_attention_dim=768, attention_head_dim=8),
    "sd2": dict(cross_attention_dim=1024, attention_head_dim=(5, 10, 20, 20), use_linear_projection=True),
    "sdxl": dict(cross_attention_dim=2048, attention_head_dim=(5, 10, 20), use_linear_projection=True,
                 block_out_channels=(320, 640, 1280), transformer_layers_per_block=(1, 2, 10),
                 down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                 up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                 addition_embed_type="text_time", addition_time_embed_dim=256,
                 projection_class_embeddings_input_dim=2816)}
CLIP_L = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12)
OPEN_CLIP_H = dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16)
OPEN_CLIP_BIG_G = dict(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                       projection_dim=1280)


def published_model(family: str) -> SimpleNamespace:
    """The modules of the published model without their weights."""
    blocks = ("DownEncoderBlock2D",) * 4, ("UpDecoderBlock2D",) * 4
    with torch.device("meta"):
        model = SimpleNamespace(
            unet=UNet2DConditionModel(**PUBLISHED_UNETS[family]),
            vae=AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2, down_block_types=blocks[0],
                              up_block_types=blocks[1]),
            text_encoder=CLIPTextModel(CLIPTextConfig(**(OPEN_CLIP_H if family == "sd2" else CLIP_L))))
        if family == "sdxl":
            model.text_encoder_2 = CLIPTextModelWithProjection(CLIPTextConfig(**OPEN_CLIP_BIG_G))
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_published_models_need_no_configs(family: str, tmp_path: Path) -> None:
    """Every tensor of the published sizes is matched by name and shape, with a vocabulary and, for SD 2.x, the kind."""
    model = published_model(family)
    tensors = ldm_tensors(model, family)
    if family == "sd2":
        tensors["cond_stage_model.model.text_projection"] = torch.empty(1024, 1024, device="meta")
    file = write_hollow(tensors, tmp_path / "published.safetensors")
    make_tokenizer(tmp_path / "clip")
    flags = ["--tokenizer", str(tmp_path / "clip"), "--dry-run"]
    if family == "sd2":
        line = refusal("--model", str(file), "--output", str(tmp_path / "out"), *flags)
        assert "SD 2.x was published in both kinds" in line and "--prediction-type epsilon or v_prediction" in line
        flags += ["--prediction-type", "v_prediction"]
    said = convert(file, tmp_path / "out", *flags)
    count = sum(len(list(part.parameters())) for part in vars(model).values())
    if family == "sd2":
        count -= len(list(model.text_encoder.encoder.layers[-1].parameters()))
    assert f"weights  {count} matched, 0 missing, 0 unexpected, {13 if family == 'sd2' else 0} ignored; float16" in said
    assert not (tmp_path / "out").exists()
    line = refusal("--model", str(file), "--output", str(tmp_path / "out"), "--prediction-type", "epsilon")
    assert "--tokenizer: is not given" in line and "vocab.json and merges.txt" in line


def test_other_sizes_need_configs(models: Callable, tmp_path: Path) -> None:
    """A smaller model of the same class, without --config: its size is named, and what to give."""
    tiny = write_ldm(models("sd1")[0], "sd1", tmp_path / "tiny.safetensors")
    line = refusal("--model", str(tiny), "--output", str(tmp_path / "out"))
    assert "got 32; allowed: 320" in line and "--config FOLDER" in line


def test_output_is_never_lost_or_mistaken(models: Callable, tmp_path: Path) -> None:
    """No overwriting unasked, none of what is no model, no wrong kind of name, no options without effect."""
    _, folder = models("sd1")
    assert "gone.safetensors: is not there" in refusal("--model", "gone.safetensors", "--output", str(tmp_path / "out"))
    file, words = tmp_path / "m.safetensors", ("--model", str(folder))
    file.write_text("mine")
    assert "exists" in refusal(*words, "--output", str(file))
    assert file.read_text() == "mine"
    convert(folder, file, "--overwrite")
    assert "must end in .safetensors" in refusal(*words, "--output", str(tmp_path / "m.ckpt"))
    assert all("names a file" in refusal("--model", str(file), "--output", str(tmp_path / name)) for name in ("n.safetensors", "n.ckpt"))
    output = ("--output", str(tmp_path / "n.safetensors"))
    assert "--extract-ema: applies to single files" in refusal(*words, *output, "--extract-ema")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("mine")
    assert "is not a model" in refusal("--model", str(file), "--output", str(tmp_path / "papers"), "--overwrite",
                                       "--config", str(folder))
    assert (tmp_path / "papers" / "thesis.txt").exists()
    convert(folder, tmp_path / "dry.safetensors", "--dry-run")
    assert not (tmp_path / "dry.safetensors").exists()


def test_folders_of_the_output_are_made(models: Callable, tmp_path: Path) -> None:
    """Of a file, of a folder, of a merged model; and none for what is refused or not written."""
    _, folder = models("sd1")
    convert(folder, tmp_path / "a" / "b" / "model.safetensors")
    convert(tmp_path / "a" / "b" / "model.safetensors", tmp_path / "c" / "d" / "model", "--config", str(folder))
    assert (tmp_path / "c" / "d" / "model" / "model_index.json").is_file()
    convert(folder, tmp_path / "e" / "model.safetensors", "--dry-run")
    refusal("--model", str(tmp_path), "--output", str(tmp_path / "e" / "model.safetensors"))
    assert not (tmp_path / "e").exists()


def test_refuses_what_could_run_code_and_what_no_file_can_say(models: Callable, tmp_path: Path) -> None:
    """A .ckpt is not opened; a model that predicts x0 is not exported."""
    folder = models("sd1")[1]
    torch.save({"state_dict": {"model.diffusion_model.out.2.bias": torch.zeros(4)}}, tmp_path / "m.ckpt")
    line = refusal("--model", str(tmp_path / "m.ckpt"), "--output", str(tmp_path / "out"), "--config", str(folder))
    assert "can run code when it is read" in line
    (tmp_path / "x0").mkdir()
    for part in folder.iterdir():
        (tmp_path / "x0" / part.name).symlink_to(part)
    (tmp_path / "x0" / "scheduler").unlink()
    DDPMScheduler(prediction_type="sample").save_pretrained(tmp_path / "x0" / "scheduler")
    index = json.loads((folder / "model_index.json").read_text()) | {"scheduler": ["diffusers", "DDPMScheduler"]}
    (tmp_path / "x0" / "model_index.json").unlink()
    (tmp_path / "x0" / "model_index.json").write_text(json.dumps(index))
    for more in ((), ("--dry-run",)):
        line = refusal("--model", str(tmp_path / "x0"), "--output", str(tmp_path / "out.safetensors"), *more)
        assert "predicts x0, which no single file can say" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.ckpt", "x0"]


def test_inspect_says_what_a_single_file_is(models: Callable, tmp_path: Path) -> None:
    """Family and prediction type of a file; of SD 2.x without metadata, that it is said nowhere."""
    def inspected(file: Path) -> dict[str, object]:
        return json.loads(run(["inspect", str(file), "--json"]).stdout)

    convert(models("sd2")[1], tmp_path / "ours.safetensors")
    ours, foreign = inspected(tmp_path / "ours.safetensors"), inspected(
        write_ldm(models("sd2")[0], "sd2", tmp_path / "foreign.safetensors"))
    assert (ours["family"], ours["prediction_type"], ours["problems"]) == ("SD 2.x", "v_prediction", [])
    assert foreign["family"] == "SD 2.x" and "prediction_type" not in foreign
    assert "SD 2.x was published in both kinds" in foreign["problems"][0]


@pytest.mark.parametrize("command", [["sample", "--prompt", "a", "--model"], ["train", "--images", ".", "--base"]])
def test_other_commands_name_convert(command: list[str], models: Callable, tmp_path: Path) -> None:
    """A single file where a folder is needed: the error says what makes one of it."""
    file = write_ldm(models("sd1")[0], "sd1", tmp_path / "m.safetensors")
    done = run([*command, str(file)], cwd=tmp_path)
    assert done.returncode == 2
    assert "sdtune convert --model FILE --output FOLDER" in done.stderr
