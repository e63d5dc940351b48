"""The calls of the core with Python's results in place of the core's: lists, dicts and classes that show themselves."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import require_config
from ._plan_view import Plan
from ._results import Metrics, PipelineOutput, Problems, TrainResult
from ._step_events import step_callback

if TYPE_CHECKING:
    from ._native import PathText, TrainConfig

# As C++ registers them; the names of _native are replaced by those that `import sdtune` shows (_signatures.py).
core: Any = _native
native_train, native_check, native_plan = core.train, core.check, core.plan
native_generate = core.StableDiffusionPipeline.__call__


def metrics_of(folder: Path, own: list[dict[str, Any]]) -> Metrics:
    """All steps of the run as its metrics.jsonl has them; `own`, this attempt's, where that file could not be written or read."""
    try:
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        steps = {line["step"] for line in lines}
    except (OSError, ValueError, KeyError, TypeError):
        return Metrics(own)
    if not steps.issuperset(row["step"] for row in own):
        return Metrics(own)
    blank = dict.fromkeys(own[0]) if own else {}  # a column also for what no step has
    return Metrics([blank | line for line in lines])


def result_of(native: Any, config: _native.TrainConfig) -> TrainResult:
    """What train returns."""
    return TrainResult(output=native.output, model_path=native.model_path, checkpoint=native.checkpoint, step=native.step,
                       model_step=native.model_step, metrics=metrics_of(native.output, native.metrics), base=config.base)


def check(config: TrainConfig) -> Problems:
    require_config(config)
    return Problems(native_check(config))


def plan(config: TrainConfig, *, photos: int | None = None, gpus: PathText | None = None,
         savings: bool = True, ranks: int = 1) -> Plan:
    require_config(config)
    return Plan(native_plan(config, photos=photos, gpus=gpus, savings=savings, ranks=ranks))


def listed(given: Any) -> Any:
    """What an array, a generator or the like holds as a list, since it is read twice; anything else as it is."""
    if isinstance(given, str | bytes):
        return given
    try:
        return list(given)
    except TypeError:  # a number, or what the core refuses by name
        return given


def seed_of(given: Any) -> Any:
    """The same of a seed, of which an array without axes is a number."""
    try:
        return operator.index(given)
    except TypeError:
        return listed(given)


def prompts_of(prompt: str | list[str], images: Any) -> list[str]:
    """The text of each image of a call, which returned these."""
    prompts = [prompt] if isinstance(prompt, str) else prompt
    copies = 1 if images is None else len(images) // max(1, len(prompts))
    return [text for text in prompts for _ in range(copies)]


def seeds_of(keywords: dict[str, Any], count: int) -> list[int | None]:
    """The seed of each image of a call; None where generators or latents gave the noise."""
    if keywords.get("generator") is not None or keywords.get("latents") is not None:
        return [None] * count
    seed = keywords.get("seed")
    seeds = seed if isinstance(seed, list) else [0 if seed is None else seed]
    return [int(one) for one in (seeds * count if len(seeds) == 1 else seeds)]


def generate(pipe: _native.StableDiffusionPipeline, prompt: Any, **keywords: Any) -> PipelineOutput:
    """A call of a pipeline."""
    names = ("on_step", "callback_on_step_end", "callback_on_step_end_tensor_inputs")
    keywords["on_step"] = step_callback(pipe, *(keywords.pop(name, None) for name in names))
    prompt, keywords["seed"] = listed(prompt), seed_of(keywords.get("seed"))
    images = native_generate(pipe, prompt, **keywords).images
    prompts = prompts_of(prompt, images)
    return PipelineOutput(images, prompts, seeds_of(keywords, len(prompts)))


for function, native in ((check, native_check), (plan, native_plan), (generate, native_generate)):
    function.__doc__ = native.__doc__  # beginning with the signature that pybind11 writes
