"""Published figures against ours: `rows()` of data/published.csv, `answer()` by running, `table()` for a notebook.

One file a figure holds one small function a row (`registry.reproduces`); the runs behind them are in `experiments`.
No value of ours is written down anywhere: each comes from a run or from a preset, every time.
"""
from __future__ import annotations

from collections.abc import Iterable

from cxdbench.published import fig1, fig5, fig6, settings
from cxdbench.published.registry import REGISTRY, Answer, Holds, answer_one
from cxdbench.published.rows import Row, rows, select

COLUMNS = ("id", "source", "system", "workload", "condition", "metric", "published", "band", "ours", "verdict", "why")


def answer(some: Iterable[Row] | None = None, *, figure: str | None = None) -> list[Answer]:
    """Answer rows (all by default, or those of one figure: "5", "7a", "Table I"), running what they need.

    Runs are kept for the life of the process. Raises ConfigError for a figure that no row is of.
    """
    return [answer_one(row) for row in select(rows() if some is None else some, figure)]


def broken(answers: Iterable[Answer]) -> list[Answer]:
    """The answers that are claimed as mechanism, predicted or fitted and fall outside their band."""
    return [one for one in answers if one.broken]


def table(answers: Iterable[Answer] | None = None, *, figure: str | None = None):
    """The answers as a pandas DataFrame, published, band and ours as text with units."""
    import pandas as pd
    answers = answer(figure=figure) if answers is None else answers
    return pd.DataFrame([[one.as_dict()[name] for name in COLUMNS] for one in answers], columns=list(COLUMNS))


FIGURES = (settings, fig1, fig5, fig6)  # importing a figure's file registers its rows
__all__ = ["REGISTRY", "Answer", "Holds", "Row", "answer", "broken", "rows", "table"]
