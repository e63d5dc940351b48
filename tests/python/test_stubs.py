"""The stubs and the module name the same things, and everything public says what it does."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import sdtune

ROOT = Path(__file__).resolve().parents[2]
STUB = ast.parse((ROOT / "python/sdtune/_native.pyi").read_text())
PUBLIC = {name: getattr(sdtune, name) for name in sdtune.__all__}
# Members that Python or pybind11 gives every class, and what only our tests call.
INHERITED = {"__init__", "__call__", "__getitem__"}
TESTS_ONLY = {"testing"}


def stub_members(node: ast.ClassDef) -> set[str]:
    """Methods, properties and attributes that the stub declares in a class."""
    names = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    names |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
    return names - INHERITED


def module_members(kind: type) -> set[str]:
    """What the class itself offers by name."""
    if kind is sdtune.TrainConfig:
        return {name for name in dir(kind()) if not name.startswith("_")}
    return {name for name in vars(kind) if not name.startswith("_")}


STUB_CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
STUB_FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}


def test_stub_and_module_have_the_same_names() -> None:
    classes = {name for name, item in PUBLIC.items() if inspect.isclass(item)}
    functions = {name for name, item in PUBLIC.items() if callable(item) and not inspect.isclass(item)}
    assert classes == STUB_CLASSES.keys()
    assert functions == STUB_FUNCTIONS.keys()


@pytest.mark.parametrize("name", sorted(STUB_CLASSES))
def test_stub_class_has_the_members_of_the_class(name: str) -> None:
    if issubclass(PUBLIC[name], BaseException):
        assert stub_members(STUB_CLASSES[name]) <= {"problems", "exit_code"}
        return
    assert stub_members(STUB_CLASSES[name]) == module_members(PUBLIC[name])


def test_arguments_have_the_stub_s_names() -> None:
    for name, node in STUB_FUNCTIONS.items():
        first_line = PUBLIC[name].__doc__.splitlines()[0]
        arguments = [argument.arg for argument in node.args.args]
        assert all(f"{argument}:" in first_line for argument in arguments), first_line


def test_everything_public_is_documented() -> None:
    undocumented = [name for name, item in PUBLIC.items() if name not in TESTS_ONLY and not inspect.getdoc(item)]
    for name, item in PUBLIC.items():
        if not inspect.isclass(item) or issubclass(item, BaseException):
            continue
        for member in module_members(item) - {"testing"}:
            # pybind11's own first line is a signature: words must follow it.
            text = inspect.getdoc(inspect.getattr_static(item, member, None)) or ""
            is_function = text.startswith(f"{member}(")
            if item is not sdtune.TrainConfig and is_function and "\n\n" not in text:
                undocumented.append(f"{name}.{member}")
    assert not undocumented


def test_options_in_the_stub_are_those_of_training() -> None:
    check = subprocess.run([sys.executable, str(ROOT / "scripts/make_config_stub.py"), "--check"])
    assert check.returncode == 0, "run scripts/make_config_stub.py"
