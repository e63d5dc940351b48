#!/usr/bin/env python3
"""Checks that commit subjects have at most 72 characters. Exit 1 with one line an offence.

    scripts/check_subjects.py                    every commit since the rule holds
    scripts/check_subjects.py --message FILE     one message that is about to be committed (a commit-msg hook)
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 72
# The last commit before the rule.
BEFORE = "68da9cb5ea7a"


def subjects() -> list[tuple[str, str]]:
    """(commit, subject) of each commit that the rule holds for; all that are there where history is shallow."""
    known = subprocess.run(["git", "cat-file", "-e", f"{BEFORE}^{{commit}}"], cwd=ROOT, capture_output=True, check=False)
    span = f"{BEFORE}..HEAD" if known.returncode == 0 else "HEAD^!"
    listing = subprocess.run(["git", "log", "--no-merges", "--format=%h %s", span], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in listing.splitlines()]


def main() -> int:
    found = subjects() if sys.argv[1:2] != ["--message"] else [("this message", Path(sys.argv[2]).read_text().split("\n")[0])]
    long = [f"{commit}: {len(subject)} characters (allowed: {LONGEST}): {subject}" for commit, subject in found
            if len(subject) > LONGEST]
    print("\n".join(long) if long else "subjects: ok")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
