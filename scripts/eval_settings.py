#!/usr/bin/env python3
"""What the results of a folder of scripts/eval_subjects.sh, eval_best.sh and compare_recipes.py were made with.

    python3 scripts/eval_settings.py detail BASE                     the people that the base generates: 64 or 128
    python3 scripts/eval_settings.py keep FOLDER BASE NAME=TEXT ...  writes FOLDER/settings.json, or compares with it

The settings are the base's name, the hashes of its files and of the portrait classifier's, the version that the program prints, and what is
given. A folder of other settings is refused with exit code 2: its results would be reported as these settings'. So is one that has results and
no settings.json; remove it, or choose another folder. SDTUNE_PROGRAM names another program than .venv/bin/sdtune.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def bundled(name: str) -> Path:
    return Path(os.environ.get("SDTUNE_SHARE") or ROOT) / "models" / name


def folder_of_base(name: str) -> Path:
    """A folder, or a bundled base by its name."""
    for folder in (ROOT / name, bundled(name)):
        if (folder / "unet" / "config.json").is_file():
            return folder
    raise SystemExit(f"{name}: holds no unet/config.json, and no bundled base has this name")


def detail_of_base(name: str) -> str:
    """By its resolution (model/pipeline/image_shape.h), as train/portrait/scene/person.h decides it."""
    base = folder_of_base(name)
    unet, vae = (json.loads((base / part / "config.json").read_text()) for part in ("unet", "vae"))
    resolution = unet["sample_size"] * 2 ** (len(vae["block_out_channels"]) - 1)
    return "128" if resolution >= 128 else "64"


def hash_of_files(folder: Path) -> str:
    """Of all its files, by name: weights, train's defaults, the scheduler. Its card alone changes no result."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "README.md"):
        total.update(f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def version_of_program() -> str:
    """As it prints it. Its bytes are others after each build, also after one of the same sources with other options."""
    program = os.environ.get("SDTUNE_PROGRAM") or ".venv/bin/sdtune"
    try:
        asked = subprocess.run([program, "--version"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{program} --version: {error}") from error
    return asked.stdout.strip()


def settings_of(base: str, given: dict[str, str]) -> dict[str, str]:
    """`judge` among them is a folder; where it is empty, eval takes the bundled one of the base's resolution."""
    judge = ROOT / given["judge"] if given.get("judge") else bundled("portrait-judge" if detail_of_base(base) == "64" else "portrait-judge-128")
    return {"base": base, "base_files": hash_of_files(folder_of_base(base)), "judge_files": hash_of_files(judge),
            "program": version_of_program(), **given}


def keep_settings(folder: Path, settings: dict[str, str]) -> None:
    """Into a folder without results; SystemExit where they are not those of the folder."""
    path = folder / "settings.json"
    if not path.is_file():
        if any(folder.rglob("eval.json")) or any(folder.rglob("train_seconds")):
            raise SystemExit(f"{folder}: has results but no settings.json, so what they were made with is not known: choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings, indent=1) + "\n")
        return
    kept = json.loads(path.read_text())
    for name in sorted({*kept, *settings}):
        if kept.get(name) != settings.get(name):
            raise SystemExit(f"{path}: {name} is {kept.get(name)!r}, now {settings.get(name)!r}: choose another folder, or remove this one")


def main() -> int:
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "detail":
        print(detail_of_base(words[1]))
        return 0
    if len(words) < 3 or words[0] != "keep" or not all("=" in word for word in words[3:]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        keep_settings(Path(words[1]), settings_of(words[2], dict(word.split("=", 1) for word in words[3:])))
    except SystemExit as refusal:
        print(f"eval_settings: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
