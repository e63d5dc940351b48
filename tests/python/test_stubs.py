"""The stubs and the module name the same things, and everything public says what it does."""

from __future__ import annotations

import ast
import inspect
import pydoc
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
    fields = getattr(kind, "__dataclass_fields__", {})
    return {name for name in [*vars(kind), *fields] if not name.startswith("_")}


STUB_CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
# What test_signatures_are_the_stub_s reads: a signature that Python knows, not pybind11's line of text.
SIGNED = {"train": sdtune.train, "start": sdtune.start, "StableDiffusionPipeline.__call__": sdtune.StableDiffusionPipeline.__call__,
          "StableDiffusionPipeline.encode_prompt": sdtune.StableDiffusionPipeline.encode_prompt}
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
        if name in SIGNED:
            continue
        first_line = PUBLIC[name].__doc__.splitlines()[0]
        arguments = [argument.arg for argument in node.args.args]
        assert all(f"{argument}:" in first_line for argument in arguments), first_line


def stub_function(name: str) -> ast.FunctionDef:
    """The stub's declaration of "function" or "Class.method"."""
    kind, _, method = name.rpartition(".")
    body = STUB_CLASSES[kind].body if kind else STUB.body
    (node,) = [item for item in body if isinstance(item, ast.FunctionDef) and item.name == method]
    return node


def stub_parameters(node: ast.FunctionDef) -> list[tuple[str, str, object, str]]:
    """(name, kind, default, annotation) of each parameter that the stub declares."""
    missing = object()
    arguments = node.args
    defaults = [missing] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    rows = [(item, "POSITIONAL_OR_KEYWORD", default) for item, default in zip(arguments.args, defaults)]
    rows += [(item, "KEYWORD_ONLY", default) for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return [(item.arg, kind, inspect.Parameter.empty if default is missing else ast.literal_eval(default),
             ast.unparse(item.annotation) if item.annotation else "") for item, kind, default in rows]


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_signatures_are_the_stub_s(name: str) -> None:
    """inspect.signature shows the names, kinds, defaults and types that the stub declares, and no **keywords."""
    signature = inspect.signature(SIGNED[name])
    shown = [(item.name, item.kind.name, item.default,
              "" if item.annotation is inspect.Parameter.empty else item.annotation)
             for item in signature.parameters.values()]
    assert shown == stub_parameters(stub_function(name))
    assert signature.return_annotation == ast.unparse(stub_function(name).returns)


def test_signatures_show_every_declared_option(tiny_sd1: Path) -> None:
    """Of a pipeline that is loaded, and of the class of training's options."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    parameters = inspect.signature(pipe.__call__).parameters
    assert list(parameters) == [option["name"] for option in sdtune.StableDiffusionPipeline.options()]
    assert parameters["num_inference_steps"].default == 30 and parameters["guidance_scale"].default is None
    text = pydoc.plain(pydoc.render_doc(pipe.__call__))
    assert "num_inference_steps: 'int' = 30" in text and "diffusers' default, 7.5 and for SDXL 5" in text
    training = inspect.signature(sdtune.TrainConfig).parameters
    assert {name: item.default for name, item in training.items()} == {
        option["name"]: option["default"] for option in sdtune.TrainConfig.options()}
    assert list(inspect.signature(sdtune.TrainConfig.from_yaml).parameters) == ["path", *training]


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
