"""Errors of the Python side, as the core raises them: with .problems and .exit_code."""

from __future__ import annotations

from typing import Any

from . import _native


def config_error(where: str, what: str, hint: str = "") -> _native.ConfigError:
    """A ConfigError of one fault."""
    problem = _native.Problem(where, what, hint)
    error = _native.ConfigError(str(problem))
    error.problems, error.exit_code = [problem], 2
    return error


def require_config(config: Any) -> None:
    """Raises ConfigError where what was given for a configuration is none, such as a dict or a file's name."""
    if not isinstance(config, _native.TrainConfig):
        raise config_error("config", f"got {config!r:.80} (allowed: a TrainConfig)",
                           "TrainConfig(**options) takes a dict's options, TrainConfig.from_yaml reads a file")
