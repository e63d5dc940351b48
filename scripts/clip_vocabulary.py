"""The real CLIP vocabulary as a tokenizer folder, made from the BPE file that the wheel open-clip-torch carries."""

import gzip
import importlib.util
import json
from pathlib import Path

BPE_FILE = "bpe_simple_vocab_16e6.txt.gz"
NUM_MERGES = 48_894  # 49,408 ids less 512 bytes with and without the end-of-word mark, and the two special tokens
START, END = "<|startoftext|>", "<|endoftext|>"


def byte_characters() -> list[str]:
    """The printable character that stands for each byte, in the order of CLIP's ids (printable bytes come first)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = len([byte for byte in range(256) if byte not in printable])
    return [chr(byte) for byte in printable] + [chr(256 + index) for index in range(others)]


def bpe_file() -> Path:
    """Where the installed open-clip-torch keeps CLIP's merges. The package itself is not imported."""
    spec = importlib.util.find_spec("open_clip")
    if spec is None or spec.origin is None:
        raise RuntimeError("open-clip-torch, which carries CLIP's vocabulary, is missing: see requirements/test.txt")
    return Path(spec.origin).parent / BPE_FILE


def write_clip_vocabulary(folder: Path | str, pad_token: str = END) -> None:
    """Writes vocab.json, merges.txt, tokenizer_config.json and special_tokens_map.json into `folder`.

    `pad_token` is "<|endoftext|>" (SD 1.x, SDXL's first tokenizer) or "!" (SD 2.x, SDXL's second).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = gzip.decompress(bpe_file().read_bytes()).decode("utf-8").split("\n")
    merges = lines[1 : 1 + NUM_MERGES]
    characters = byte_characters()
    tokens = characters + [character + "</w>" for character in characters]
    tokens += ["".join(merge.split()) for merge in merges] + [START, END]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(vocabulary) != 49_408:
        raise RuntimeError(f"{bpe_file()}: gives {len(vocabulary)} tokens, CLIP has 49408")
    special = {"bos_token": START, "eos_token": END, "unk_token": END, "pad_token": pad_token}
    settings = {"tokenizer_class": "CLIPTokenizer", "do_lower_case": True, "model_max_length": 77, **special}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
    (folder / "special_tokens_map.json").write_text(json.dumps(special, indent=2), encoding="utf-8")
