"""Types of declared options, as the stubs and inspect.signature show them. The names are those of sdtune.types."""

from __future__ import annotations

from typing import Any

PATH_WORDS = ("DIR", "FILE", "FOLDER")  # of a placeholder: the option takes a path
ALIASES = {"set": "PortraitSet"}  # where the option's own name would mislead
COMPUTE_DTYPES = {"dtype": "ComputeDtype"}  # of a computation: `default` is one of them
TYPES = {"string": "str", "list of strings": "list[str]"}


def alias(option: dict[str, Any]) -> str:
    """The name in sdtune.types of the choices of an option: lr_scheduler -> LrScheduler. The dtype of a computation, which may be left to
    the device, is another type than that of weights in a file."""
    name = option["name"]
    if "default" in option["choices"] and name in COMPUTE_DTYPES:
        return COMPUTE_DTYPES[name]
    return ALIASES.get(name) or "".join(word.capitalize() for word in name.split("_"))


def item_type(option: dict[str, Any]) -> str:
    """What a text option takes, or an item of a list."""
    if option.get("choices"):
        return alias(option)
    if option.get("takes_mappings"):
        return "str | Concept"
    is_path = any(word in option.get("placeholder", "") for word in PATH_WORDS)
    return "PathText" if is_path else "str"


def taken(option: dict[str, Any]) -> str:
    """The type of the values that the option takes."""
    kind = option["type"]
    if kind == "string":
        kind = item_type(option)
    elif kind == "list of strings":
        item = item_type(option)
        kind = f"{item} | Sequence[{item}]" if option.get("choices") else f"Sequence[{item}]"
    return f"{kind} | None" if option["optional"] else str(kind)


def given_back(option: dict[str, Any]) -> str:
    """The type of its value when it is read."""
    kind = TYPES.get(option["type"], option["type"])
    if option.get("choices"):
        kind = kind.replace("str", alias(option))
    return f"{kind} | None" if option["optional"] else str(kind)
