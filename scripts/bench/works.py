"""What is measured of one call: each work loads one side of it and returns the call, whose result the other side's must equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import sdtune

from .environment import PLAIN
from .models import MODELS, BenchModel, write_full_pipeline, write_text_encoder, write_unet, write_vae

BASE = Path(__file__).resolve().parents[2] / "models" / "portrait-64"
PROMPT = "a photo of a person on a beach"
NOISE_OF = "noise of "
Call = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """A number format and, on diffusers' side, the memory layout of its networks, whether torch.compile compiles them, the number format
    that an image's noise is drawn in where it is given to the pipeline, and the environment of its process (environment.py), which is no
    part of its text; sdtune chooses its own."""

    dtype: str
    layout: str = ""
    is_compiled: bool = False
    noise: str = ""
    environment: str = PLAIN

    def __str__(self) -> str:
        noise = [NOISE_OF + self.noise] if self.noise else []
        return ", ".join([self.dtype, *([self.layout] if self.layout else []), *(["compiled"] if self.is_compiled else []), *noise])

    @staticmethod
    def parse(text: str) -> Candidate:
        dtype, *others = text.split(", ")
        noise = next((other.removeprefix(NOISE_OF) for other in others if other.startswith(NOISE_OF)), "")
        return Candidate(dtype, others[0] if others else "", "compiled" in others, noise)


OURS = [Candidate("float32"), Candidate("bfloat16")]
THEIRS = [Candidate(dtype, layout) for dtype in ("float32", "bfloat16") for layout in ("contiguous", "channels_last")]


def in_layout(module: torch.nn.Module, candidate: Candidate) -> torch.nn.Module:
    """The module in the memory layout of the candidate."""
    return module.to(memory_format=torch.channels_last) if candidate.layout == "channels_last" else module


def compiled(call: Callable[..., object], candidate: Candidate) -> Callable[..., object]:
    """A module, or a method of one, under torch.compile where the candidate says so."""
    return torch.compile(call) if candidate.is_compiled else call


def image_like(values: np.ndarray, candidate: Candidate) -> torch.Tensor:
    """[B, C, H, W] in dtype and layout of the candidate."""
    tensor = torch.from_numpy(values).to(getattr(torch, candidate.dtype))
    return tensor.to(memory_format=torch.channels_last) if candidate.layout == "channels_last" else tensor


def numbers(tensor: torch.Tensor) -> np.ndarray:
    return tensor.float().numpy()


class Forward:
    """The UNet's forward pass of one batch."""

    def __init__(self, model: BenchModel, folder: Path) -> None:
        self.model, self.unet = model, write_unet(model, folder)
        random = np.random.default_rng(0)
        self.sample = random.standard_normal((model.batch, 4, model.latent_size, model.latent_size), dtype=np.float32)
        self.time = np.full((model.batch,), 500, dtype=np.int64)
        self.context = random.standard_normal((model.batch, 77, model.text_width), dtype=np.float32)

    def ours(self, candidate: Candidate) -> Call:
        unet = sdtune.UNet2DConditionModel.from_pretrained(str(self.unet), dtype=candidate.dtype, device="cpu")
        return lambda: unet(self.sample, self.time, self.context)

    def theirs(self, candidate: Candidate) -> Call:
        from diffusers import UNet2DConditionModel
        unet = in_layout(UNet2DConditionModel.from_pretrained(self.unet, torch_dtype=getattr(torch, candidate.dtype)).eval(), candidate)
        sample, time = image_like(self.sample, candidate), torch.from_numpy(self.time)
        context = torch.from_numpy(self.context).to(sample.dtype)
        forward = compiled(unet, candidate)
        return lambda: numbers(forward(sample, time, context).sample)


class Vae:
    """Half of Stable Diffusion's autoencoder, for images of 512 px."""

    side, is_decoder = 512, True

    def __init__(self, model: BenchModel, folder: Path) -> None:
        self.vae = write_vae(folder)
        random = np.random.default_rng(0)
        shape = (model.batch, 4, self.side // 8, self.side // 8) if self.is_decoder else (model.batch, 3, self.side, self.side)
        self.values = random.standard_normal(shape, dtype=np.float32)

    def ours(self, candidate: Candidate) -> Call:
        vae = sdtune.AutoencoderKL.from_pretrained(str(self.vae), dtype=candidate.dtype, device="cpu")
        return (lambda: vae.decode(self.values)) if self.is_decoder else (lambda: vae.encode(self.values)[0])

    def theirs(self, candidate: Candidate) -> Call:
        from diffusers import AutoencoderKL
        vae = in_layout(AutoencoderKL.from_pretrained(self.vae, torch_dtype=getattr(torch, candidate.dtype)).eval(), candidate)
        values = image_like(self.values, candidate)
        if self.is_decoder:
            decode = compiled(vae.decode, candidate)
            return lambda: numbers(decode(values).sample)
        encode = compiled(vae.encode, candidate)
        return lambda: numbers(encode(values).latent_dist.mean)


class VaeEncode(Vae):
    is_decoder = False


class Text:
    """SD 1.5's text encoder, of a batch of prompts; each call is another's, since how far rounding leads differs by prompt."""

    def __init__(self, model: BenchModel, folder: Path) -> None:
        self.encoder, self.batch = write_text_encoder(folder), model.batch
        self.random = np.random.default_rng(0)

    def next_ids(self) -> np.ndarray:
        return self.random.integers(0, 49406, (self.batch, 77))

    def ours(self, candidate: Candidate) -> Call:
        encoder = sdtune.CLIPTextModel.from_pretrained(str(self.encoder), dtype=candidate.dtype, device="cpu")
        return lambda: encoder(self.next_ids())[0]

    def theirs(self, candidate: Candidate) -> Call:
        from transformers import CLIPTextModel
        encoder = CLIPTextModel.from_pretrained(self.encoder, torch_dtype=getattr(torch, candidate.dtype)).eval()
        encode = compiled(encoder, candidate)
        return lambda: numbers(encode(torch.from_numpy(self.next_ids())).last_hidden_state)


class Picture:
    """An image, from its words to pixels, with guidance and the base's own sampler: of the bundled base in 30 steps, or at SD 1.5's size
    with random weights in 25. Each call is another seed's: rounding decides what a single image becomes."""

    guidance = 7.5

    def __init__(self, model: BenchModel, folder: Path) -> None:
        is_bundled = model.name != "sd15"
        self.base, self.steps = (BASE, 30) if is_bundled else (write_full_pipeline(model, folder), 25)
        self.seed = 0

    def next_seed(self) -> int:
        self.seed += 1
        return self.seed

    def ours(self, candidate: Candidate) -> Call:
        pipeline = sdtune.StableDiffusionPipeline.from_pretrained(str(self.base), dtype=candidate.dtype, device="cpu")
        return lambda: pipeline(PROMPT, num_inference_steps=self.steps, guidance_scale=self.guidance, seed=self.next_seed(), output_type="np").images

    def theirs(self, candidate: Candidate) -> Call:
        from diffusers import StableDiffusionPipeline
        pipeline = StableDiffusionPipeline.from_pretrained(self.base, dtype=getattr(torch, candidate.dtype), safety_checker=None)
        pipeline.set_progress_bar_config(disable=True)
        for part in (pipeline.unet, pipeline.vae):
            in_layout(part, candidate)
        shape = (1, pipeline.unet.config.in_channels, *(pipeline.unet.config.sample_size,) * 2)
        pipeline.unet, pipeline.vae.decode = compiled(pipeline.unet, candidate), compiled(pipeline.vae.decode, candidate)

        def image() -> np.ndarray:
            generator, latents = torch.Generator().manual_seed(self.next_seed()), None
            if candidate.noise:
                latents = torch.randn(shape, generator=generator, dtype=getattr(torch, candidate.noise)).to(getattr(torch, candidate.dtype))
            return pipeline(PROMPT, num_inference_steps=self.steps, guidance_scale=self.guidance, output_type="np", generator=generator,
                            latents=latents).images

        return image


WORKS = {"forward": Forward, "vae-decode": Vae, "vae-encode": VaeEncode, "text": Text, "picture": Picture}


def load(work: str, model: str, batch: int | None, folder: Path) -> Forward | Vae | Text | Picture:
    return WORKS[work](MODELS[model].with_overrides(batch, None), folder)
