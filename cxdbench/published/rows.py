"""The rows of data/published.csv: what was printed, and the band within which we call a result equal."""
from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass

from cxdbench._data import data_path
from cxdbench.device import ConfigError

GROUPS = {"cfg": "Table II", "meta": "Table I", "vm": "1", "f5": "5", "f6": "6", "f7a": "7a", "f7b": "7b", "f8a": "8a",
          "f8b": "8b", "f8c": "8c", "f8d": "8d", "z": "zswap"}
NUMBERS = ("low", "high", "band_low", "band_high")


@dataclass(frozen=True)
class Row:
    """One published figure; a number that is not there is None, and a row without numbers is a relation, `predicate`."""

    id: str
    source: str
    system: str
    workload: str
    condition: str
    metric: str
    low: float | None
    high: float | None
    unit: str
    band_low: float | None
    band_high: float | None
    why_band: str
    answered_by: str
    predicate: str

    @property
    def figure(self) -> str:
        """The figure or table of the paper that the row goes with, or zswap."""
        return GROUPS[self.id.partition(".")[0]]

    @property
    def published_text(self) -> str:
        if self.low is None and self.high is None:
            return "a relation"
        return span(self.low, self.high, self.unit)

    @property
    def band_text(self) -> str:
        if self.band_low is None and self.band_high is None:
            return self.predicate or "holds"
        return span(self.band_low, self.band_high, self.unit)


def span(low: float | None, high: float | None, unit: str) -> str:
    """ "8 to 9 us", "at least 3 us", "0.38"."""
    unit = "" if unit in ("fraction", "") else f" {unit}"
    if low is None:
        return f"at most {high:.4g}{unit}"
    if high is None:
        return f"at least {low:.4g}{unit}"
    first, last = (f"{end:.4g}" if abs(end) < 1000 else f"{end:.6g}" for end in (low, high))
    return f"{first}{unit}" if first == last else f"{first} to {last}{unit}"


def rows() -> list[Row]:
    """Every row, in the file's order."""
    with open(data_path("published.csv"), encoding="utf-8", newline="") as file:
        return [Row(**{name: (float(value) if value else None) if name in NUMBERS else value
                       for name, value in line.items()}) for line in csv.DictReader(file)]


def select(some: Iterable[Row], figure: str | None) -> list[Row]:
    """The rows of one figure ("5", "7" for 7a and 7b, "Table I", "zswap"); all of them for None."""
    some = list(some)
    if figure is None:
        return some
    name = str(figure).lower().removeprefix("figure").removeprefix("fig.").removeprefix("fig").strip()
    found = [row for row in some if row.figure.lower() == name or (name.isdigit() and row.figure.rstrip("abcd") == name)]
    if not found:
        raise ConfigError(f"figure is {figure!r}: must be {', '.join(dict.fromkeys(row.figure for row in some))}")
    return found
