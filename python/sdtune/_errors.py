"""Errors of the Python side, as the core raises them: with .problems and .exit_code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _native


def valid_text(text: str) -> str:
    """With U+FFFD, as the core has it, in place of the lone surrogates of os.fsdecode: a file's name need not be UTF-8, which messages are."""
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def error_of(kind: str, faults: Sequence[tuple[str, str, str]], exit_code: int) -> _native.Error:
    """An error of the class that has this name, with these faults: (where, what, hint). Error for a name that no class has."""
    found = getattr(_native, kind, None)
    error_class = found if isinstance(found, type) and issubclass(found, _native.Error) else _native.Error
    problems = [_native.Problem(*map(valid_text, fault)) for fault in faults]
    error = error_class("\n".join(map(str, problems)))
    error.problems, error.exit_code = problems, exit_code
    return error


def config_error(where: str, what: str, hint: str = "") -> _native.ConfigError:
    """A ConfigError of one fault."""
    error = error_of("ConfigError", [(where, what, hint)], 2)
    assert isinstance(error, _native.ConfigError)
    return error


def require_config(config: Any) -> None:
    """Raises ConfigError where what was given for a configuration is none, such as a dict or a file's name."""
    if not isinstance(config, _native.TrainConfig):
        raise config_error("config", f"got {config!r:.80} (allowed: a TrainConfig)",
                           "TrainConfig(**options) takes a dict's options, TrainConfig.from_yaml reads a file")
