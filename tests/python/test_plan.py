"""`sdtune plan`: sizes of the published models, work and memory against torch's own counts, prices, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
import yaml
from counted_flops import flop_counter
from diffusers import UNet2DConditionModel
from program import ROOT, run

import sdtune

ME = ROOT / "examples" / "me"
BASE = ROOT / "models" / "portrait-64"

FLOAT32 = ["--mixed-precision", "no"]


def plan(*words: object) -> dict:
    """Of the smaller bundled base, where the words name no other."""
    base = [] if {"--base", "--family"} & set(map(str, words)) else ["--base", BASE]
    done = run(["plan", "--json", "--savings", "false", *(str(word) for word in (*base, *words))])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def phase(found: dict, device: str, name: str) -> dict[str, int]:
    """Part -> bytes."""
    parts = next(part for part in found[device]["phases"] if part["name"] == name)["parts"]
    return {part["name"]: part["bytes"] for part in parts}


def test_published_models_have_their_published_sizes() -> None:
    """SD 1.x: 859,520,964 numbers in the UNet, 123,060,480 in the text encoder, 83,653,863 in the VAE."""
    found = plan("--family", "sd15", "--photos", 10, "--resolution", 128, "--train-text-encoder", "false",
                 "--mixed-precision", "no")
    assert found["run"]["trained_parameters"] == 859520964
    assert found["run"]["total_parameters"] == 859520964 + 123060480 + 83653863
    parts = phase(found, "gpu", "training")
    assert parts["weights of unet"] == 4 * 859520964
    assert parts["states of adamw"] == 8 * 859520964
    assert found["run"]["total_steps"] == 1000 and found["run"]["class_images"] == 200  # the preset's


def test_ranks_share_what_the_option_says() -> None:
    """Half of the optimizer states on two ranks by default, and of the gradients by an option; nothing with `none`, which is the mutant."""
    words = ["--images", ME, "--with-prior-preservation", "false", "--train-text-encoder", "false", "--mixed-precision", "no"]
    alone, shared = plan(*words), plan(*words, "--ranks", 2)
    whole, own = phase(alone, "gpu", "training"), phase(shared, "gpu", "training")
    assert own["gradients"] == whole["gradients"]
    assert 1 / 2 <= own["states of adamw"] / whole["states of adamw"] <= 1.05 / 2
    assert shared["run"]["ranks"] == 2 and shared["run"]["batch"] == 2 * alone["run"]["batch"]
    gradients = phase(plan(*words, "--ranks", 2, "--shard", "gradients"), "gpu", "training")
    assert 1 / 2 <= gradients["gradients"] / whole["gradients"] <= 1.05 / 2
    assert phase(plan(*words, "--ranks", 2, "--shard", "none"), "gpu", "training") == whole


def test_work_of_a_step_is_what_torch_counts() -> None:
    """Forward and backward of diffusers' UNet, counted by torch."""
    unet = UNet2DConditionModel.from_pretrained(BASE, subfolder="unet")
    cells = 16
    with flop_counter() as counter:
        latents = torch.zeros(2, unet.config.in_channels, cells, cells)
        width = unet.config.cross_attention_dim
        context = torch.zeros(2, 77, width if isinstance(width, int) else width[0])
        unet(latents, torch.tensor(1), context).sample.mean().backward()
    frozen, trained = (plan("--images", ME, "--train-batch-size", 2, "--with-prior-preservation", "false", "--train-text-encoder", text)
                       for text in ("false", "true"))
    assert frozen["flops"]["step"] == pytest.approx(counter.get_total_flops(), rel=0.005)
    assert trained["flops"]["step"] > 1.05 * counter.get_total_flops()


def test_lora_keeps_states_of_its_branches_alone() -> None:
    full, lora = plan("--images", ME), plan("--images", ME, "--method", "lora", "--mixed-precision", "no")
    assert lora["run"]["trained_parameters"] < full["run"]["trained_parameters"] / 10
    assert phase(lora, "gpu", "training")["gradients"] == 4 * lora["run"]["trained_parameters"]
    assert lora["cpu"]["peak_bytes"] < full["cpu"]["peak_bytes"]


def test_class_images_without_guidance_are_half_the_work() -> None:
    """The UNet's calls; their decoding is the same."""
    full, half, fewer = (plan("--images", ME, "--base", BASE, *words)["flops"]["class_images"]
                         for words in (("--class-guidance-scale", 2, "--class-num-inference-steps", 20),
                                       ("--class-guidance-scale", 1, "--class-num-inference-steps", 20),
                                       ("--class-guidance-scale", 1, "--class-num-inference-steps", 10)))
    assert full - half == pytest.approx(2 * (half - fewer), rel=1e-9)


def test_class_images_that_are_there_are_not_generated_again(tmp_path: Path) -> None:
    words = ("--images", ME, "--num-class-images", 20)
    none = plan(*words)
    for path in sorted(ME.iterdir())[:5]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    some = plan(*words, "--class-data-dir", tmp_path)
    there = len([path for path in tmp_path.iterdir() if path.suffix in (".png", ".jpg")])
    assert there > 0 and (some["run"]["class_images"], some["run"]["generated_class_images"]) == (20, 20 - there)
    assert some["flops"]["class_images"] == pytest.approx(none["flops"]["class_images"] * (20 - there) / 20)
    assert some["flops"]["encoding"] == none["flops"]["encoding"]


def test_class_images_of_an_earlier_run_are_counted_as_training_finds_them(tmp_path: Path) -> None:
    """Two are there; with another seed they are none of its own."""
    words = ["--images", ME, "--base", BASE, "--output", tmp_path / "run", "--device", "cpu", "--with-prior-preservation", "true",
             "--class-num-inference-steps", 1]
    done = run(["prepare", *(str(word) for word in (*words, "--num-class-images", 2))])
    assert done.returncode == 0, done.stderr
    counts = {name: plan(*words, "--num-class-images", 3, *more)["run"]["generated_class_images"]
              for name, more in (("same", ()), ("other seed", ("--seed", 7)), ("other guidance", ("--class-guidance-scale", 3)))}
    assert counts == {"same": 1, "other seed": 3, "other guidance": 3}
    again = run(["prepare", *(str(word) for word in (*words, "--num-class-images", 3))])
    assert again.returncode == 0 and len(list((tmp_path / "run" / "class_images").glob("class-*.png"))) == 3, again.stderr


@pytest.mark.parametrize("option", [("--cache-latents", "false"), ("--center-crop", "false"), ("--crop-style", "random")], ids=lambda words: words[0])
def test_latents_that_are_not_cached_are_work_of_every_step(option: tuple[str, str]) -> None:
    """Of 5 photos and 20 class images once, or of a photo and a class image in each step."""
    words = ("--images", ME, "--num-class-images", 20, "--train-batch-size", 1, "--with-prior-preservation", "true")
    once, each = plan(*words), plan(*words, *option)
    one_image = once["flops"]["encoding"] / (once["run"]["photos"] + 20)
    assert each["flops"]["encoding"] == 0 and one_image > 0
    assert each["flops"]["step"] - once["flops"]["step"] == pytest.approx(2 * one_image)
    gpu = [plan(*words, *FLOAT32, *more) for more in ((), option)]
    assert ["weights of vae" in phase(found, "gpu", "training") for found in gpu] == [False, True]


def test_images_of_evaluations_are_counted_like_class_images() -> None:
    """Guided, 20 steps each: 16 + 8 images at 0, 100 and 200 steps, and four validation images at 0, 200."""
    words = ("--images", ME, "--base", BASE, "--max-train-steps", 200, "--class-guidance-scale", 2,
             "--class-num-inference-steps", 20, "--num-class-images", 10)
    none, likeness, both = (plan(*words, *more) for more in (
        (), ("--identity-steps", 100),
        ("--identity-steps", 100, "--validation-prompt", "sks person", "--validation-steps", 200,
         "--validation-inference-steps", 20)))
    one = none["flops"]["class_images"] / 10
    assert none["flops"]["validation_and_identity"] == 0
    assert likeness["flops"]["validation_and_identity"] == pytest.approx(3 * 24 * one, rel=1e-6)
    assert both["flops"]["validation_and_identity"] == pytest.approx((3 * 24 + 2 * 4) * one, rel=1e-6)
    assert likeness["flops"]["total"] == pytest.approx(none["flops"]["total"] + likeness["flops"]["validation_and_identity"])
    names = [phase["name"] for phase in both["gpu"]["phases"]]
    assert names == ["encoding photos", "generating class images", "training", "generating validation images",
                     "generating images for identity evaluation"]
    network = plan(*words, "--identity-steps", 100, "--identity-model", "any.onnx")
    base = phase(network, "gpu", "generating images for identity evaluation")["the base, which reads the images"]
    weights = phase(network, "gpu", "encoding photos")
    assert base == sum(weights[f"weights of {part}"] for part in ("unet", "vae", "text_encoder"))


@pytest.mark.long
def test_a_small_card_is_told_what_would_fit(tmp_path: Path) -> None:
    """GPUs and prices are the user's; the run's own epochs and steps price it."""
    savings = json.loads(run(["plan", "--images", str(ME), "--json", *FLOAT32]).stdout)["savings"]
    enough = 1.01 * savings[1]["gpu_bytes"] / 0.95 / 2**30  # a twentieth of a card is not to be had
    table = tmp_path / "gpus.yaml"
    table.write_text("currency: EUR\nutilisation: 0.5\ngpus:\n"
                     f"  - {{name: Tiny, memory_gib: {enough:.4f}, tflops: 1, price_per_hour: 2}}\n"
                     "  - {name: Large, memory_gib: 80, tflops: 1, price_per_hour: 2}\n")
    done = run(["plan", "--images", str(ME), "--gpus", str(table), "--json", *FLOAT32])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    small, large = found["gpus"]
    assert found["currency"] == "EUR"
    assert not small["fits"] and "training needs" in small["why_not"]
    assert small["fits_with"] == savings[1]["options"] == "micro_batch: 1 and gradient_checkpointing"
    assert large["fits"] and large["hours"] == pytest.approx(found["flops"]["total"] / 0.5e12 / 3600)
    assert large["price"] == pytest.approx(2 * large["hours"])
    assert large["price_per_epoch"] == pytest.approx(large["price"] / found["run"]["epochs"])
    text = run(["plan", "--images", str(ME), "--gpus", str(table), *FLOAT32])
    assert "does not fit: training needs" in text.stdout and "EUR a model" in text.stdout


@pytest.mark.long
def test_probe_times_this_machine_and_leaves_nothing(tmp_path: Path) -> None:
    found = plan("--images", ME, "--probe", "--output", tmp_path / "run", "--max-train-steps", 500,
                 "--train-batch-size", 1, "--num-class-images", 8)
    probed = found["this_machine"]
    assert probed["timed_steps"] >= 3 and probed["step_s"] > 0 and probed["class_image_s"] > 0
    assert probed["total_s"] > 500 * probed["step_s"] and probed["validation_and_identity_s"] == 0
    assert abs(found["cpu"]["peak_bytes"] / probed["peak_bytes"] - 1) < 0.2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_probe_evaluates_nothing_and_is_not_refused_for_it(tmp_path: Path) -> None:
    """early_stop_patience needs identity evaluations, which a probe leaves out."""
    found = plan("--images", ME, "--probe", "--output", tmp_path / "run", "--max-train-steps", 500, "--train-batch-size", 1,
                 "--with-prior-preservation", "false", "--identity-steps", 100, "--early-stop-patience", 2)
    assert found["this_machine"]["timed_steps"] >= 3 and found["this_machine"]["validation_and_identity_s"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_base_whose_name_is_not_utf8_is_planned(tmp_path: Path) -> None:
    """JSON cannot hold its bytes."""
    base = tmp_path / os.fsdecode(b"caf\xe9")
    base.symlink_to(BASE)
    found, same = plan("--images", ME, "--base", base), plan("--images", ME)
    assert found["run"]["model"] == f"{tmp_path}/caf\ufffd" and found["flops"] == same["flops"]


def test_python_gets_the_same_plan() -> None:
    config = sdtune.TrainConfig(images=str(ME), base=str(BASE), train_batch_size=2)
    found = sdtune.plan(config, savings=False)
    assert found["run"] == plan("--images", ME, "--base", BASE, "--train-batch-size", 2)["run"]
    assert sdtune.plan(config, photos=50, savings=False)["run"]["photos"] == 50
    with pytest.raises(sdtune.ConfigError, match="cannot be read"):
        sdtune.plan(config, gpus="nowhere.yaml")


def test_python_plans_ranks() -> None:
    config = sdtune.TrainConfig(images=str(ME))
    one, two = sdtune.plan(config), sdtune.plan(config, ranks=2)
    assert (one["run"]["ranks"], two["run"]["ranks"]) == (1, 2) and two["run"]["batch"] == 2 * one["run"]["batch"]


def test_tiles_bound_the_memory_of_encoding() -> None:
    """At four times the VAE's sample_size: the memory of one tile, and the operations of tiles that overlap by a quarter."""
    words = ("--images", ME, "--resolution", 256, *FLOAT32)
    whole, tiled = plan(*words), plan(*words, "--vae-tiling")
    one = plan("--images", ME, *FLOAT32)
    at_once = [phase(found, "cpu", "encoding photos")["encoding"] for found in (whole, tiled, one)]
    assert at_once[1] == at_once[2] < at_once[0] / 8
    side = sum(min(64, 256 - begin) for begin in range(0, 256, 48)) / 64
    assert tiled["flops"]["encoding"] == pytest.approx(one["flops"]["encoding"] * side ** 2, rel=1e-6)


def counted(found: dict, device: str) -> dict[str, dict[str, int]]:
    """Phase -> part -> bytes, without what was measured: the process, and the gaps that its allocator leaves."""
    measured = ("program and libraries", "gaps between them")
    return {one["name"]: {part["name"]: part["bytes"] for part in one["parts"] if part["name"] not in measured}
            for one in found[device]["phases"]}


@pytest.mark.parametrize(("words", "said"), [
    (["--family", "sd15"], "images: is not given"),
    (["--family", "sd3", "--photos", "5"], "(got sd3; allowed: one of sd15, sd21, sdxl)"),
    (["--photos", "0"], "--photos"),
    (["--family", "sd15", "--photos", "5", "--base", str(BASE)], "--family: and --base contradict each other"),
    (["--photos", "5", "--probe"], "--probe: needs real photos"),
    (["--images", str(ME), "--gpus", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
    (["--images", "nowhere"], "nowhere"),
    (["--images", str(ME), "--micro-batch", "abc"], "micro_batch: must divide train_batch_size (got abc"),
    (["--images", str(ME), "--train-batch-size", "4", "--micro-batch", "3"], "micro_batch: must divide"),
    (["--images", str(ME), "--resolution", "102"], "resolution: must be a multiple of the VAE's downscaling (got 102; allowed: multiples of 8)"),
    (["--images", str(ME), "--optimizer", "prodigy", "--learning-rate", "0.001"], "learning_rate"),
])
def test_mistakes_are_one_line(words: list[str], said: str) -> None:
    done = run(["plan", *words])
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr, done.stderr


def test_auto_precision_is_planned_for_each_device() -> None:
    """bf16 on a GPU, float32 on this machine's CPU; an explicit format is planned for both."""
    auto, half, whole = (plan("--images", ME, *words) for words in (
        (), ("--mixed-precision", "bf16"), ("--mixed-precision", "no")))
    assert (auto["run"]["mixed_precision"], auto["run"]["mixed_precision_on_cpu"]) == ("bf16", "no")
    assert auto["gpu"]["peak_bytes"] == half["gpu"]["peak_bytes"]
    assert counted(auto, "cpu") == counted(whole, "cpu")
    assert counted(half, "cpu") != counted(whole, "cpu")
    named = {"no": "float32", "bf16": "bf16"}
    for words in ((), ("--mixed-precision", "auto")):
        here = named[plan("--images", ME, *words)["run"]["mixed_precision_on_cpu"]]
        said = run(["plan", "--images", str(ME), "--base", str(BASE), "--savings", "false", *words]).stdout
        assert ("bf16 on a GPU and float32 on a CPU" in said) == (here == "float32"), said


def test_the_table_has_what_a_driver_gives_to_programs() -> None:
    """Names say more: the T4 of 16 GB has 14.6 GiB. Of H100 and H200 as the rented ones said; presets for 16 GB still fit a T4."""
    memory = {gpu["name"]: gpu["memory_gib"] for gpu in yaml.safe_load((ROOT / "configs" / "gpus.yaml").read_text())["gpus"]}
    for name in ("H100", "H200"):
        record = json.loads((ROOT / "docs" / "measurements" / f"first_gpu_{name.lower()}.json").read_text())
        measured = record["prove"]["machine"]["gpus"][0]["memory_bytes"] / 2**30
        assert measured - 0.2 < memory[name] <= measured, name
    assert memory["T4"] <= 14.56 and memory["L4"] < 22.5 and memory["A10G"] < 22.5 and memory["L40S"] <= 44.4 and memory["RTX 4090"] <= 23.52
    presets = yaml.safe_load((ROOT / "configs" / "preset_memory.yaml").read_text())
    assert all(need <= 0.95 * memory["T4"] for preset, need in presets.items() if preset.endswith("_16gb.yaml"))


def test_a_gpu_keeps_only_what_steps_use() -> None:
    """Autoencoder and frozen text encoder are in host memory while there are steps; a GPU may split a batch of several."""
    found = plan("--images", ME, "--mixed-precision", "bf16", "--train-text-encoder", "false", "--train-batch-size", 2)
    gpu, cpu = phase(found, "gpu", "training"), phase(found, "cpu", "training")
    assert {"weights of vae", "weights of text_encoder"} <= set(cpu) and not {"weights of vae", "weights of text_encoder"} & set(gpu)
    assert gpu["gradients"] == 2 * cpu["gradients"] == 4 * found["run"]["trained_parameters"]
    encoding = phase(found, "gpu", "encoding photos")
    assert encoding["weights of vae"] == phase(found, "cpu", "encoding photos")["weights of vae"] / 2
