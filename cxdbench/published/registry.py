"""How a published row is answered: a function for each row that computes ours, what kind of answer it is, a verdict."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from cxdbench.published.rows import Row, span

Kind = Literal["mechanism", "predicted", "fitted"]
ROUGH = 1.25    # at most so far beyond the band, as a factor, is "rough"
REACH = 1.10    # a printed range is reached where each end of ours comes as near, as a factor
NOT_YET = {
    "f7a": "needs OCEAN's own accesses and, for Cylon, the cost of nested paging; neither is here yet",
    "f7b": "needs a model of Redis's accesses and of the cost of a request; not here yet",
    "f8": "needs a model of Redis's accesses and of the cost of a request; not here yet",
    "z": "the zswap study is not here yet",
}


class Holds(NamedTuple):
    """Ours for a row that is a relation: whether it holds, and the numbers that say so."""

    holds: bool
    detail: str


Ours = float | tuple[float, float] | Holds


class Entry(NamedTuple):
    """How a row is answered. `known`: why ours is known to fall outside the band; `ends`: see `reproduces`."""

    compute: Callable[[], Ours]
    kind: Kind
    why: str
    known: str
    ends: bool


REGISTRY: dict[str, Entry] = {}


def reproduces(row: str, kind: Kind, why: str, *, known: str = "", ends: bool = False):
    """Register the decorated function, which returns ours in the row's unit, as the answer to the row.

    kind: mechanism (it follows from the model, no constant was fitted for it), predicted (from constants that were
    fitted to something else) or fitted (to this very row). Outside its band such a row is a broken claim, unless
    `known` says why it is expected there. ends: the row prints the two ends of one spread, and ours must reach both.
    """
    def register(compute: Callable[[], Ours]) -> Callable[[], Ours]:
        if row in REGISTRY:
            raise ValueError(f"{row} has two answers")
        REGISTRY[row] = Entry(compute, kind, why, known, ends)
        return compute
    return register


@dataclass(frozen=True)
class Answer:
    """Ours beside one published row. `verdict`: mechanism, predicted, fitted, rough, not reproduced, not answered."""

    row: Row
    verdict: str
    why: str
    claimed: str = ""
    ours: tuple[float, float] | Holds | None = None
    broken: bool = False

    @property
    def ours_text(self) -> str:
        if self.ours is None:
            return "-"
        if isinstance(self.ours, Holds):
            return f"{'holds' if self.ours.holds else 'does not hold'}: {self.ours.detail}"
        return span(*self.ours, self.row.unit)

    def as_dict(self) -> dict[str, Any]:
        """All of it flat, the numbers as numbers and `published`, `band`, `ours` as text."""
        r, numbers = self.row, self.ours if isinstance(self.ours, tuple) and not isinstance(self.ours, Holds) else None
        return {
            "id": r.id, "source": r.source, "system": r.system, "workload": r.workload, "condition": r.condition,
            "metric": r.metric, "unit": r.unit, "low": r.low, "high": r.high, "band_low": r.band_low,
            "band_high": r.band_high, "ours_low": numbers and numbers[0], "ours_high": numbers and numbers[1],
            "holds": self.ours.holds if isinstance(self.ours, Holds) else None, "published": r.published_text,
            "band": r.band_text, "ours": self.ours_text, "verdict": self.verdict, "claimed": self.claimed,
            "why": self.why, "why_band": r.why_band,
        }


def answer_one(row: Row) -> Answer:
    """Compute ours for a row and judge it."""
    entry = REGISTRY.get(row.id)
    if entry is None:
        reason = next((why for start, why in NOT_YET.items() if row.id.startswith(start)), "no experiment for it yet")
        return Answer(row, "not answered", reason)
    ours = entry.compute()
    if not isinstance(ours, Holds):
        low, high = ours if isinstance(ours, tuple) else (ours, ours)
        ours = float(low), float(high)
        if math.isnan(ours[0]) or math.isnan(ours[1]):
            return Answer(row, "not answered", "fewer than 20 samples lie beyond the percentile", entry.kind)
    verdict = _verdict(row, ours, entry)
    outside = verdict in ("rough", "not reproduced")
    why = f"{entry.why}. {entry.known}" if outside and entry.known else entry.why
    return Answer(row, verdict, why, entry.kind, ours, broken=outside and not entry.known)


def _verdict(row: Row, ours: tuple[float, float] | Holds, entry: Entry) -> str:
    if isinstance(ours, Holds):
        return entry.kind if ours.holds else "not reproduced"
    low, high = ours
    least = -math.inf if row.band_low is None else row.band_low
    most = math.inf if row.band_high is None else row.band_high

    def within(slack: float, reach: float) -> bool:
        inside = low >= least / slack and high <= most * slack
        return inside and (not entry.ends or (low <= row.low * reach and high >= row.high / reach))

    if within(1.0, REACH):
        return entry.kind
    return "rough" if within(ROUGH, ROUGH) else "not reproduced"
