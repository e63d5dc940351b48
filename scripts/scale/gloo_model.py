"""What Gloo needs for a step on two hosts with one narrow cable between them: as step_model.py, with Gloo's ways to send.

An all-reduce is a ring: each direction of the cable carries 2 (N - 1) / N of the bucket. A sum for one owner is gathered there: the other
host's ranks each send theirs. A broadcast crosses once.
"""

from __future__ import annotations

from scale.step_model import Step


def crossing(size: float, ranks: int, owner: int, sums: bool) -> tuple[float, float]:
    """Bytes from the first host to the second, and back. Half of the ranks are on each, the first ones on the first."""
    if owner < 0:
        both = 2 * (ranks - 1) / ranks * size
        return both, both
    bytes_over = size * (ranks // 2 if sums else 1)
    owner_is_first = owner < ranks // 2
    return (0.0, bytes_over) if owner_is_first == sums else (bytes_over, 0.0)


def step_seconds(step: Step, ranks: int, rate: float, parcels: list[tuple[int, int]]) -> float:
    """`step.update`: as this rank does it. `parcels`: bytes and owner of each piece of the weights. `rate`: of the cable, each direction.

    One collective after the other (train/dist/collectives.h), so a sum for one owner leaves the other direction idle.
    """
    over = 0.0
    for bucket in step.buckets:
        over = max(over, step.backward * bucket.ready) + max(crossing(bucket.bytes, ranks, bucket.owner, True)) / rate
    end = step.forward + max(step.backward, over) + step.update
    if step.buckets[0].owner < 0:
        return end
    return end + sum(max(crossing(size, ranks, owner, False)) for size, owner in parcels) / rate
