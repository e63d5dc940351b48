#!/usr/bin/env python3
"""Writes what follows from the declared options into python/sdtune: TrainConfig and the commands in _native.pyi, types.py with the
allowed values, and _command_options.py. Run it after adding an option.

    .venv/bin/python scripts/make_config_stub.py [--check] [--program build/app/sdtune]
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "sdtune"
CLASS = "class TrainConfig:\n"
LAST_METHOD = "    def to_yaml(self) -> str: ...\n"
WIDTH = 120
# The commands that have a twin in Python; of the options of train they take a TrainConfig.
COMMANDS = ("doctor", "prepare", "inspect", "render", "eval", "convert", "merge", "fetch", "push")
OF_PYTHON = ("json", "config")  # json: always; config: a TrainConfig where the command takes train's options
KEPT = ("name", "type", "optional", "default", "choices", "placeholder", "unit", "help")
PATHS_OF_CONCEPT = ("images", "class_data_dir")  # of its entry, which has no placeholders
MADE = "Made by scripts/make_config_stub.py; do not edit."

Option = dict[str, Any]


def declared_commands(program: Path) -> dict[str, Any]:
    """Every command with its options, as the program lists them."""
    done = subprocess.run([str(program), "reference", "--json"], check=True, capture_output=True, text=True)
    commands: dict[str, Any] = json.loads(done.stdout)
    return commands


def twin_options(commands: dict[str, Any]) -> dict[str, list[Option]]:
    """The options of each twin: of a command that takes train's options its own alone."""
    of_train = {option["name"] for option in commands["train"]["options"]}
    twins = {}
    for name in COMMANDS:
        options = commands[name]["options"]
        takes_train = of_train <= {option["name"] for option in options}
        left_out = of_train | {"json"} if takes_train else {"json"}
        twins[name] = [{key: option[key] for key in KEPT} for option in options if option["name"] not in left_out]
    return twins


def command_options_text(twins: dict[str, list[Option]]) -> str:
    """_command_options.py."""
    lines = [f'"""The options of the commands that have a function here, from their declarations. {MADE}"""', "",
             "from __future__ import annotations", "", "from typing import Any", "", "COMMANDS: dict[str, dict[str, Any]] = {"]
    for name, options in twins.items():
        lines.append(f'    "{name}": {{"options": [')
        lines += [f"        {option!r}," for option in options]
        lines.append("    ]},")
    return "\n".join([*lines, "}", ""])


def all_choices(options: list[Option]) -> dict[str, list[str]]:
    """Alias -> allowed values. Two options of a name must allow the same."""
    from sdtune._annotations import alias
    found: dict[str, list[str]] = {}
    for option in options:
        if not option["choices"]:
            continue
        if found.setdefault(alias(option), option["choices"]) != option["choices"]:
            raise SystemExit(f"two options {option['name']} allow different values: rename one, or say here how")
    return dict(sorted(found.items()))


def types_text(choices: dict[str, list[str]], concept: list[Option]) -> str:
    """types.py."""
    lines = [f'"""Types for type checkers: the allowed values of options, and what an entry of `concepts` holds. {MADE}"""', "",
             "from __future__ import annotations", "", "from os import PathLike", "from typing import Literal, Required, TypedDict", ""]
    for name, values in choices.items():
        line = f"{name} = Literal[{', '.join(json.dumps(value) for value in values)}]"
        if len(line) > WIDTH:
            rows, row = [], "   "
            for value in values:
                if len(row) + len(value) + 4 > WIDTH:
                    rows, row = [*rows, row], "   "
                row += f' "{value}",'
            line = "\n".join([f"{name} = Literal[", *rows, row, "]"])
        lines.append(line)
    lines += ["", "", "class Concept(TypedDict, total=False):", '    """One subject of several; what it leaves out is as the options of that name say."""', ""]
    kinds = {"string": "str"}
    for option in concept:
        kind = "str | PathLike[str]" if option["name"] in PATHS_OF_CONCEPT else kinds.get(option["type"], option["type"])
        lines.append(f"    {option['name']}: {f'Required[{kind}]' if option['name'] == 'images' else kind}  # {option['help']}")
    return "\n".join([*lines, ""])


def attribute(option: Option) -> str:
    """An option of TrainConfig as its class has it: one that takes more types than it gives back is a property."""
    from sdtune._annotations import given_back, taken
    name, read, written = option["name"], given_back(option), taken(option)
    if read == written:
        return f"    {name}: {read}\n"
    return (f"    @property\n    def {name}(self) -> {read}: ...\n"
            f"    @{name}.setter\n    def {name}(self, value: {written}) -> None: ...\n")


def config_text(config: str, options: list[Option]) -> str:
    """The class TrainConfig: __init__ takes every option, and there is an attribute for each."""
    from sdtune._annotations import taken
    keywords = "".join(f"        {option['name']}: {taken(option)} = ...,\n" for option in options)
    signature = f"    def __init__(self, *,\n{keywords}    ) -> None: ...\n"
    kept = config[: config.index(LAST_METHOD) + len(LAST_METHOD)]
    kept = re.sub(r"    def __init__\(.*?\) -> None: \.\.\.\n", lambda _: signature, kept, count=1, flags=re.DOTALL)
    return kept + "".join(map(attribute, options))


def function_text(name: str, signature: inspect.Signature) -> str:
    """The stub of a function, broken at commas."""
    lines, line = [], f"def {name}("
    indent = " " * len(line)
    pieces, named = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not named:
            pieces, named = [*pieces, "*"], True
        default = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
        pieces.append(f"{parameter.name}: {parameter.annotation}{default}")
    for index, piece in enumerate(pieces):
        piece += ", " if index + 1 < len(pieces) else f") -> {signature.return_annotation}: ..."
        if len(line) + len(piece) > WIDTH and line.strip():
            lines, line = [*lines, line.rstrip()], indent
        line += piece
    return "\n".join([*lines, line])


def import_text(names: list[str]) -> str:
    """Of the types that the stub uses."""
    lines, line = ["from .types import ("], "   "
    for name in names:
        if len(line) + len(name) + 2 > WIDTH:
            lines, line = [*lines, line], "   "
        line += f" {name},"
    return "\n".join([*lines, line, ")"])


def stub_text(text: str, twins: dict[str, list[Option]], aliases: list[str]) -> str:
    """_native.pyi as it should be."""
    import sdtune
    from sdtune._commands import FUNCTIONS
    from sdtune._signatures import command_signature
    for command, (function, result) in FUNCTIONS.items():
        name = function.__name__
        new = function_text(name, command_signature(function, twins[command], result))
        text, count = re.subn(rf"^def {name}\(.*?\) -> [^:]*: \.\.\.$", lambda _, new=new: new, text, flags=re.DOTALL | re.MULTILINE)
        if count != 1:
            raise SystemExit(f"_native.pyi must declare {name} once")
    before, config = text[: text.index(CLASS)], text[text.index(CLASS):]
    text = before + config_text(config, sdtune.TrainConfig.options())
    body = text[text.index("\n\n", text.index("from .types import (")):]
    used = [name for name in ["Concept", *aliases] if re.search(rf"\b{name}\b", body)]
    return re.sub(r"^from \.types import \(.*?\)$", lambda _: import_text(used), text, count=1, flags=re.DOTALL | re.MULTILINE)


def wanted_files(program: Path) -> dict[Path, str]:
    """What each file should hold."""
    import sdtune
    twins = twin_options(declared_commands(program))
    generation = [option for option in sdtune.StableDiffusionPipeline.options() if option.get("choices")]
    options = [*sdtune.TrainConfig.options(), *generation, *(option for twin in twins.values() for option in twin)]
    choices = all_choices(options)
    return {PACKAGE / "_command_options.py": command_options_text(twins),
            PACKAGE / "types.py": types_text(choices, sdtune._native._concept_options()),
            PACKAGE / "_native.pyi": stub_text((PACKAGE / "_native.pyi").read_text(), twins, list(choices))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "app" / "sdtune")
    options = parser.parse_args()
    wanted = wanted_files(options.program)
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    for path in stale:
        if not options.check:
            path.write_text(wanted[path])
        print(f"{path.relative_to(ROOT)} {'is stale: run scripts/make_config_stub.py' if options.check else 'written'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
