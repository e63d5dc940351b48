"""The stubs and the module name the same things, and everything public says what it does."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sdtune
from sdtune._commands import FUNCTIONS

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
SIGNED = {"train": sdtune.train, "start": sdtune.start, "check": sdtune.check, "plan": sdtune.plan,
          "StableDiffusionPipeline.__call__": sdtune.StableDiffusionPipeline.__call__,
          "StableDiffusionPipeline.encode_prompt": sdtune.StableDiffusionPipeline.encode_prompt}
SIGNED |= {function.__name__: getattr(sdtune, function.__name__) for function, _ in FUNCTIONS.values()}
# These take what config.json may hold, or what diffusers may pass.
OPEN = {f"{name}{method}" for name in sdtune.__all__ if name.endswith("Scheduler") for method in ("", ".from_config")} | {
    "RunLogs.step", "StableDiffusionPipeline.enable_group_offload", "StableDiffusionPipeline.enable_lora_hotswap"}
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


def native_line(function: object) -> str:
    """The signature that pybind11 wrote, of a function of C++; else empty."""
    line = (getattr(getattr(function, "__wrapped__", None), "__doc__", None) or "").partition("\n")[0]
    return line if "(" in line else ""


def test_arguments_have_the_stub_s_names() -> None:
    """What the stub declares is what C++ registered: signatures are read from the stub."""
    seen = 0
    for kind, body in [(None, STUB.body), *((kind, node.body) for kind, node in STUB_CLASSES.items())]:
        for node in body:
            if not isinstance(node, ast.FunctionDef) or (kind is None and node.name in SIGNED):
                continue
            line = native_line(getattr(PUBLIC[kind] if kind else sdtune, node.name, None))
            if not line or f"{kind}.{node.name}" in SIGNED or (kind == "TrainConfig" and node.name == "from_yaml"):
                continue
            seen += 1
            names = [item.arg for item in node.args.args if item.arg != "self"]
            given = [name for name in re.findall(r"(\w+): ", line.partition("(")[2]) if name != "self"]
            assert names == given, line
    assert seen > 50


def cannot_be_made(kind: type) -> bool:
    """Of an event, which only C++ makes."""
    try:
        kind()
    except TypeError as error:
        return "No constructor defined" in str(error)
    return False


def test_everything_that_can_be_called_has_a_signature() -> None:
    """Of every function, class and method; not of classes without a constructor, such as events."""
    without = []
    for name, item in PUBLIC.items():
        if not callable(item):
            continue
        calls = {name: item}
        if inspect.isclass(item):
            calls |= {f"{name}.{member}": getattr(item, member) for member in vars(item)
                      if (not member.startswith("_") or member == "__call__") and callable(getattr(item, member))}
        for path, call in calls.items():
            try:
                parameters = inspect.signature(call).parameters.values()
            except ValueError:
                if not (inspect.isclass(call) and cannot_be_made(call)):
                    without.append(path)
                continue
            if any(item.kind is item.VAR_KEYWORD for item in parameters) and path not in OPEN:
                without.append(f"{path} takes any keyword")
    assert not without


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
