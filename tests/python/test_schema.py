"""`sdtune schema`, compared with the real jsonschema, the program's own reading of the same files, and the declared options."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from planted_faults_yaml import YAML
from program import ROOT, run

import sdtune

CONFIGS = ROOT / "configs"
FILE = CONFIGS / "train.schema.json"
TABLES = ("gpus.yaml", "preset_memory.yaml", "processors.yaml")
PRESETS = sorted(path.name for path in CONFIGS.glob("*.yaml") if path.name not in TABLES)
MODELINE = "# yaml-language-server: $schema=train.schema.json\n"
JSON_TYPES = {"int": "integer", "float": "number"}
# What no schema of the values can say, since it is about the text: a YAML reader refuses or has lost it.
TEXTUAL = {"no config file", "config file is a folder", "config file is too large", "config file with a byte order mark",
           "config file that is not UTF-8", "config file with a tab", "config file with a control character",
           "config file with an anchor", "config file with a tag", "config file with an open quote",
           "config file that is nested too deep", "config file with a list as a key", "config file with nothing as a key",
           "config file with a key twice", "config file of two documents", "config file that is not YAML",
           "preset of the base with an unknown key", "preset of the base with a command"}


class Yaml12(yaml.SafeLoader):
    """Reads scalars as editors do: YAML 1.2's core schema, where `no` is a word and 1e-4 a number."""

    yaml_implicit_resolvers: dict = {}


for tag, pattern, first in (("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"), ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
                            ("int", r"[-+]?[0-9]+", "-+0123456789"),
                            ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789")):
    Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), list(first))
Yaml12.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))


def read(text: str) -> Any:
    return yaml.load(text, Loader=Yaml12)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def accepts(schema: dict[str, Any]) -> Callable[[Any], bool]:
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid


def program_accepts(text: str, folder: Path) -> bool:
    """Whether reading the file gives no error of its own."""
    (folder / "config.yaml").write_text(text)
    try:
        sdtune.TrainConfig.from_yaml(folder / "config.yaml")
    except sdtune.ConfigError:
        return False
    return True


def test_the_file_is_current() -> None:
    assert run(["schema"]).stdout == FILE.read_text(), "run scripts/make_reference.py"


@pytest.mark.parametrize("name", PRESETS)
def test_every_example_is_valid_and_names_the_schema(name: str, accepts: Callable[[Any], bool]) -> None:
    text = (CONFIGS / name).read_text()
    assert MODELINE in text
    values = read(text)
    assert accepts(values) and accepts(None)
    assert not accepts({**values, "learning_rato": 1})


def test_every_option_is_in_it(schema: dict[str, Any]) -> None:
    """Name, default, type, bounds, choices, unit, help and aliases are those of the declaration."""
    properties = schema["properties"]
    options = sdtune.TrainConfig.options()
    names = [option["name"] for option in options]
    aliases = {alias: option["name"] for option in options for alias in option["aliases"]}
    assert set(properties) == {*names, *aliases} and schema["additionalProperties"] is False
    for option in options:
        entry = properties[option["name"]]
        unit = f" Unit: {option['unit']}." if option["unit"] else ""
        assert entry["description"] == option["help"] + unit, option["name"]
        assert entry.get("x-unit", "") == option["unit"] and entry["x-group"] == option["group"]
        assert ("default" not in entry) if option["secret"] else entry["default"] == option["default"]
        value = entry["anyOf"][0] if option["optional"] else entry["anyOf"][1] if option["type"] == "list of strings" else entry
        if option["type"] in JSON_TYPES:
            assert value["type"] == JSON_TYPES[option["type"]]
            assert numbers(bounds_text(value)) == numbers(option["allowed"]), option["name"]
        elif option["allowed"].startswith("one of "):
            choices = value["anyOf"][0] if "anyOf" in value else value
            assert "one of " + ", ".join(choices["enum"]) == option["allowed"]
    for alias, name in aliases.items():
        assert properties[alias]["$ref"] == f"#/properties/{name}" and properties[alias]["deprecated"] is True


def bounds_text(value: dict[str, Any]) -> str:
    """As --help writes a range."""
    low, above, high = (value.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    texts = {number: str(number) for number in (low, above, high) if number is not None}
    if low is None and above is None:
        return f"x <= {texts[high]}" if high is not None else ""
    sign, bound = ("<", above) if low is None else ("<=", low)
    if high is None:
        return f"x {'>' if low is None else '>='} {texts[bound]}"
    return f"{texts[bound]} {sign} x <= {texts[high]}"


def numbers(text: str) -> list[str | float]:
    """The words of a range, its numbers as such: 1e-07 is 0.0000001."""
    return [word if re.search(r"[x<>]", word) else float(word) for word in text.split()]


def wrong_values(entry: dict[str, Any]) -> Iterator[Any]:
    """Values that this option's schema says it refuses."""
    value = entry
    if "anyOf" in entry:
        value = next(part for part in entry["anyOf"] if part.get("type") not in ("array", "null"))
    yield {"a": 1}
    if value.get("type") in ("integer", "number"):
        yield from ("a word", [1, 2])
        if "minimum" in value:
            yield value["minimum"] - 1
        if "exclusiveMinimum" in value:
            yield value["exclusiveMinimum"]
        if "maximum" in value:
            yield value["maximum"] + 1
    if value.get("type") == "integer":
        yield 1.5
    if "enum" in value or "bool" in value.get("$ref", ""):
        yield "surely none of them"


def right_values(entry: dict[str, Any], name: str) -> Iterator[Any]:
    default = entry.get("default")
    if name != "concepts":
        yield default if default is not None else None
    for part in entry.get("anyOf", [entry]):
        yield from part.get("enum", [])
        for key in ("minimum", "maximum"):
            if key in part:
                yield part[key]
        if "exclusiveMinimum" in part:
            yield part["exclusiveMinimum"] + (1 if part["type"] == "integer" else 0.25)
        if part.get("$ref") == "#/$defs/bool":
            yield from (True, False, "yes", "off", 1)


def test_it_and_the_program_agree_on_each_option(schema: dict[str, Any], accepts: Callable[[Any], bool], tmp_path: Path) -> None:
    """Bounds, choices, defaults and values beyond them: both accept or both refuse."""
    compared = 0
    for name, entry in schema["properties"].items():
        entry = schema["properties"][entry["$ref"].rsplit("/", 1)[1]] if "properties" in entry.get("$ref", "") else entry
        for values, wanted in ((wrong_values(entry), False), (right_values(entry, name), True)):
            for value in values:
                if wanted and value is None and "anyOf" not in entry:
                    continue  # a secret has no default
                text = f"{name}: {json.dumps(value)}\n"
                assert accepts({name: value}) is wanted, text
                assert program_accepts(text, tmp_path) is wanted, text
                compared += 1
    assert compared > 500


@pytest.mark.parametrize("fault", [name for name in YAML if name not in TEXTUAL])
def test_planted_faults_are_refused(fault: str, accepts: Callable[[Any], bool], tmp_path: Path) -> None:
    class Place:
        def write(self, name: str, text: bytes | str) -> Path:
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
            return tmp_path / name

    text = Path(YAML[fault](Place())[1]).read_text()
    assert not accepts(read(text)) and not program_accepts(text, tmp_path)


def test_faults_that_it_cannot_know_are_few() -> None:
    assert TEXTUAL < set(YAML) and len(set(YAML) - TEXTUAL) >= 7


CONCEPT = {"images": "me", "instance_prompt": "a", "repeats": 2, "class_prompt": None}


@pytest.mark.parametrize(("change", "wanted"), [
    ({}, True), ({"images": None}, False), ({"repeats": 0}, False), ({"image": "me"}, False), ({"repeats": [1]}, False),
    ({"num_class_images": None}, True),
])
def test_concepts(change: dict[str, Any], wanted: bool, accepts: Callable[[Any], bool], tmp_path: Path) -> None:
    entry = {**CONCEPT, **change}
    text = yaml.safe_dump({"concepts": [entry]})
    assert accepts({"concepts": [entry]}) is wanted
    (tmp_path / "config.yaml").write_text(text)
    told = run(["check", "--config", "config.yaml"], cwd=tmp_path).stderr
    refused = "concepts[1]" in told or "concepts is a list of something other" in told
    assert refused is not wanted, told
    del entry["images"]
    assert not accepts({"concepts": [entry]})
    assert accepts({"concepts": [{"instance_data_dir": "me"}]})


def test_the_config_of_a_run_is_valid(accepts: Callable[[Any], bool]) -> None:
    """What sdtune writes itself."""
    text = sdtune.TrainConfig(images="me", snr_gamma=5.0, learning_rate=1e-5, report_to=["tensorboard", "wandb"]).to_yaml()
    values = read(text)
    assert values["report_to"] == ["tensorboard", "wandb"] and math.isclose(values["learning_rate"], 1e-5)
    assert accepts(values)


def test_a_mutant_would_be_seen(schema: dict[str, Any], tmp_path: Path) -> None:
    """Without one bound, or with keys that are not known, the comparison with the program fails."""
    loose = copy.deepcopy(schema)
    del loose["properties"]["seed"]["minimum"]
    assert Draft202012Validator(loose).is_valid({"seed": -1}) and not program_accepts("seed: -1\n", tmp_path)
    open_ended = {**schema, "additionalProperties": True}
    assert Draft202012Validator(open_ended).is_valid({"learning_rato": 1})
