"""Faults of a YAML file with options."""

from __future__ import annotations

from planted_faults import Fault, Place, content


def file(text: bytes | str) -> Fault:
    """A config file with this content."""
    return lambda place: ["--config", str(place.write("config.yaml", text))]


def folder(place: Place) -> list[str]:
    return ["--config", str(place.photos)]


YAML: dict[str, Fault] = {
    "no config file": lambda place: ["--config", "nowhere.yaml"],
    "config file is a folder": folder,
    "config file is too large": file("# comment\n" * 200_000),
    "config file with a byte order mark": file(b"\xef\xbb\xbfseed: 1\n"),
    "config file that is not UTF-8": file(b"instance_prompt: caf\xe9\n"),
    "config file with a tab": file("concepts:\n\t- a\n"),
    "config file with a control character": file("instance_prompt: a\x07b\n"),
    "config file with an anchor": file("seed: &a 1\n"),
    "config file with a tag": file("seed: !!int 1\n"),
    "config file with an open quote": file('instance_prompt: "a photo\n'),
    "config file that is nested too deep": file("concepts: " + "[" * 40 + "]" * 40 + "\n"),
    "config file with a list as a key": file("? [a, b]\n: 1\n"),
    "config file with nothing as a key": file("? \n: 1\n"),
    "config file with a key twice": file("seed: 1\nseed: 2\n"),
    "config file of two documents": file("seed: 1\n---\nseed: 2\n"),
    "config file that is not YAML": file("seed: [1\n"),
    "config file that is a list": file("- seed\n"),
    "option that is a mapping": file("seed: {a: 1}\n"),
    "option that is a list of lists": file("concepts: [[1]]\n"),
    "option without a value": file("seed:\n"),
    "option that is a list of mappings": file("lora_layers: [{a: b}]\n"),
    "option with two values": file("seed: [1, 2]\n"),
    "option by two names": file("output: a\noutput_dir: b\n"),
    "option with a NUL byte": file('instance_prompt: "a\\0b"\n'),
    "preset of the base with an unknown key": content("base/sdtune_defaults.yaml", "learning_rato: 1\n"),
    "preset of the base with a command": content("base/sdtune_defaults.yaml", "on_finish: echo\n"),
}
