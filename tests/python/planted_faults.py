"""A place to train in, for one fault to be planted, and what plants the common ones."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file, save_file

ME = Path(__file__).resolve().parents[2] / "examples" / "me"


def byte_characters() -> list[str]:
    """The characters that stand for the 256 bytes in CLIP's vocabulary, in its order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + at) for at, _ in enumerate(others)]


def write_small_tokenizer(folder: Path) -> None:
    """CLIP's tokenizer without merges, which is read in no time; its ids are among those that the text encoder knows."""
    shutil.rmtree(folder)
    folder.mkdir()
    tokens = [letter + end for end in ("", "</w>") for letter in byte_characters()] + ["<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: at for at, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    named = {"bos_token": tokens[-2], "eos_token": tokens[-1], "unk_token": tokens[-1], "pad_token": tokens[-1]}
    decoder = {str(at): {"content": tokens[at]} for at in (len(tokens) - 2, len(tokens) - 1)}
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "added_tokens_decoder": decoder, **named}))


class Place:
    """A copy of a tiny base, with a small vocabulary, and of the example photos."""

    def __init__(self, folder: Path, base: Path) -> None:
        self.folder, self.base, self.photos = folder, folder / "base", folder / "me"
        self.environment: dict[str, str] = {}
        self.kept: list[object] = []  # what must live as long as the fault: an open file
        shutil.copytree(base, self.base)
        for tokenizer in self.base.glob("tokenizer*"):
            write_small_tokenizer(tokenizer)
        shutil.copytree(ME, self.photos)

    def edit(self, file: str, **values: object) -> None:
        """Sets keys of a JSON file of the place's base; None removes one."""
        path = self.base / file
        content = json.loads(path.read_text())
        for key, value in values.items():
            if value is None:
                content.pop(key, None)
            else:
                content[key] = value
        path.write_text(json.dumps(content))

    def weights(self, part: str) -> Path:
        """The weight file of a part of the base."""
        return next((self.base / part).glob("*.safetensors"))

    def tensors(self, part: str, change: Callable[[dict], None]) -> None:
        """Changes the tensors of a part of the base."""
        path = self.weights(part)
        content = load_file(path)
        change(content)
        save_file(content, path)

    def write(self, name: str, content: bytes | str) -> Path:
        """A file of the place."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


# Plants a fault and returns the options that go with it.
Fault = Callable[[Place], list[str]]


def option(*words: str) -> Fault:
    """Options that contradict each other or the machine."""
    return lambda place: list(words)


def config(file: str, **values: object) -> Fault:
    """A key of the base's configs; None removes it."""
    def plant(place: Place) -> list[str]:
        place.edit(file, **values)
        return []
    return plant


def null(file: str, key: str) -> Fault:
    """A key of the base's configs that is null."""
    def plant(place: Place) -> list[str]:
        content = json.loads((place.base / file).read_text())
        content[key] = None
        (place.base / file).write_text(json.dumps(content))
        return []
    return plant


def content(file: str, text: bytes | str, *words: str) -> Fault:
    """Another content of a file of the place."""
    def plant(place: Place) -> list[str]:
        place.write(file, text)
        return list(words)
    return plant


def photo(name: str, text: bytes | str, *words: str) -> Fault:
    """A file beside the photos."""
    return content("me/" + name, text, *words)


def without(name: str) -> Fault:
    """A part of the base is not there."""
    def plant(place: Place) -> list[str]:
        path = place.base / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        return []
    return plant


def header(text: str, data: bytes = b"") -> bytes:
    """A safetensors file with this header."""
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded + data


def weights(made: bytes) -> Fault:
    """Another content of the UNet's weight file."""
    def plant(place: Place) -> list[str]:
        place.weights("unet").write_bytes(made)
        return []
    return plant


def both(*faults: Fault) -> Fault:
    """Several faults in one place."""
    def plant(place: Place) -> list[str]:
        return [word for fault in faults for word in fault(place)]
    return plant
