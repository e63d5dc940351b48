"""Types for type checkers: the allowed values of options, and what an entry of `concepts` holds. Made by scripts/make_config_stub.py; do not edit."""

from __future__ import annotations

from os import PathLike
from typing import Literal, Required, TypedDict

CommHook = Literal["no", "bf16"]
ComputeDtype = Literal["default", "auto", "float32", "bfloat16", "float16"]
CropStyle = Literal["center", "face", "random"]
Detail = Literal["64", "128"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
HuberSchedule = Literal["constant", "exponential", "snr"]
ImageInterpolationMode = Literal["bilinear", "bicubic", "lanczos"]
LoraNaming = Literal["kohya", "diffusers"]
LossType = Literal["l2", "huber", "smooth_l1"]
LrScheduler = Literal["linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup"]
Method = Literal["full", "lora"]
MixedPrecision = Literal["default", "auto", "no", "fp16", "bf16"]
OnBadImage = Literal["stop", "skip"]
Optimizer = Literal["adamw", "adamw_8bit", "adafactor", "lion", "prodigy"]
PortraitSet = Literal["training", "validation", "reserved"]
PredictionType = Literal["epsilon", "v_prediction"]
Preemption = Literal["none", "ec2", "google", "azure"]
PromptSyntax = Literal["weighted", "plain"]
ReportTo = Literal["tensorboard", "wandb", "mlflow", "trackio", "all", "none"]
Sampler = Literal[
    "ddim", "ddim_trailing", "ddpm", "ddpm_trailing", "ddpm_ays", "pndm", "pndm_trailing", "euler", "euler_karras",
    "euler_exponential", "euler_trailing", "euler_ays", "euler_a", "euler_a_trailing", "heun", "heun_karras",
    "heun_exponential", "heun_trailing", "heun_ays", "lms", "lms_karras", "lms_exponential", "lms_trailing", "dpm++2m",
    "dpm++2m_karras", "dpm++2m_exponential", "dpm++2m_trailing", "dpm++2m_ays", "dpm++2m_sde", "dpm++2m_sde_karras",
    "dpm++2m_sde_exponential", "dpm++2m_sde_trailing", "dpm++2m_sde_ays", "dpm++sde", "dpm++sde_karras",
    "dpm++sde_exponential", "dpm++sde_trailing", "unipc", "unipc_karras", "unipc_exponential", "unipc_trailing", "deis",
    "deis_karras", "deis_exponential", "deis_trailing", "lcm",
]
Shard = Literal["none", "optimizer", "gradients"]


class Concept(TypedDict, total=False):
    """One subject of several; what it leaves out is as the options of that name say."""

    images: Required[str | PathLike[str]]  # Folder with the photos of this subject.
    instance_prompt: str  # Caption of its photos that have no caption of their own.
    class_prompt: str  # Prompt of the class that this subject belongs to.
    class_data_dir: str | PathLike[str]  # Folder of its class images.
    num_class_images: int  # Number of class images of this subject.
    repeats: int  # How often each of its photos occurs in an epoch.
