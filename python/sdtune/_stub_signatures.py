"""Signatures of what C++ registers, read from the stub that lies beside this file: pybind11 gives its functions none."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Parameter = inspect.Parameter
STUB = Path(__file__).with_name("_native.pyi")


def parameter(item: ast.arg, kind: Any, default: ast.expr | None = None) -> Parameter:
    """One parameter; its annotation is text, as the stub has it."""
    value = Parameter.empty if default is None else ast.literal_eval(default)
    return Parameter(item.arg, kind, default=value, annotation=ast.unparse(item.annotation) if item.annotation else Parameter.empty)


def signature_of(node: ast.FunctionDef) -> inspect.Signature:
    """What the stub declares of a function."""
    arguments = node.args
    missing: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
    found = [parameter(item, Parameter.POSITIONAL_OR_KEYWORD, default)
             for item, default in zip(arguments.args, [*missing, *arguments.defaults])]
    if arguments.vararg:
        found.append(parameter(arguments.vararg, Parameter.VAR_POSITIONAL))
    found += [parameter(item, Parameter.KEYWORD_ONLY, default) for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        found.append(parameter(arguments.kwarg, Parameter.VAR_KEYWORD))
    return inspect.Signature(found, return_annotation=ast.unparse(node.returns) if node.returns else Parameter.empty)


def functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Those of a module or class that are no properties."""
    for node in body:
        if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(item) or "setter" in ast.unparse(item)
                                                         for item in node.decorator_list):
            yield node


def sign_class(kind: type, node: ast.ClassDef, signed: Callable[..., Any]) -> None:
    """Its constructor and the methods that are C++'s."""
    for method in functions(node.body):
        signature = signature_of(method)
        there = vars(kind).get(method.name)
        if method.name == "__init__":
            if not isinstance(there, types.FunctionType) and "__signature__" not in vars(kind):
                own = list(signature.parameters.values())[1:]
                kind.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
            continue
        is_static = isinstance(there, staticmethod)
        function = there.__func__ if isinstance(there, staticmethod) else there
        if function is None or isinstance(function, types.FunctionType):
            continue
        call = signed(function, f"{kind.__name__}.{method.name}", signature.parameters.values(), signature.return_annotation)
        setattr(kind, method.name, staticmethod(call) if is_static else call)


def sign(core: Any, signed: Callable[..., Any]) -> None:
    """Everything in `core` that has no signature of its own. `signed` wraps a function under a signature."""
    body = ast.parse(STUB.read_text(encoding="utf-8")).body
    for node in functions(body):
        function = getattr(core, node.name)
        if not isinstance(function, types.FunctionType):
            signature = signature_of(node)
            setattr(core, node.name, signed(function, node.name, signature.parameters.values(), signature.return_annotation))
    for item in body:
        if isinstance(item, ast.ClassDef):
            sign_class(getattr(core, item.name), item, signed)
    core.Error.__signature__ = inspect.Signature([Parameter("args", Parameter.VAR_POSITIONAL, annotation="object")])
