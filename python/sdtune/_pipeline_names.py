"""Names of diffusers' pipelines that switch something on or off: each does what it says, or raises with the reason.

`add_names` puts the functions into the class of the core.
"""

from __future__ import annotations

from typing import Any

from . import _native
from ._errors import config_error

Pipeline = _native.StableDiffusionPipeline


def enable_attention_slicing(self: Pipeline, slice_size: str | int | None = "auto") -> None:
    """Nothing to do: attention never holds its whole matrix (LibTorch's scaled_dot_product_attention), sliced or not."""


def disable_attention_slicing(self: Pipeline) -> None:
    """Nothing to do, as enable_attention_slicing."""


def enable_xformers_memory_efficient_attention(self: Pipeline, attention_op: object = None) -> None:
    """Nothing to do: attention is memory-efficient without xFormers. Raises ConfigError for an attention_op."""
    if attention_op is not None:
        raise config_error("attention_op", "xFormers' operators are not used (allowed: None)")


def disable_xformers_memory_efficient_attention(self: Pipeline) -> None:
    """Nothing to do: there is no other kind of attention to go back to."""


def refuse_offload(self: Pipeline, name: str) -> None:
    """On a CPU the parts are where offloading would put them."""
    if self.device != "cpu":
        raise config_error(name, f"the parts of a pipeline stay on their device, here {self.device} (allowed: on cpu)",
                           "dtype=\"float16\" halves the memory of the weights; enable_vae_tiling() bounds that of large images")


def enable_model_cpu_offload(self: Pipeline, gpu_id: int | None = None, device: object = "cuda") -> None:
    """On a CPU nothing to do; on a GPU raises ConfigError, since parts stay on their device."""
    refuse_offload(self, "enable_model_cpu_offload")


def enable_sequential_cpu_offload(self: Pipeline, gpu_id: int | None = None, device: object = "cuda") -> None:
    """On a CPU nothing to do; on a GPU raises ConfigError, since parts stay on their device."""
    refuse_offload(self, "enable_sequential_cpu_offload")


def enable_group_offload(self: Pipeline, *arguments: object, **keywords: object) -> None:
    """On a CPU nothing to do; on a GPU raises ConfigError, since parts stay on their device."""
    refuse_offload(self, "enable_group_offload")


def enable_freeu(self: Pipeline, s1: float, s2: float, b1: float, b2: float) -> None:
    """Raises ConfigError: FreeU is not there."""
    raise config_error("enable_freeu", "the UNet's skip connections cannot be scaled here", "generate in diffusers for FreeU")


def disable_freeu(self: Pipeline) -> None:
    """Nothing to do: FreeU is never on."""


def enable_lora(self: Pipeline) -> None:
    """Nothing to do: a LoRA that is loaded is on."""


def disable_lora(self: Pipeline) -> None:
    """Raises ConfigError: a LoRA is on while it is loaded."""
    raise config_error("disable_lora", "a LoRA is on while it is loaded", "unload_lora_weights() takes all of them off")


def enable_lora_hotswap(self: Pipeline, **keywords: object) -> None:
    """Nothing to do: nothing is compiled, so that any LoRA can be unloaded and another one loaded at any time."""


NAMES = (enable_attention_slicing, disable_attention_slicing, enable_xformers_memory_efficient_attention,
         disable_xformers_memory_efficient_attention, enable_model_cpu_offload, enable_sequential_cpu_offload, enable_group_offload,
         enable_freeu, disable_freeu, enable_lora, disable_lora, enable_lora_hotswap)


def add_names() -> None:
    """Gives the pipelines the names."""
    methods: list[Any] = list(NAMES)
    for method in methods:
        setattr(Pipeline, method.__name__, method)
