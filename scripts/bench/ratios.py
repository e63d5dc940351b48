"""Statistics of alternating measurements."""

from __future__ import annotations

import statistics


def summarize(ours_s: list[float], theirs_s: list[float]) -> dict[str, object]:
    """Both lists hold one figure a round (seconds a step), measured in turn.

    ratio: median over rounds of theirs / ours; above 1, sdtune is faster. The spreads are the ratios of neighbouring
    rounds of one side with itself, lowest and highest: a difference inside them is noise.
    """
    ratios = [theirs / ours for ours, theirs in zip(ours_s, theirs_s, strict=True)]
    return {
        "ratio": round(statistics.median(ratios), 4), "ratio_min": round(min(ratios), 4), "ratio_max": round(max(ratios), 4),
        "ours_s": [round(value, 5) for value in ours_s], "theirs_s": [round(value, 5) for value in theirs_s],
        "spread_ours": spread(ours_s), "spread_theirs": spread(theirs_s),
    }


def spread(values: list[float]) -> list[float]:
    """Lowest and highest ratio of neighbouring rounds of one side; [1, 1] for a single round."""
    ratios = [after / before for before, after in zip(values, values[1:])] or [1.0]
    return [round(min(ratios), 4), round(max(ratios), 4)]
