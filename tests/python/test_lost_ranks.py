"""Ranks that are lost or differ: the others end with 138 or 2 and name the rank, its host and the step, within timeout + 10 s.

A part of the table (rank_faults.py) runs by default; SDTUNE_RANK_FAULTS=all runs all of it, as scripts/rank_faults.py does, which
writes docs/measurements/rank_faults.md.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import network_namespaces
import pytest
from conftest import ALLOWED_SKIPS
from rank_faults import FAULTS, GRACE_S, Bench, Fault, Outcome
from test_ranks import photos  # noqa: F401 (a fixture)

AT_ONCE = 3  # groups of ranks: they mostly wait
CHOSEN = [fault for fault in FAULTS if fault.in_ci or os.environ.get("SDTUNE_RANK_FAULTS") == "all"]


@pytest.fixture(scope="module")
def outcomes(tiny_sd1: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome | Exception]:  # noqa: F811
    """Of all that are chosen, several at a time."""
    bench = Bench(tmp_path_factory.mktemp("faults"), tiny_sd1, photos)

    def run(fault: Fault) -> Outcome | Exception | None:
        try:
            return bench.run(fault)
        except (AssertionError, OSError) as error:  # told by the test of this fault
            return error

    chosen = [fault for fault in CHOSEN if fault.how != "cut" or not network_namespaces.why_not()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {fault.name: outcome for fault, outcome in zip(chosen, pool.map(run, chosen), strict=True)}


@pytest.mark.parametrize("fault", CHOSEN, ids=lambda fault: fault.name)
def test_a_fault_ends_every_rank_and_is_named(fault: Fault, outcomes: dict[str, Outcome | Exception]) -> None:
    if fault.how == "cut" and (reason := network_namespaces.why_not()):
        pytest.skip(reason)
    outcome = outcomes[fault.name]
    if isinstance(outcome, Exception):
        raise outcome
    assert outcome.mistakes() == []


def test_the_table_has_what_it_must() -> None:
    """At least 40, of every kind, and one of each kind in CI."""
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names)) >= 40
    kinds = {"killed", "aborted", "stopped", "cut", "another port", "a rank is missing", "a rank comes twice", "other options",
             "other photos", "other base", "other checkpoint", "fail", "block", "reset"}
    assert {fault.how for fault in FAULTS} == kinds
    for call in ("broadcast", "alltoall_base", "allgather", "allreduce"):
        assert {fault.how for fault in FAULTS if fault.call == call} >= {"killed", "aborted", "stopped", "fail", "block"}
        assert any(fault.call == call and fault.in_ci for fault in FAULTS)


def test_a_missing_program_is_no_lack_of_rights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CI may skip the faults of the network for lack of rights alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = network_namespaces.why_not()
    assert "unshare is not installed" in reason and not any(allowed in reason for allowed in ALLOWED_SKIPS)


def test_a_wrong_end_is_told() -> None:
    """The mutants: a code, a rank, a step, a collective, a number of lines and a time that must not pass."""
    fault = FAULTS[0]
    right = Outcome(fault, [138, -9], 8.0, ["sdtune: error: rank 1 (far): was lost at step 3 while summing over the ranks: gone", ""])
    assert right.mistakes() == []
    wrong = [Outcome(fault, [1, -9], right.seconds, right.errors),
             Outcome(fault, right.codes, right.seconds, [right.errors[0].replace("rank 1", "rank 2"), ""]),
             Outcome(fault, right.codes, right.seconds, [right.errors[0].replace("at step 3", "before the first step"), ""]),
             Outcome(fault, right.codes, right.seconds, [right.errors[0].replace("summing over", "gathering from"), ""]),
             Outcome(fault, right.codes, right.seconds, [right.errors[0] + "\n" + right.errors[0], ""]),
             Outcome(fault, right.codes, fault.timeout + GRACE_S + 0.1, right.errors)]
    assert all(len(outcome.mistakes()) == 1 for outcome in wrong)
