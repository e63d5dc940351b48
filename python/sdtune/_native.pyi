"""The C++ core of sdtune, as `import sdtune` shows it. Arrays in: NumPy, lists, or anything with __dlpack__."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .types import (
    Concept, CommHook, ComputeDtype, CropStyle, Detail, Dtype, HuberSchedule, ImageInterpolationMode, LoraNaming,
    LossType, LrScheduler, Method, MixedPrecision, OnBadImage, Optimizer, PortraitSet, PredictionType, Preemption,
    PromptSyntax, ReportTo, Sampler, Shard,
)

Floats = NDArray[np.float32]
Pixels = NDArray[np.uint8]
PathText = str | PathLike[str]

__version__: str

# Errors

class Problem:
    """One fault: where it is, what is wrong, what to do."""
    def __init__(self, where: str, what: str, hint: str = "") -> None: ...
    @property
    def where(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def hint(self) -> str: ...

class Error(Exception):
    """What a user can mend."""
    problems: Sequence[Problem]
    exit_code: int

class ConfigError(Error): ...
class WeightError(Error): ...
class DataError(Error): ...
class CheckpointError(Error): ...
class OutOfMemoryError(Error): ...
class StorageError(Error): ...
class NonFiniteError(Error): ...
class PeerLostError(Error): ...

# Random numbers and text

class Generator:
    """The random numbers of torch.Generator("cpu")."""
    def __init__(self, seed: int = 0) -> None: ...
    def manual_seed(self, seed: int) -> Self: ...
    def initial_seed(self) -> int: ...
    def randn(self, *shape: int) -> Floats: ...

class CLIPTokenizer:
    """Text to token ids, equal to transformers' CLIPTokenizer."""
    @staticmethod
    def from_pretrained(folder: PathText) -> CLIPTokenizer: ...
    @staticmethod
    def learn(texts: Sequence[str], vocab_size: int, model_max_length: int = 77) -> CLIPTokenizer: ...
    def __call__(self, text: str | bytes | Sequence[str]) -> NDArray[np.int64]: ...
    def encode(self, text: str | bytes) -> list[int]: ...
    def truncated(self, text: str | bytes) -> int: ...
    def save_pretrained(self, folder: PathText) -> None: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def model_max_length(self) -> int: ...
    @property
    def bos_token_id(self) -> int: ...
    @property
    def eos_token_id(self) -> int: ...
    @property
    def pad_token_id(self) -> int: ...

# Networks: config as config.json has it; from_pretrained reads one part of a diffusers folder

class UNet2DConditionModel:
    """sample [B, C, H, W], a timestep or [B] of them, encoder_hidden_states [B, L, D] -> [B, C, H, W]."""
    @staticmethod
    def from_pretrained(path: PathText, dtype: str = "float32", device: str = "auto") -> UNet2DConditionModel: ...
    @staticmethod
    def from_config(config: dict[str, Any]) -> UNet2DConditionModel: ...
    def __call__(self, sample: ArrayLike, timestep: ArrayLike, encoder_hidden_states: ArrayLike,
                 added_cond_kwargs: dict[str, ArrayLike] | None = None) -> Floats: ...
    @property
    def config(self) -> dict[str, Any]: ...
    def named_parameters(self) -> dict[str, Floats]: ...

class AutoencoderKL:
    """The image autoencoder, without the scaling factor."""
    @staticmethod
    def from_pretrained(path: PathText, dtype: str = "float32", device: str = "auto") -> AutoencoderKL: ...
    @staticmethod
    def from_config(config: dict[str, Any]) -> AutoencoderKL: ...
    def encode(self, image: ArrayLike) -> tuple[Floats, Floats]: ...
    def decode(self, latents: ArrayLike) -> Floats: ...
    @property
    def config(self) -> dict[str, Any]: ...
    def named_parameters(self) -> dict[str, Floats]: ...

class CLIPTextModel:
    """int64 [B, 77] -> (last [B, 77, D], pooled [B, D or P], all hidden states)."""
    @staticmethod
    def from_pretrained(path: PathText, dtype: str = "float32", device: str = "auto") -> CLIPTextModel: ...
    @staticmethod
    def from_config(config: dict[str, Any]) -> CLIPTextModel: ...
    def __call__(self, ids: ArrayLike) -> tuple[Floats, Floats, list[Floats]]: ...
    @property
    def config(self) -> dict[str, Any]: ...
    def named_parameters(self) -> dict[str, Floats]: ...

def empty_cache() -> None: ...

# Schedulers: config keys, defaults and numbers are diffusers'

class Scheduler:
    @property
    def config(self) -> dict[str, Any]: ...
    def set_timesteps(self, num_inference_steps: int | None = None, timesteps: Sequence[int] | None = None) -> None: ...
    def set_begin_index(self, begin_index: int = 0) -> None: ...
    def ays_timesteps(self, num_inference_steps: int = 10, xl: bool = False) -> list[int]: ...
    @property
    def timesteps(self) -> NDArray[Any]: ...
    @property
    def sigmas(self) -> Floats | None: ...
    @property
    def init_noise_sigma(self) -> float: ...
    def scale_model_input(self, sample: ArrayLike, timestep: float) -> Floats: ...
    def step(self, model_output: ArrayLike, timestep: float, sample: ArrayLike,
             generator: Generator | Sequence[Generator] | None = None, noise: ArrayLike | None = None,
             eta: float = 0.0) -> Floats: ...
    def add_noise(self, original_samples: ArrayLike, noise: ArrayLike, timesteps: ArrayLike) -> Floats: ...

class DDPMScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class DDIMScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class PNDMScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class EulerDiscreteScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class EulerAncestralDiscreteScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class HeunDiscreteScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class LMSDiscreteScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class DPMSolverMultistepScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class DPMSolverSDEScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class UniPCMultistepScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class DEISMultistepScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

class LCMScheduler(Scheduler):
    def __init__(self, **config: Any) -> None: ...
    @staticmethod
    def from_config(config: dict[str, Any] | None = None, **keywords: Any) -> Scheduler: ...

# Images: uint8 [H, W, 3]

def load_image(path: PathText) -> Pixels: ...
def verify_image(path: PathText) -> tuple[int, int, str]: ...
def resize_image(image: ArrayLike, width: int, height: int,
                 resample: Literal["bilinear", "bicubic", "lanczos"] = "lanczos",
                 box: tuple[float, float, float, float] | None = None) -> Pixels: ...
def crop_image(image: ArrayLike, resolution: int,
               resample: Literal["bilinear", "bicubic", "lanczos"] = "lanczos") -> Pixels: ...
def choose_bucket(width: int, height: int, resolution: int, min_bucket_reso: int, max_bucket_reso: int,
                  bucket_reso_steps: int, bucket_no_upscale: bool = True) -> tuple[int, int]: ...
def save_png(path: PathText, image: ArrayLike, texts: dict[str, str] = {}) -> None: ...
def image_grid(images: Sequence[ArrayLike], columns: int = 0, gap: int = 4, captions: Sequence[str] = []) -> Pixels: ...

# Generation

class PipelineOutput:
    """What a pipeline returns: PIL images, float32 [B, H, W, 3] in [0, 1], or latents [B, C, h, w]. Shows itself in a notebook.

    prompts and seeds have an entry an image; a seed is None where generators or latents gave the noise.
    """
    def __init__(self, images: Any, prompts: Sequence[str] = (), seeds: Sequence[int | None] = ()) -> None: ...
    @property
    def images(self) -> Any: ...
    @property
    def prompts(self) -> list[str]: ...
    @property
    def seeds(self) -> list[int | None]: ...
    def __getitem__(self, index: Literal[0]) -> Any: ...

class SampleEvent:
    """What on_step of a pipeline gets; preview is uint8 [B, h, w, 3], a pixel a latent cell, far cheaper than decoding."""
    @property
    def step(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def timestep(self) -> float: ...
    @property
    def latents(self) -> Floats: ...
    @property
    def preview(self) -> Pixels: ...

class StableDiffusionPipeline:
    """Text to image; from_pretrained gives the class that model_index.json names."""
    @staticmethod
    def from_pretrained(name: PathText, dtype: object = "float32", device: str = "auto") -> StableDiffusionPipeline: ...
    @staticmethod
    def options() -> list[dict[str, Any]]: ...
    def __call__(self, prompt: str | Sequence[str], *, negative_prompt: str | Sequence[str] | None = None,
                 prompt_syntax: PromptSyntax = 'plain', clip_skip: int = 0,
                 num_images_per_prompt: int = 1, num_inference_steps: int = 30, guidance_scale: float | None = None,
                 guidance_rescale: float = 0.0, eta: float = 0.0, seed: int | Sequence[int] = 0,
                 sampler: Sampler | None = None, width: int | None = None, height: int | None = None,
                 strength: float = 0.8, hires_scale: float = 1.0, hires_steps: int | None = None,
                 hires_strength: float = 0.7, generator: Generator | Sequence[Generator] | None = None,
                 latents: ArrayLike | None = None, image: object | None = None,
                 timesteps: Sequence[int] | None = None, original_size: tuple[int, int] | None = None,
                 on_step: Callable[[SampleEvent], object] | None = None,
                 callback_on_step_end: Callable[[StableDiffusionPipeline, int, float, dict[str, Any]], dict[str, Any] | None] | None = None,
                 callback_on_step_end_tensor_inputs: Sequence[str] | None = None,
                 crops_coords_top_left: tuple[int, int] = (0, 0),
                 output_type: Literal['pil', 'np', 'latent'] = 'pil') -> PipelineOutput: ...
    def encode_prompt(self, prompt: str | Sequence[str], *, negative_prompt: str | Sequence[str] | None = None,
                      prompt_syntax: PromptSyntax = 'plain',
                      clip_skip: int = 0) -> tuple[Floats, ...]: ...
    def load_vae(self, path: PathText) -> None: ...
    def load_textual_inversion(self, path: PathText, token: str = "") -> None: ...
    def unload_textual_inversion(self) -> None: ...
    def enable_vae_tiling(self) -> None: ...
    def disable_vae_tiling(self) -> None: ...
    def enable_vae_slicing(self) -> None: ...
    def disable_vae_slicing(self) -> None: ...
    def enable_attention_slicing(self, slice_size: str | int | None = "auto") -> None: ...
    def disable_attention_slicing(self) -> None: ...
    def enable_xformers_memory_efficient_attention(self, attention_op: object = None) -> None: ...
    def disable_xformers_memory_efficient_attention(self) -> None: ...
    def enable_model_cpu_offload(self, gpu_id: int | None = None, device: object = "cuda") -> None: ...
    def enable_sequential_cpu_offload(self, gpu_id: int | None = None, device: object = "cuda") -> None: ...
    def enable_group_offload(self, *arguments: object, **keywords: object) -> None: ...
    def enable_freeu(self, s1: float, s2: float, b1: float, b2: float) -> None: ...
    def disable_freeu(self) -> None: ...
    def enable_lora(self) -> None: ...
    def disable_lora(self) -> None: ...
    def enable_lora_hotswap(self, **keywords: object) -> None: ...
    def save_pretrained(self, folder: PathText, dtype: object = None) -> None: ...
    def to(self, device: str | None = None, dtype: object = None) -> Self: ...
    def load_lora_weights(self, path: PathText, scale: float = 1.0) -> None: ...
    def unload_lora_weights(self) -> None: ...
    def fuse_lora(self) -> None: ...
    def unfuse_lora(self) -> None: ...
    scheduler: Scheduler
    @property
    def tokenizer(self) -> CLIPTokenizer: ...
    @property
    def text_encoder(self) -> CLIPTextModel: ...
    @property
    def unet(self) -> UNet2DConditionModel: ...
    @property
    def vae(self) -> AutoencoderKL: ...
    @property
    def vae_scale_factor(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...

class StableDiffusionXLPipeline(StableDiffusionPipeline):
    """SDXL: two text encoders."""
    @property
    def tokenizer_2(self) -> CLIPTokenizer: ...
    @property
    def text_encoder_2(self) -> CLIPTextModel: ...

# Commands: each runs the program, and returns its report

class Report:
    """What a command of the program reports; shows itself in a notebook."""
    def to_dict(self) -> dict[str, Any]: ...

class PhotoFacts:
    """A photo that can be read: px as seen after the EXIF turn; faces are (left, top, width, height) in px.

    sharpness is None where it was not examined; faces_searched is False where no detector looked at it.
    """
    file: Path
    width: int
    height: int
    orientation: int
    caption: str
    repeats: int
    sharpness: float | None
    faces_searched: bool
    faces: tuple[tuple[float, float, float, float], ...]

class PhotoReport(Report):
    """What was found in the photos: problems are of files that are refused, warnings stop nothing, left_out are no photos."""
    photos: tuple[PhotoFacts, ...]
    problems: Problems
    warnings: Problems
    left_out: Problems
    notes: tuple[str, ...]
    contact_sheet: Path | None
    @property
    def ok(self) -> bool: ...
    def warnings_of(self, photo: PhotoFacts) -> list[Problem]: ...
    def summary(self) -> str: ...

class MachineCheck:
    """One thing that was examined; advice is "" where nothing is to be done."""
    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    advice: str

class MachineReport(Report):
    """What doctor(machine=True) found; to_dict() has GPUs, driver and libraries as well."""
    checks: tuple[MachineCheck, ...]
    device: str | None
    fault: str | None
    warning: str | None
    @property
    def ok(self) -> bool: ...

class PrepareReport(Report):
    """What prepare left for train: cache has the encoded images; notes say what an epoch consists of."""
    contact_sheet: Path
    cache: Path
    class_images: int
    notes: tuple[str, ...]
    photos: PhotoReport

class Inspection(dict[str, Any]):
    """What inspect found: the dict of `sdtune inspect --json`, whose keys depend on its kind."""
    def __init__(self, found: Mapping[str, Any]) -> None: ...
    @property
    def kind(self) -> str: ...

class RenderReport(Report):
    """What render wrote. images is less than planned where it was stopped; size in px."""
    output: Path
    labels: Path
    images: int
    planned: int
    size: int
    contact_sheet: Path | None
    seconds: float

class Estimate:
    """A figure with its confidence interval, and of how many images it is."""
    value: float
    low: float
    high: float
    count: int

class EvaluationReport(Report):
    """What evaluate measured: rows["tuned"]["subject_fidelity"] and so on; docs/likeness.md says what the figures are."""
    model: Path
    base: Path
    images: Path | None
    output: Path
    subject: int
    seed: int
    rows: Mapping[str, Mapping[str, Estimate]]
    accepted_of_renders: float
    diversity_kept: float
    class_fidelity_kept: float
    @property
    def sheet(self) -> Path: ...

class ConvertReport(Report):
    """What convert wrote. output is None of a dry run; what another kind of conversion has is None."""
    kind: Literal["model", "lora", "pickle"]
    output: Path | None
    model: Path | None
    lora: Path | None
    pickle: Path | None
    family: str | None
    prediction_type: str | None
    prediction_origin: str | None
    dtype: str | None
    naming: str | None
    tensors: int | None
    layers: int | None
    ignored: tuple[str, ...]

class MergedLora:
    """A LoRA and the weight that it was merged with."""
    file: Path
    weight: float

class MergeReport(Report):
    """What merge wrote; branches: layers that were changed."""
    output: Path
    model: str
    loras: tuple[MergedLora, ...]
    branches: int
    dtype: str

class HubFile:
    """A file of a model on a hub. path: where it is in the cache, None of an upload; downloaded: False where it was there."""
    file: str
    bytes: int
    path: Path | None
    downloaded: bool

class FetchReport(Report):
    """What fetch brought: path is the model's folder, or the file that was asked for; licence is None where the hub names none."""
    id: str
    revision: str
    commit: str
    licence: str | None
    paths: tuple[Path, ...]
    files: tuple[HubFile, ...]
    @property
    def path(self) -> Path: ...

class PushReport(Report):
    """What push uploaded, or would: uploaded is False of a dry run, which has no commit and no url. card: the model card, Markdown."""
    id: str
    revision: str
    uploaded: bool
    commit: str | None
    url: str | None
    files: tuple[HubFile, ...]
    card: str

def doctor(config: TrainConfig | None = None, *, machine: bool = False, contact_sheet: PathText = '',
           progress: bool = True) -> PhotoReport | MachineReport: ...
def prepare(config: TrainConfig, *, progress: bool = True) -> PrepareReport: ...
def inspect(path: PathText, *, progress: bool = True) -> Inspection: ...
def render(*, set: PortraitSet = 'training', seed: int = 0, count: int = 16, subject: int | None = None,
           views: int = 1, first_view: int = 0, output: PathText = 'renders', size: int = 128, detail: Detail = '128',
           captions: bool = True, contact_sheet: PathText = '', threads: int | None = None, overwrite: bool = False,
           config: PathText = '', progress: bool = True) -> RenderReport: ...
def evaluate(*, images: PathText = '', subject: int | None = None, instance_prompt: str | None = None,
             class_prompt: str = 'a photo of a person', model: PathText = '', base: PathText = '',
             classifier: PathText = '', device: str = 'auto', dtype: ComputeDtype = 'default', num_images: int = 4,
             num_class_images: int = 128, quick: bool = False, steps: int = 30, guidance_scale: float = 7.5,
             seed: int = 0, output: PathText = 'eval', config: PathText = '',
             progress: bool = True) -> EvaluationReport: ...
def convert(*, model: PathText = '', pickle: PathText = '', pickle_key: str = '', output: PathText = '',
            lora: PathText = '', lora_naming: LoraNaming = 'kohya', dtype: Dtype = 'auto', overwrite: bool = False,
            dry_run: bool = False, config: PathText = '', tokenizer: PathText = '',
            prediction_type: PredictionType | None = None, extract_ema: bool = False,
            progress: bool = True) -> ConvertReport: ...
def merge(*, model: PathText = '', lora: Sequence[PathText] = [], output: PathText = '', dtype: Dtype = 'auto',
          overwrite: bool = False, config: PathText = '', tokenizer: PathText = '',
          prediction_type: PredictionType | None = None, extract_ema: bool = False,
          progress: bool = True) -> MergeReport: ...
def fetch(id: str, *, file: Sequence[PathText] = [], revision: str = 'main', variant: str = '',
          without: Sequence[str] = [], cache_dir: PathText = '', retries: int = 5,
          progress: bool = True) -> FetchReport: ...
def push(run: PathText, id: str, *, private: bool = True, revision: str = 'main',
         commit_message: str = 'Upload with sdtune', sheet: PathText = '', with_sheet: bool = True,
         dry_run: bool = False, retries: int = 5, progress: bool = True) -> PushReport: ...

# Training

class RunLogs:
    """metrics.jsonl, TensorBoard events and validation images of a run folder, for loops of one's own."""
    def __init__(self, output: PathText, first_step: int = 0, attempt: int = 1) -> None: ...
    def step(self, step: int, loss: float, loss_instance: float, **others: float | None) -> None: ...
    def validation(self, step: int, pictures: Sequence[ArrayLike], prompts: Sequence[str],
                   seeds: Sequence[int]) -> None: ...
    @property
    def warnings(self) -> list[str]: ...

class PreparationEvent:
    """What a run is about to do, before the base is loaded: the preset and the images to be generated."""
    @property
    def preset(self) -> str: ...
    @property
    def generation(self) -> list[str]: ...

class GenerationEvent:
    """Class images that are about to be generated, of all ranks, and the seconds that they will take."""
    @property
    def images(self) -> int: ...
    @property
    def seconds(self) -> float: ...

class StepEvent:
    """One optimizer step that is over; loss_prior, text_encoder_lr and loss_scale are None where there is none."""
    @property
    def step(self) -> int: ...
    @property
    def total_steps(self) -> int: ...
    @property
    def epoch(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def loss_instance(self) -> float: ...
    @property
    def loss_prior(self) -> float | None: ...
    @property
    def lr(self) -> float: ...
    @property
    def text_encoder_lr(self) -> float | None: ...
    @property
    def grad_norm(self) -> float: ...
    @property
    def loss_scale(self) -> float | None: ...
    @property
    def skipped(self) -> bool: ...
    @property
    def images_per_s(self) -> float: ...
    @property
    def time(self) -> float: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def max_memory_bytes(self) -> int: ...
    @property
    def communication_share(self) -> float | None: ...
    @property
    def straggler_ratio(self) -> float | None: ...
    @property
    def slowest_rank(self) -> int | None: ...
    @property
    def overlapped_share(self) -> float | None: ...

class CheckpointEvent:
    """A checkpoint that is on disk."""
    @property
    def step(self) -> int: ...
    @property
    def path(self) -> Path: ...
    @property
    def seconds(self) -> float: ...
    @property
    def waited(self) -> float: ...

class ValidationEvent:
    """Validation of the weights of a step; 0 is the base."""
    @property
    def step(self) -> int: ...
    @property
    def images(self) -> list[Pixels]: ...
    @property
    def pictures(self) -> list[Pixels]: ...
    @property
    def prompts(self) -> list[str]: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def loss(self) -> float | None: ...

class IdentityEvent:
    """Result of an identity evaluation."""
    @property
    def step(self) -> int: ...
    @property
    def identity(self) -> float: ...
    @property
    def accepted(self) -> float: ...
    @property
    def prompt_fidelity(self) -> float: ...
    @property
    def leak(self) -> float: ...
    @property
    def score(self) -> float: ...
    @property
    def is_best(self) -> bool: ...

class ProfileEvent:
    """What the profile of some optimizer steps found; str() is a table."""
    @property
    def first_step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def phases(self) -> dict[str, float]: ...
    @property
    def operators(self) -> list[dict[str, Any]]: ...
    @property
    def trace(self) -> Path | None: ...

class RunSummary:
    """What a run will do."""
    @property
    def output(self) -> Path: ...
    @property
    def base(self) -> str: ...
    @property
    def pipeline_class(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def components(self) -> list[str]: ...
    @property
    def trained_parameters(self) -> int: ...
    @property
    def total_parameters(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def images(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    @property
    def class_images(self) -> int: ...
    @property
    def resolution(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def first_step(self) -> int: ...
    @property
    def total_steps(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def notes(self) -> list[str]: ...

class Metrics(dict[str, Any]):
    """Columns over the optimizer steps, by the keys of metrics.jsonl; pandas.DataFrame takes them as they are.

    float64 with NaN where a step has no such number, int64 for attempt, step and max_memory_bytes, bool for skipped.
    """
    def __init__(self, rows: Sequence[dict[str, Any]] = ()) -> None: ...
    def rows(self) -> list[dict[str, Any]]: ...

class TrainResult:
    """What a run leaves; shows its report in a notebook. model_path is None where the run was stopped."""
    output: Path
    model_path: Path | None
    checkpoint: Path | None
    step: int
    model_step: int
    metrics: Metrics
    base: str
    def pipeline(self, dtype: object = "float32", device: str = "auto") -> StableDiffusionPipeline: ...

class Problems(list[Problem]):
    """The faults that check found; a table in a notebook."""

class Plan(dict[str, Any]):
    """What plan returns: the keys of `sdtune plan --json`; tables in a notebook."""
    def __init__(self, plan: Mapping[str, Any]) -> None: ...
    def summary(self) -> str: ...
    def memory_rows(self) -> list[tuple[str, str, str]]: ...
    def gpu_rows(self) -> list[tuple[str, str, str, str, str]]: ...

def train(config: TrainConfig, on_step: Callable[[StepEvent], object] | None = None, *,
          on_start: Callable[[RunSummary], object] | None = None,
          on_preparation: Callable[[PreparationEvent], object] | None = None,
          on_phase: Callable[[str, int, int], object] | None = None,
          on_generation: Callable[[GenerationEvent], object] | None = None,
          on_checkpoint: Callable[[CheckpointEvent], object] | None = None,
          on_validation: Callable[[ValidationEvent], object] | None = None,
          on_identity: Callable[[IdentityEvent], object] | None = None,
          on_profile: Callable[[ProfileEvent], object] | None = None,
          on_warning: Callable[[Problem], object] | None = None,
          on_end: Callable[[int, Path], object] | None = None, progress: bool = True) -> TrainResult: ...
class RunProgress:
    """Where a run stands: phase with `done` of `total` pieces, steps, `eta` seconds left; None is not known yet."""
    phase: str
    done: int
    total: int
    step: int
    total_steps: int
    loss: float | None
    images_per_s: float | None
    elapsed: float
    eta: float | None
    identity: float | None
    checkpoint: Path | None
    warnings: tuple[str, ...]

class Run:
    """A run that start began, on a thread of its own. Leaving Python stops it with its state saved."""
    @property
    def output(self) -> Path: ...
    @property
    def progress(self) -> RunProgress: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def latest_images(self) -> PipelineOutput | None: ...
    def stop(self) -> None: ...
    def wait(self, timeout: float | None = None) -> TrainResult: ...

def start(config: TrainConfig, *, resume_from_checkpoint: PathText | None = None,
          on_step: Callable[[StepEvent], object] | None = None,
          on_start: Callable[[RunSummary], object] | None = None,
          on_preparation: Callable[[PreparationEvent], object] | None = None,
          on_phase: Callable[[str, int, int], object] | None = None,
          on_generation: Callable[[GenerationEvent], object] | None = None,
          on_checkpoint: Callable[[CheckpointEvent], object] | None = None,
          on_validation: Callable[[ValidationEvent], object] | None = None,
          on_identity: Callable[[IdentityEvent], object] | None = None,
          on_profile: Callable[[ProfileEvent], object] | None = None,
          on_warning: Callable[[Problem], object] | None = None,
          on_end: Callable[[int, Path], object] | None = None, progress: bool = True) -> Run: ...
def check(config: TrainConfig) -> Problems: ...
def plan(config: TrainConfig, *, photos: int | None = None, gpus: PathText | None = None,
         savings: bool = True, ranks: int = 1) -> Plan: ...

class TrainConfig:
    """The options of a training run, listed by scripts/make_config_stub.py; options() says what each means."""
    def __init__(self, *,
        base: PathText = ...,
        output: PathText = ...,
        overwrite: bool = ...,
        method: Method = ...,
        device: str = ...,
        seed: int = ...,
        max_train_steps: int | None = ...,
        num_train_epochs: int | None = ...,
        train_batch_size: int = ...,
        gradient_accumulation_steps: int = ...,
        micro_batch: str = ...,
        gradient_checkpointing: bool = ...,
        cuda_graphs: bool = ...,
        train_text_encoder: bool = ...,
        trainable_layers: Sequence[str] = ...,
        rank: int = ...,
        lora_alpha: float | None = ...,
        lora_dropout: float = ...,
        lora_layers: Sequence[str] = ...,
        images: PathText = ...,
        instance_prompt: str = ...,
        concepts: Sequence[str | Concept] = ...,
        repeats: int = ...,
        use_captions: bool = ...,
        trigger_word: str = ...,
        caption_dropout_rate: float = ...,
        auto_caption_rate: float = ...,
        on_bad_image: OnBadImage = ...,
        resolution: int | None = ...,
        center_crop: bool = ...,
        random_flip: bool = ...,
        image_interpolation_mode: ImageInterpolationMode = ...,
        crop_style: CropStyle | None = ...,
        face_model: PathText = ...,
        vae_tiling: bool = ...,
        cache_latents: bool = ...,
        cache_dir: PathText = ...,
        enable_bucket: bool = ...,
        min_bucket_reso: int | None = ...,
        max_bucket_reso: int | None = ...,
        bucket_reso_steps: int | None = ...,
        bucket_no_upscale: bool = ...,
        with_prior_preservation: bool = ...,
        class_prompt: str = ...,
        class_data_dir: PathText = ...,
        num_class_images: int = ...,
        sample_batch_size: int = ...,
        class_num_inference_steps: int = ...,
        class_guidance_scale: float | None = ...,
        prior_loss_weight: float = ...,
        snr_gamma: float | None = ...,
        dco_beta: float | None = ...,
        noise_offset: float = ...,
        input_perturbation: float = ...,
        rescale_betas_zero_snr: bool = ...,
        min_timestep: int = ...,
        max_timestep: int | None = ...,
        loss_type: LossType = ...,
        huber_c: float = ...,
        huber_schedule: HuberSchedule = ...,
        masked_loss: bool = ...,
        unmasked_weight: float = ...,
        normalize_masked_area_loss: bool = ...,
        optimizer: Optimizer = ...,
        use_8bit_adam: bool = ...,
        learning_rate: float = ...,
        text_encoder_lr: float | None = ...,
        train_text_encoder_frac: float = ...,
        scale_lr: bool = ...,
        lr_scheduler: LrScheduler = ...,
        lr_warmup_steps: int = ...,
        lr_num_cycles: int = ...,
        lr_power: float = ...,
        adam_beta1: float = ...,
        adam_beta2: float = ...,
        adam_weight_decay: float = ...,
        adam_epsilon: float = ...,
        max_grad_norm: float = ...,
        lion_beta1: float = ...,
        lion_beta2: float = ...,
        prodigy_beta3: float | None = ...,
        prodigy_use_bias_correction: bool = ...,
        prodigy_safeguard_warmup: bool = ...,
        use_ema: bool = ...,
        ema_decay: float = ...,
        offload_ema: bool = ...,
        mixed_precision: MixedPrecision = ...,
        allow_tf32: bool = ...,
        max_skipped_steps: int = ...,
        half_precision_gradient_sums: bool = ...,
        checkpointing_steps: int = ...,
        checkpoints_total_limit: int | None = ...,
        resume_from_checkpoint: PathText = ...,
        validation_prompt: str = ...,
        validation_data_dir: PathText = ...,
        validation_negative_prompt: str = ...,
        num_validation_images: int = ...,
        validation_steps: int = ...,
        validation_inference_steps: int = ...,
        validation_guidance_scale: float | None = ...,
        report_to: ReportTo | Sequence[ReportTo] = ...,
        report_model: bool = ...,
        tracker_project_name: str = ...,
        tracker_run_name: str = ...,
        tracker_timeout: float = ...,
        price_per_hour: float | None = ...,
        report_images: int = ...,
        profile: int = ...,
        identity_steps: int | None = ...,
        num_identity_images: int = ...,
        identity_inference_steps: int = ...,
        identity_classifier: PathText = ...,
        identity_model: PathText = ...,
        keep_best: bool = ...,
        early_stop_patience: int | None = ...,
        peer_timeout: float = ...,
        start_timeout: float = ...,
        shard: Shard = ...,
        comm_hook: CommHook = ...,
        max_hours: float | None = ...,
        max_cost: float | None = ...,
        on_finish: str = ...,
        preemption: Preemption = ...,
        preemption_address: str = ...,
        notify: str = ...,
    ) -> None: ...
    @staticmethod
    def from_yaml(path: PathText, **options: Any) -> TrainConfig: ...
    @staticmethod
    def options() -> list[dict[str, Any]]: ...
    def origins(self) -> dict[str, str]: ...
    def preset_values(self) -> dict[str, str]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_yaml(self) -> str: ...
    @property
    def base(self) -> str: ...
    @base.setter
    def base(self, value: PathText) -> None: ...
    @property
    def output(self) -> str: ...
    @output.setter
    def output(self, value: PathText) -> None: ...
    overwrite: bool
    method: Method
    device: str
    seed: int
    max_train_steps: int | None
    num_train_epochs: int | None
    train_batch_size: int
    gradient_accumulation_steps: int
    micro_batch: str
    gradient_checkpointing: bool
    cuda_graphs: bool
    train_text_encoder: bool
    @property
    def trainable_layers(self) -> list[str]: ...
    @trainable_layers.setter
    def trainable_layers(self, value: Sequence[str]) -> None: ...
    rank: int
    lora_alpha: float | None
    lora_dropout: float
    @property
    def lora_layers(self) -> list[str]: ...
    @lora_layers.setter
    def lora_layers(self, value: Sequence[str]) -> None: ...
    @property
    def images(self) -> str: ...
    @images.setter
    def images(self, value: PathText) -> None: ...
    instance_prompt: str
    @property
    def concepts(self) -> list[str]: ...
    @concepts.setter
    def concepts(self, value: Sequence[str | Concept]) -> None: ...
    repeats: int
    use_captions: bool
    trigger_word: str
    caption_dropout_rate: float
    auto_caption_rate: float
    on_bad_image: OnBadImage
    resolution: int | None
    center_crop: bool
    random_flip: bool
    image_interpolation_mode: ImageInterpolationMode
    crop_style: CropStyle | None
    @property
    def face_model(self) -> str: ...
    @face_model.setter
    def face_model(self, value: PathText) -> None: ...
    vae_tiling: bool
    cache_latents: bool
    @property
    def cache_dir(self) -> str: ...
    @cache_dir.setter
    def cache_dir(self, value: PathText) -> None: ...
    enable_bucket: bool
    min_bucket_reso: int | None
    max_bucket_reso: int | None
    bucket_reso_steps: int | None
    bucket_no_upscale: bool
    with_prior_preservation: bool
    class_prompt: str
    @property
    def class_data_dir(self) -> str: ...
    @class_data_dir.setter
    def class_data_dir(self, value: PathText) -> None: ...
    num_class_images: int
    sample_batch_size: int
    class_num_inference_steps: int
    class_guidance_scale: float | None
    prior_loss_weight: float
    snr_gamma: float | None
    dco_beta: float | None
    noise_offset: float
    input_perturbation: float
    rescale_betas_zero_snr: bool
    min_timestep: int
    max_timestep: int | None
    loss_type: LossType
    huber_c: float
    huber_schedule: HuberSchedule
    masked_loss: bool
    unmasked_weight: float
    normalize_masked_area_loss: bool
    optimizer: Optimizer
    use_8bit_adam: bool
    learning_rate: float
    text_encoder_lr: float | None
    train_text_encoder_frac: float
    scale_lr: bool
    lr_scheduler: LrScheduler
    lr_warmup_steps: int
    lr_num_cycles: int
    lr_power: float
    adam_beta1: float
    adam_beta2: float
    adam_weight_decay: float
    adam_epsilon: float
    max_grad_norm: float
    lion_beta1: float
    lion_beta2: float
    prodigy_beta3: float | None
    prodigy_use_bias_correction: bool
    prodigy_safeguard_warmup: bool
    use_ema: bool
    ema_decay: float
    offload_ema: bool
    mixed_precision: MixedPrecision
    allow_tf32: bool
    max_skipped_steps: int
    half_precision_gradient_sums: bool
    checkpointing_steps: int
    checkpoints_total_limit: int | None
    @property
    def resume_from_checkpoint(self) -> str: ...
    @resume_from_checkpoint.setter
    def resume_from_checkpoint(self, value: PathText) -> None: ...
    validation_prompt: str
    @property
    def validation_data_dir(self) -> str: ...
    @validation_data_dir.setter
    def validation_data_dir(self, value: PathText) -> None: ...
    validation_negative_prompt: str
    num_validation_images: int
    validation_steps: int
    validation_inference_steps: int
    validation_guidance_scale: float | None
    @property
    def report_to(self) -> list[ReportTo]: ...
    @report_to.setter
    def report_to(self, value: ReportTo | Sequence[ReportTo]) -> None: ...
    report_model: bool
    tracker_project_name: str
    tracker_run_name: str
    tracker_timeout: float
    price_per_hour: float | None
    report_images: int
    profile: int
    identity_steps: int | None
    num_identity_images: int
    identity_inference_steps: int
    @property
    def identity_classifier(self) -> str: ...
    @identity_classifier.setter
    def identity_classifier(self, value: PathText) -> None: ...
    @property
    def identity_model(self) -> str: ...
    @identity_model.setter
    def identity_model(self, value: PathText) -> None: ...
    keep_best: bool
    early_stop_patience: int | None
    peer_timeout: float
    start_timeout: float
    shard: Shard
    comm_hook: CommHook
    max_hours: float | None
    max_cost: float | None
    on_finish: str
    preemption: Preemption
    preemption_address: str
    notify: str
