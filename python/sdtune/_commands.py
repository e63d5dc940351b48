"""The program's commands as functions: each runs the program that belongs to this module and returns its report.

Training, planning and generation are done in this process instead; see _train.py and _calls.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _native
from ._command_options import COMMANDS
from ._errors import config_error
from ._evaluation_report import EvaluationReport
from ._hub_reports import FetchReport, PushReport
from ._photo_report import PhotoReport, PrepareReport
from ._program import report_of
from ._reports import ConvertReport, Inspection, MachineReport, MergeReport, RenderReport

NOT_GIVEN_BY_USER = ("bundled base", "optimizer: prodigy")  # origins of values that loading an equal configuration sets again


def value_text(value: object) -> str:
    """A value as a flag takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    return repr(value) if type(value) is float else str(value)


def flags_of(given: dict[str, Any], options: Iterable[dict[str, Any]]) -> Iterator[str]:
    """--name=value of each keyword; an unknown one as well, which the program refuses by naming the nearest."""
    known = {option["name"]: option for option in options}
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        option = known.get(name, {"type": "", "optional": False, "default": None})
        if value is None:
            if name not in known:
                yield f"{flag}=none"
            elif option["default"] is not None:
                yield f"{flag}={'none' if option['optional'] else ''}"
        elif isinstance(value, (list, tuple)) and option["type"] == "list of strings":
            yield from (f"{flag}={value_text(item)}" for item in value or [""])
        elif isinstance(value, (list, tuple, dict)):
            raise config_error(flag, f"got {value!r:.80} (allowed: {option['type'] or 'no list'})")
        else:
            yield f"{flag}={value_text(value)}"


def word_text(value: object) -> str:
    """A word that is no option, even where it begins like one."""
    text = os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)
    return f"./{text}" if text.startswith("-") else text


def given_options(config: _native.TrainConfig) -> dict[str, Any]:
    """The options that make an equal configuration: what was given, and what differs from what loading that gives."""
    of_preset, values = config.preset_values(), config.to_dict()
    given = {name: values[name] for name, origin in config.origins().items()
             if name not in of_preset and origin not in NOT_GIVEN_BY_USER}
    loaded = _native.TrainConfig(**given).to_dict()
    given |= {name: value for name, value in values.items() if loaded[name] != value}
    # Other users see a program's words, and no command that is started so has a use for a secret.
    for name in (option["name"] for option in config.options() if option["secret"]):
        given.pop(name, None)
    return {name: "none" if value is None else value for name, value in given.items()}


def run_command(command: str, words: Iterable[object], given: dict[str, Any], progress: bool,
        config: _native.TrainConfig | None = None) -> dict[str, Any]:
    """The command's report."""
    if not isinstance(progress, bool):
        raise config_error("progress", f"got {progress!r} (allowed: True, False)")
    if config is not None and not isinstance(config, _native.TrainConfig):
        raise config_error("config", f"got {config!r:.80} (allowed: a TrainConfig)")
    flags = [word_text(word) for word in words]
    if config is not None:
        flags += flags_of(given_options(config), config.options())
    return report_of(command, [*flags, *flags_of(given, COMMANDS[command]["options"])], progress)


def doctor(config: _native.TrainConfig | None = None, *, progress: bool = True, **options: Any) -> PhotoReport | MachineReport:
    """The photos of a configuration examined before training; or the machine, with machine=True.

    Returns a PhotoReport, or a MachineReport. A photo that is refused is in its problems, and raises nothing.
    """
    printed = run_command("doctor", [], options, progress, config)
    return MachineReport._of(printed) if "checks" in printed else PhotoReport._of(printed)


def prepare(config: _native.TrainConfig, *, progress: bool = True, **options: Any) -> PrepareReport:
    """Does what train with the same configuration does before its first step: photos, class images, encoding."""
    return PrepareReport._of(run_command("prepare", [], options, progress, config))


def inspect(path: _native.PathText, *, progress: bool = True, **options: Any) -> Inspection:
    """Describes a model folder, safetensors file, checkpoint, run, or image folder or file, without loading it."""
    return Inspection(run_command("inspect", [path], options, progress))


def render(*, progress: bool = True, **options: Any) -> RenderReport:
    """Renders synthetic people, with captions and labels."""
    return RenderReport._of(run_command("render", [], options, progress))


def evaluate(*, progress: bool = True, **options: Any) -> EvaluationReport:
    """Measures how well a model generates the rendered person it was trained on. The program's command is `eval`."""
    return EvaluationReport._of(run_command("eval", [], options, progress))


def convert(*, progress: bool = True, **options: Any) -> ConvertReport:
    """Converts a diffusers folder to one file, or back; a pickle to safetensors; a LoRA to other names."""
    return ConvertReport._of(run_command("convert", [], options, progress))


def merge(*, progress: bool = True, **options: Any) -> MergeReport:
    """Merges LoRAs into the weights of a model."""
    return MergeReport._of(run_command("merge", [], options, progress))


def fetch(id: str, *, progress: bool = True, **options: Any) -> FetchReport:
    """Downloads a model of a Hugging Face hub into its cache."""
    return FetchReport._of(run_command("fetch", [id], options, progress))


def push(run: _native.PathText, id: str, *, progress: bool = True, **options: Any) -> PushReport:
    """Uploads a model or LoRA to a Hugging Face hub, with a model card."""
    return PushReport._of(run_command("push", [run, id], options, progress))


# The function of each command, and what it returns.
FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "doctor": (doctor, "PhotoReport | MachineReport"), "prepare": (prepare, "PrepareReport"), "inspect": (inspect, "Inspection"),
    "render": (render, "RenderReport"), "eval": (evaluate, "EvaluationReport"), "convert": (convert, "ConvertReport"),
    "merge": (merge, "MergeReport"), "fetch": (fetch, "FetchReport"), "push": (push, "PushReport")}
