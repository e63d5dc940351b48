#!/usr/bin/env python3
"""Lets every fault of tests/python/rank_faults.py befall real ranks and writes docs/measurements/rank_faults.md.

    .venv/bin/python scripts/rank_faults.py [--only TEXT] [--at-once N]

--only: faults whose name holds the text; nothing is written. Needs a build and the tests' Python packages; faults of the network
need the right to make network namespaces. Exit 1 where a rank ends otherwise than it must.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

import network_namespaces  # noqa: E402
from rank_faults import FAULTS, GRACE_S, PEER_TIMEOUT_S, START_TIMEOUT_S, Bench, table  # noqa: E402
from tiny_models import write_pipeline  # noqa: E402
from training_reference import write_photos  # noqa: E402

PAGE = ROOT / "docs" / "measurements" / "rank_faults.md"
HEAD = f"""# What ranks make of a fault

Written by `scripts/rank_faults.py`, which starts ranks of the real program on Gloo and lets each fault of tests/python/rank_faults.py
befall them: `--peer-timeout {PEER_TIMEOUT_S}`, `--start-timeout {START_TIMEOUT_S}`. In a collective a rank is ended by a signal, or the call
fails, or blocks while the process lives; `reset` ends all of its connections; `cut` takes the link between two network namespaces
down. Exit codes are by process, the lost one among them; seconds are from the fault (before the first step: from the start) to
the end of the last rank, less the timeout: at most {GRACE_S} are allowed.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose name holds this text; nothing is written")
    parser.add_argument("--at-once", type=int, default=3, help="groups of ranks at a time")
    options = parser.parse_args()
    if reason := network_namespaces.why_not():
        print(f"rank_faults: {reason}", file=sys.stderr)
        return 2
    chosen = [fault for fault in FAULTS if options.only in fault.name]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photos = write_photos(folder / "photos", 5, 0)
        for index, photo in enumerate(sorted(photos.iterdir())):
            photo.rename(photos / f"{index}.png")
        bench = Bench(folder, write_pipeline("sd1", folder / "base"), photos)
        with ThreadPoolExecutor(options.at_once) as pool:
            outcomes = list(pool.map(bench.run, chosen))
    mistakes = [f"{outcome.fault.name}: {mistake}" for outcome in outcomes for mistake in outcome.mistakes()]
    for line in mistakes:
        print(f"rank_faults: {line}", file=sys.stderr)
    if options.only:
        print(table(outcomes))
    else:
        longest = max(outcome.beyond for outcome in outcomes)
        PAGE.write_text(f"{HEAD}\n{len(outcomes)} faults; the last rank ended at most {longest:.1f} s beyond the timeout.\n\n{table(outcomes)}\n")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
