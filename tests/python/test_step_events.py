"""Callbacks of a pipeline between steps, previews of latents, and diffusers' names: the oracle is diffusers itself."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_api import drawn, reference_pipeline, relative_error

import sdtune


@pytest.fixture(scope="module")
def pipe(tiny_sd1: Path) -> sdtune.StableDiffusionPipeline:
    return sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)


@pytest.fixture(scope="module")
def portrait() -> sdtune.StableDiffusionPipeline:
    """The bundled base, whose images are images."""
    return sdtune.StableDiffusionPipeline.from_pretrained(sdtune.TrainConfig().base)


def test_a_preview_looks_like_the_image(portrait: sdtune.StableDiffusionPipeline) -> None:
    """Correlation with the decoded image's means over the cells; that of latents with their channels swapped is lower."""
    events: list[sdtune.SampleEvent] = []
    settings = {"num_inference_steps": 8, "seed": 3, "output_type": "np"}
    image = portrait("a photo of a person", on_step=events.append, **settings).images[0]
    factor = portrait.vae_scale_factor
    cells = image.reshape(image.shape[0] // factor, factor, image.shape[1] // factor, factor, 3).mean(axis=(1, 3))
    last = events[-1]
    preview = last.preview
    assert preview.dtype == np.uint8 and preview.shape == (1, *cells.shape)
    likeness = float(np.corrcoef(preview[0].ravel(), cells.ravel())[0, 1])

    class Swapped:
        latents = last.latents[:, ::-1]

    swapped = sdtune.SampleEvent(Swapped(), last._colors).preview
    assert likeness > 0.9 > float(np.corrcoef(swapped[0].ravel(), cells.ravel())[0, 1]), likeness
    noisy = float(np.corrcoef(events[0].preview[0].ravel(), cells.ravel())[0, 1])
    assert noisy < likeness, "it becomes clearer"


def test_a_preview_changes_no_image_and_is_made_once(pipe: sdtune.StableDiffusionPipeline,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    from sdtune import _step_events
    fits: list[int] = []
    fit = _step_events.latent_colors
    monkeypatch.setattr(_step_events, "latent_colors", lambda given: (fits.append(1), fit(given))[1])
    plain = drawn(pipe, 1)
    assert (drawn(pipe, 1, on_step=lambda event: event.step) == plain).all() and fits == []
    assert (drawn(pipe, 1, on_step=lambda event: event.preview) == plain).all() and len(fits) == 1


def test_a_preview_of_sdxl_in_float16_encodes_in_float32(tiny_sdxl: Path, tmp_path: Path) -> None:
    """As force_upcast says: what the first layer gives is beyond float16."""
    import torch
    from safetensors.torch import load_file, save_file
    from sdtune._step_events import color_charts, latent_colors
    folder = Path(shutil.copytree(tiny_sdxl, tmp_path / "sdxl"))
    file = folder / "vae" / "diffusion_pytorch_model.safetensors"
    weights = load_file(file)
    first = weights["encoder.conv_in.weight"]
    weights["encoder.conv_in.weight"] = first * (40_000 / first.abs().max())
    save_file(weights, file)
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(folder, dtype="float16", device="cpu")
    charts = torch.from_numpy(color_charts(pipe.vae_scale_factor))
    assert torch.nn.functional.conv2d(charts, weights["encoder.conv_in.weight"], padding=1).abs().max() > np.finfo(np.float16).max
    colors = latent_colors(pipe)
    assert np.isfinite(colors).all() and colors[:-1].any()


def test_a_preview_of_a_vae_that_overflows_is_grey() -> None:
    from sdtune._step_events import latent_colors
    broken = SimpleNamespace(vae_scale_factor=8, vae=SimpleNamespace(config={}),
                             _encode_images=lambda charts: np.full((len(charts), 4, 8, 8), np.nan, np.float32))
    event = sdtune.SampleEvent(SimpleNamespace(latents=np.ones((1, 4, 2, 3), np.float32)), lambda: latent_colors(broken))
    assert event.preview.shape == (1, 2, 3, 3) and (event.preview == 128).all()


@pytest.mark.parametrize("scheduler", ["PNDMScheduler", "DDIMScheduler", "UniPCMultistepScheduler", "EulerDiscreteScheduler",
                                       "DPMSolverMultistepScheduler", "HeunDiscreteScheduler"])
def test_callback_on_step_end_is_diffusers(tiny_sd1: Path, scheduler: str) -> None:
    """The same calls, and the same image where the callback changes the latents."""
    import diffusers
    import torch
    ours, theirs = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1), reference_pipeline(tiny_sd1)
    ours.scheduler = getattr(sdtune, scheduler).from_config(ours.scheduler.config)
    theirs.scheduler = getattr(diffusers, scheduler).from_config(theirs.scheduler.config)
    seen: list[tuple[int, float]] = []
    expected: list[tuple[int, float]] = []

    def change(pipe: object, index: int, timestep: float, inputs: dict) -> dict:
        assert pipe is ours and inputs.keys() == {"latents"}
        seen.append((index, float(timestep)))
        return {"latents": inputs["latents"] * 0.5} if index == 1 else inputs

    def change_theirs(pipe: object, index: int, timestep: torch.Tensor, inputs: dict) -> dict:
        expected.append((index, float(timestep)))
        return {"latents": inputs["latents"] * 0.5} if index == 1 else inputs

    image, reference = drawn(ours, 1, callback_on_step_end=change), drawn(theirs, 1, callback_on_step_end=change_theirs)
    assert np.allclose(seen, expected) and len(seen) >= 4
    assert relative_error(image, reference) < 1e-4
    assert relative_error(drawn(ours, 1), reference) > 1e-3, "it does change the image"


@pytest.mark.parametrize("scheduler", ["DDIMScheduler", "EulerDiscreteScheduler"])
def test_an_interrupt_leaves_out_the_other_steps_as_in_diffusers(tiny_sd1: Path, scheduler: str) -> None:
    """The image of the steps that were run; the next call runs all of them."""
    import diffusers
    ours, theirs = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1), reference_pipeline(tiny_sd1)
    ours.scheduler = getattr(sdtune, scheduler).from_config(ours.scheduler.config)
    theirs.scheduler = getattr(diffusers, scheduler).from_config(theirs.scheduler.config)
    seen: list[tuple[object, int]] = []

    def stop(pipe: Any, index: int, timestep: object, inputs: dict) -> dict:
        seen.append((pipe, index))
        pipe._interrupt = index == 1
        return inputs

    image, reference = drawn(ours, 1, callback_on_step_end=stop), drawn(theirs, 1, callback_on_step_end=stop)
    assert [index for pipe, index in seen if pipe is ours] == [index for pipe, index in seen if pipe is theirs] == [0, 1]
    assert relative_error(image, reference) < 1e-4
    assert relative_error(drawn(ours, 1), reference) > 1e-3


def test_callbacks_are_refused_by_name(pipe: sdtune.StableDiffusionPipeline) -> None:
    assert (drawn(pipe, 1, callback_on_step_end=lambda *given: None) == drawn(pipe, 1)).all()
    got: list[dict] = []
    drawn(pipe, 1, callback_on_step_end=lambda *given: got.append(given[3]), callback_on_step_end_tensor_inputs=[])
    assert got and all(inputs == {} for inputs in got)
    wide = np.zeros((1, 4, 9, 9), np.float32)
    for options, words in (({"callback_on_step_end": lambda *given: {"latents": wide}}, "callback_on_step_end.*shape"),
                           ({"callback_on_step_end": lambda *given: {"prompt_embeds": wide}}, "callback_on_step_end.*latents"),
                           ({"callback_on_step_end": lambda *given: 3}, "callback_on_step_end.*returned 3"),
                           ({"callback_on_step_end": 3}, "callback_on_step_end.*got 3"), ({"on_step": 3}, "on_step.*got 3"),
                           ({"callback_on_step_end_tensor_inputs": ["prompt_embeds"]}, "tensor_inputs.*prompt_embeds")):
        with pytest.raises(sdtune.ConfigError, match=words) as caught:
            drawn(pipe, 1, **options)
        assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


def test_a_list_of_generators_gives_each_image_its_noise(pipe: sdtune.StableDiffusionPipeline) -> None:
    pair = drawn(pipe, 0, num_images_per_prompt=2, generator=[sdtune.Generator(5), sdtune.Generator(6)])
    for index, seed in enumerate((5, 6)):
        assert relative_error(pair[index: index + 1], drawn(pipe, seed)) < 1e-5
    assert relative_error(pair[:1], drawn(pipe, 6)) > 1e-3
    with pytest.raises(sdtune.ConfigError, match=r"generator: there must be one, or one for each image \(got 2 for 3"):
        drawn(pipe, 0, num_images_per_prompt=3, generator=[sdtune.Generator(5), sdtune.Generator(6)])


def test_every_switch_of_diffusers_is_there(pipe: sdtune.StableDiffusionPipeline) -> None:
    """With diffusers' arguments; each changes no image, or raises with the reason."""
    import diffusers
    before = drawn(pipe, 1)
    refused = set()
    names = [name for kind in (diffusers.StableDiffusionPipeline, diffusers.StableDiffusionXLPipeline) for name in dir(kind)
             if name.startswith(("enable_", "disable_"))]
    assert len(set(names)) >= 12
    for name in sorted(set(names)):
        parameters = list(inspect.signature(getattr(diffusers.StableDiffusionXLPipeline, name)).parameters.values())[1:]
        needed = [1.0 for item in parameters if item.default is item.empty and item.kind is item.POSITIONAL_OR_KEYWORD]
        try:
            getattr(pipe, name)(*needed)
        except sdtune.ConfigError as error:
            refused.add(name)
            assert error.problems[0].hint
        assert getattr(type(pipe), name).__doc__
    assert refused == {"enable_freeu", "disable_lora"}
    assert (drawn(pipe, 1) == before).all()
    with pytest.raises(sdtune.ConfigError, match="attention_op"):
        pipe.enable_xformers_memory_efficient_attention(attention_op=print)
