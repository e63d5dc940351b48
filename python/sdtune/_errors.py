"""Errors of the Python side, as the core raises them: with .problems and .exit_code."""

from __future__ import annotations

from . import _native


def config_error(where: str, what: str, hint: str = "") -> _native.ConfigError:
    """A ConfigError of one fault."""
    problem = _native.Problem(where, what, hint)
    error = _native.ConfigError(str(problem))
    error.problems, error.exit_code = [problem], 2
    return error
