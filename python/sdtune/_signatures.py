"""Signatures of the calls whose keywords are declared in C++: help() and inspect.signature show names, types and defaults.

`_native` takes the keywords as they come and refuses an unknown one by naming the nearest; what it lists of them
(`options()`) becomes the signature here, so that there is no second declaration.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from . import (
    _background, _calls, _commands, _evaluation_report, _hub_reports, _native, _native_views, _photo_report, _pipeline_names, _plan_view,
    _progress, _reports, _results, _step_events, _stub_signatures, _train,
)
from ._annotations import taken
from ._command_options import COMMANDS

REPORTS = (_photo_report.PhotoReport, _photo_report.PhotoFacts, _photo_report.PrepareReport, _reports.MachineReport,
           _reports.MachineCheck, _reports.Inspection, _reports.RenderReport, _evaluation_report.EvaluationReport,
           _evaluation_report.Estimate, _reports.ConvertReport, _reports.MergeReport, _reports.MergedLora, _hub_reports.FetchReport,
           _hub_reports.PushReport, _hub_reports.HubFile, _reports.Report)
TEXT_OPTIONS = ("negative_prompt", "prompt_syntax", "clip_skip")


def keyword(option: dict[str, Any]) -> inspect.Parameter:
    """A keyword-only parameter from what an options() says of it."""
    return inspect.Parameter(option["name"], inspect.Parameter.KEYWORD_ONLY, default=option["default"], annotation=taken(option))


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
    call.__wrapped__ = function  # type: ignore[attr-defined]
    call.__doc__ = (function.__doc__ or "").partition("\n\n")[2]  # behind the signature that pybind11 writes
    call.__signature__ = inspect.Signature(list(parameters), return_annotation=result)  # type: ignore[attr-defined]
    return call


def add_python_side() -> None:
    """Puts what is written in Python in place of what _native registered, and gives classes how they show themselves."""
    names = {"check": _calls.check, "plan": _calls.plan, "PipelineOutput": _results.PipelineOutput, "SampleEvent": _step_events.SampleEvent,
             "TrainResult": _results.TrainResult, "Metrics": _results.Metrics, "Problems": _results.Problems,
             "Plan": _plan_view.Plan, "Run": _background.Run, "RunProgress": _progress.RunProgress}
    names |= {report.__name__: report for report in REPORTS}
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
    resume = inspect.Parameter("resume_from_checkpoint", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="PathText | None")
    others = [callback.replace(kind=inspect.Parameter.KEYWORD_ONLY) for callback in (on_step, *callbacks)]
    core.start = signed(_background.start, "start", [positional("config", "TrainConfig"), resume, *others, progress], "Run")
    add_commands(core)
    _stub_signatures.sign(core, signed)


def command_signature(function: Callable[..., Any], options: Iterable[dict[str, Any]], result: str) -> inspect.Signature:
    """Of a function that runs the program: what it takes by place, the declared options, progress."""
    own = inspect.signature(function).parameters.values()
    places = [item.replace(annotation=item.annotation.replace("_native.", "")) for item in own
              if item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    last = [item for item in own if item.kind is inspect.Parameter.KEYWORD_ONLY]
    return inspect.Signature([*places, *map(keyword, options), *last], return_annotation=result)


def add_commands(core: Any) -> None:
    """The functions that run the program, with the options that it declares."""
    for command, (function, result) in _commands.FUNCTIONS.items():
        name, options = function.__name__, COMMANDS[command]["options"]
        named: Any = signed(function, name, [], result)
        named.__signature__ = command_signature(function, options, result)
        named.__doc__ = "\n\n".join([
            inspect.getdoc(function) or "", f"The options of `sdtune {command}`:",
            "\n".join(f"  {option['name']}: {option['help']}" for option in options),
            "The program runs as a process of its own. What it says goes to sys.stderr, unless progress is False; interrupting it stops "
            "the program. Raises what the program refuses, as subtypes of Error."])
        setattr(core, name, named)
