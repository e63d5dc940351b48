"""What on_step and callback_on_step_end of a pipeline get: the step, its latents, and a cheap image of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _native
from ._errors import config_error

Floats = np.ndarray[Any, np.dtype[np.float32]]
CELLS = 8  # latent cells along a side of a colour chart
CHARTS = 4


def color_charts(factor: int) -> Floats:
    """[CHARTS, 3, CELLS x factor, CELLS x factor] in [-1, 1]: smooth random colours, the same ones always."""
    corners = np.random.default_rng(0).uniform(-1, 1, (CHARTS, 3, 4, 4))
    at = np.linspace(0, 3, CELLS * factor)
    low = np.minimum(at.astype(int), 2)
    weight = at - low
    rows = corners[:, :, low] * (1 - weight)[:, None] + corners[:, :, low + 1] * weight[:, None]
    charts: Floats = (rows[..., low] * (1 - weight) + rows[..., low + 1] * weight).astype(np.float32)
    return charts


def latent_colors(pipe: _native.StableDiffusionPipeline) -> np.ndarray[Any, Any]:
    """[C + 1, 3]: the linear map, with a constant, from a cell of the pipeline's latents to the mean colour of its pixels in [0, 1].

    Least squares over charts that the VAE itself encodes, so that it suits any VAE: one encoding of 4 small images. Of a VAE whose
    numbers are not finite, as one whose float16 overflows, grey.
    """
    factor, config = pipe.vae_scale_factor, pipe.vae.config
    charts = color_charts(factor)
    core: Any = pipe  # whose stub does not have the next method
    mean = core._encode_images(charts)
    if not np.isfinite(mean).all():
        grey: np.ndarray[Any, Any] = np.zeros((mean.shape[1] + 1, 3))
        grey[-1] = 0.5
        return grey
    latents = (mean - (config.get("shift_factor") or 0.0)) * config.get("scaling_factor", 0.18215)
    cells = np.moveaxis(latents, 1, -1).reshape(-1, latents.shape[1])
    colors = charts.reshape(CHARTS, 3, CELLS, factor, CELLS, factor).mean(axis=(3, 5)) / 2 + 0.5
    known = np.concatenate([cells, np.ones((len(cells), 1))], axis=1)
    solution: np.ndarray[Any, Any] = np.linalg.lstsq(known, np.moveaxis(colors, 1, -1).reshape(-1, 3), rcond=None)[0]
    return solution


class SampleEvent:
    """What on_step of a pipeline gets."""

    def __init__(self, native: Any, colors: Callable[[], np.ndarray[Any, Any]]) -> None:
        self._native, self._colors = native, colors

    @property
    def step(self) -> int:
        """1..total"""
        return int(self._native.step)

    @property
    def total(self) -> int:
        """Calls of the UNet."""
        return int(self._native.total)

    @property
    def timestep(self) -> float:
        return float(self._native.timestep)

    @property
    def latents(self) -> Floats:
        """float32 [B, C, h, w]"""
        latents: Floats = self._native.latents
        return latents

    @property
    def preview(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """uint8 [B, h, w, 3], a pixel a latent cell: the colours that a linear map gives, far cheaper than decoding."""
        latents, colors = np.moveaxis(self.latents, 1, -1), self._colors()
        shown = np.nan_to_num(latents @ colors[:-1] + colors[-1])
        pixels: np.ndarray[Any, np.dtype[np.uint8]] = (np.clip(shown, 0, 1) * 255 + 0.5).astype(np.uint8)
        return pixels

    def __repr__(self) -> str:
        return f"SampleEvent(step {self.step} of {self.total}, timestep {self.timestep:g})"


def check_tensor_inputs(names: Sequence[str] | None) -> None:
    """callback_on_step_end_tensor_inputs: latents is what there is."""
    given = ["latents"] if names is None else names
    if isinstance(given, str) or any(name != "latents" for name in given):
        raise config_error("callback_on_step_end_tensor_inputs", f"got {given!r:.80} (allowed: a list of latents alone)",
                           "prompt embeddings are not changed between steps")


def step_callback(pipe: _native.StableDiffusionPipeline, on_step: Any, on_step_end: Any, tensor_inputs: Sequence[str] | None) -> Any:
    """The core's on_step, which calls both kinds; None without either."""
    for name, callback in (("on_step", on_step), ("callback_on_step_end", on_step_end)):
        if callback is not None and not callable(callback):
            raise config_error(name, f"got {callback!r:.80} (allowed: a function, or None)")
    check_tensor_inputs(tensor_inputs)
    if on_step is None and on_step_end is None:
        return None
    found: list[np.ndarray[Any, Any]] = []

    def colors() -> np.ndarray[Any, Any]:
        if not found:
            found.append(latent_colors(pipe))
        return found[0]

    def call(native: Any) -> None:
        if on_step_end is not None:
            inputs = {} if tensor_inputs is not None and not tensor_inputs else {"latents": native.latents}
            replace_latents(native, on_step_end(pipe, native.step - 1, native.timestep, inputs))
        if on_step is not None:
            on_step(SampleEvent(native, colors))

    return call


def replace_latents(native: Any, returned: Any) -> None:
    """What callback_on_step_end returned: None, or a dict that may hold other latents."""
    if returned is None:
        return
    if not isinstance(returned, dict) or returned.keys() - {"latents"}:
        raise config_error("callback_on_step_end", f"returned {returned!r:.80} (allowed: None, or a dict of latents)")
    if "latents" in returned:
        native._replace_latents(returned["latents"])
