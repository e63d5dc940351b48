"""Signatures of the calls whose keywords are declared in C++: help() and inspect.signature show names, types and defaults.

`_native` takes the keywords as they come and refuses an unknown one by naming the nearest; what it lists of them
(`options()`) becomes the signature here, so that there is no second declaration.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from . import _background, _calls, _native, _native_views, _pipeline_names, _plan_view, _progress, _results, _step_events, _train

TYPES = {"string": "str", "list of strings": "Sequence[str]"}
TEXT_OPTIONS = ("negative_prompt", "prompt_syntax", "clip_skip")


def keyword(option: dict[str, Any]) -> inspect.Parameter:
    """A keyword-only parameter from what an options() says of it."""
    annotation = TYPES.get(option["type"], option["type"]) + (" | None" if option["optional"] else "")
    return inspect.Parameter(option["name"], inspect.Parameter.KEYWORD_ONLY, default=option["default"],
                             annotation=annotation)


def positional(name: str, annotation: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """A parameter without a default, by place or by name."""
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)


def signed(function: Callable[..., Any], name: str, parameters: Iterable[inspect.Parameter],
           result: str) -> Callable[..., Any]:
    """A Python function that passes all it is given to `function`, under this signature."""
    def call(*given: Any, **keywords: Any) -> Any:
        return function(*given, **keywords)

    call.__name__ = name.rpartition(".")[2]
    call.__qualname__ = name
    call.__module__ = "sdtune"
    call.__doc__ = (function.__doc__ or "").partition("\n\n")[2]  # behind the signature that pybind11 writes
    call.__signature__ = inspect.Signature(list(parameters), return_annotation=result)  # type: ignore[attr-defined]
    return call


def add_python_side() -> None:
    """Puts what is written in Python in place of what _native registered, and gives classes how they show themselves."""
    names = {"check": _calls.check, "plan": _calls.plan, "PipelineOutput": _results.PipelineOutput, "SampleEvent": _step_events.SampleEvent,
             "TrainResult": _results.TrainResult, "Metrics": _results.Metrics, "Problems": _results.Problems,
             "Plan": _plan_view.Plan, "Run": _background.Run, "RunProgress": _progress.RunProgress}
    for name, thing in names.items():
        setattr(_native, name, thing)
    _native_views.add_views()
    _pipeline_names.add_names()


def add_signatures() -> None:
    """Gives the functions and classes of _native their signatures."""
    core: Any = _native  # whose methods are replaced below
    pipeline, config = core.StableDiffusionPipeline, core.TrainConfig
    prompt, *options = pipeline.options()
    self_and_prompt = [positional("self"), positional("prompt", prompt["type"])]
    pipeline.__call__ = signed(_calls.generate, "StableDiffusionPipeline.__call__",
                               self_and_prompt + [keyword(option) for option in options], "PipelineOutput")
    texts = [keyword(option) for option in options if option["name"] in TEXT_OPTIONS]
    pipeline.encode_prompt = signed(pipeline.encode_prompt, "StableDiffusionPipeline.encode_prompt",
                                    self_and_prompt + texts, "tuple[Floats, ...]")
    fields = [keyword(option) for option in config.options()]
    config.__signature__ = inspect.Signature(fields)
    config.from_yaml = staticmethod(signed(config.from_yaml, "TrainConfig.from_yaml",
                                           [positional("path", "PathText"), *fields], "TrainConfig"))
    on_step, *callbacks = [keyword(option) for option in core._train_callbacks()]
    on_step = on_step.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    progress = inspect.Parameter("progress", inspect.Parameter.KEYWORD_ONLY, default=True, annotation="bool")
    parameters = [positional("config", "TrainConfig"), on_step, *callbacks, progress]
    core.train = signed(_train.train, "train", parameters, "TrainResult")
    resume = inspect.Parameter("resume_from_checkpoint", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
    others = [callback.replace(kind=inspect.Parameter.KEYWORD_ONLY) for callback in (on_step, *callbacks)]
    core.start = signed(_background.start, "start", [positional("config", "TrainConfig"), resume, *others, progress], "Run")
