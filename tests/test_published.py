"""Published figures beside ours: what is claimed holds, and the judge itself judges right."""
import dataclasses

import pytest

from cxdbench import published
from cxdbench.device import ConfigError
from cxdbench.published import registry
from cxdbench.published.registry import Entry, Holds, answer_one


@pytest.fixture(scope="module")
def answers():
    return {one.row.id: one for one in published.answer()}


def test_every_claim_holds(answers):
    assert [one.row.id for one in published.broken(answers.values())] == []


def test_no_excuse_is_stale(answers):
    """A row that says why ours is known to fall outside the band does fall outside it."""
    excused = [name for name, entry in registry.REGISTRY.items() if entry.known]
    assert excused and [n for n in excused if answers[n].verdict not in ("rough", "not reproduced")] == []


def test_every_row_has_an_answer_or_a_reason(answers):
    assert list(answers) == [row.id for row in published.rows()] and set(registry.REGISTRY) <= set(answers)
    for one in answers.values():
        assert one.why
        assert (one.ours is None) == (one.verdict == "not answered")


def test_the_table_holds_the_same(answers):
    table = published.table(answers.values())
    assert tuple(table.columns) == published.COLUMNS and len(table) == len(answers)
    assert table.set_index("id")["verdict"].to_dict() == {name: one.verdict for name, one in answers.items()}


ROW = dataclasses.replace(published.rows()[0], id="test", low=8.0, high=10.0, band_low=7.0, band_high=11.0, unit="us")


@pytest.mark.parametrize("ours, ends, known, verdict, is_broken", [
    (9.0, False, "", "predicted", False),
    (7.0, False, "", "predicted", False),
    (11.5, False, "", "rough", True),
    (11.5, False, "because", "rough", False),
    (20.0, False, "", "not reproduced", True),
    (20.0, False, "because", "not reproduced", False),
    ((8.0, 10.0), True, "", "predicted", False),
    ((9.0, 9.1), True, "", "rough", True),
    (float("nan"), False, "", "not answered", False),
    (Holds(True, "3 < 4"), False, "", "predicted", False),
    (Holds(False, "4 < 3"), False, "", "not reproduced", True),
])
def test_the_verdict(monkeypatch, ours, ends, known, verdict, is_broken):
    monkeypatch.setitem(registry.REGISTRY, "test", Entry(lambda: ours, "predicted", "why", known, ends))
    one = answer_one(ROW)
    assert (one.verdict, one.broken) == (verdict, is_broken)


def test_a_figure_that_is_not_there():
    with pytest.raises(ConfigError, match="figure is '99'"):
        published.answer(figure="99")
