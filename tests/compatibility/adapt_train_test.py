#!/usr/bin/env python3
"""Writes tests/train/run/train_test.cpp to FILE with the calls and the places of commit 68da9cb; its assertions stay as they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"model/files/json_file.h": "model/base/json.h", "train/config/run_folder.h": "train/run/run_folder.h"}
GONE = [r'#include "tests/support/no_portrait_readers.h"\n', r'#include "train/preflight/preflight.h"\n',
        r"  const test::NoPortraitReaders portraits;\n", r"  (const )?Preflight preflight = run_preflight\([^;]*;\n"]
CALLS = {r", test::NoPortraitReaders\(\), stop_\)": ", stop_)", r"Trainer\(\*run, observers_, portraits, stop_\)": "Trainer(*run, observers_, stop_)",
         r"(build_run\(config_, std::make_unique<SingleProcess>\(\), torch::kCPU,)[^;]*;": r'\1 "", {}, stop_);'}

text = (ROOT / "tests" / "train" / "run" / "train_test.cpp").read_text()
for new, old in PLACES.items():
    text = text.replace(new, old)
for pattern in GONE:
    text = re.sub(pattern, "", text)
for pattern, call in CALLS.items():
    text = re.sub(pattern, call, text)
Path(sys.argv[1]).write_text(text)
