"""The core's settings: what is refused and by which name, what may be changed; and that ctypes sees its structs."""

import ctypes as c

import pytest

from . import binding
from .binding import CACHED, HIT, NEVER, READ, Config, Core, library, members

GOOD = {
    "cache_pages": 4, "capacity_pages": 16, "prefetch_queue": 8, "drain_period_ns": 1000, "channels": 1, "ways": 2,
    "block_pages": 4, "transfer_ns": 40, "read_types": 1, "program_types": 1, "read_ns": (300,), "program_ns": (700,)}
STAY = ["cache_pages", "capacity_pages", "policy", "protect", "sees_hits", "asks", "prefetch_queue", "channels", "ways"]
LONG = 2**40
BAD = {
    "cache_pages": [0, 2**24, 17], "capacity_pages": [0, 3, 2**31], "policy": [4], "protect": [2**24 + 1], "sees_hits": [2], "asks": [2],
    "unwritten": [3], "writeback_free": [2], "write_miss_none": [2], "prefetch_free": [2], "prefetch_pages": [257],
    "prefetch_queue": [0, 2**16 + 1], "prefetch_delay_ns": [LONG], "drain_pages": [2**24 + 1],
    "drain_high": [2**24 + 1], "drain_stop": [2**24 + 1], "drain_period_ns": [0, 999, LONG], "channels": [0, 65],
    "ways": [0, 65], "channel_model": [2], "block_pages": [0, 2**20 + 1], "transfer_ns": [LONG], "erase_ns": [LONG],
    "read_types": [0, 17], "program_types": [0, 17], "read_ns": [(LONG,)], "program_ns": [(LONG,)]}


def config(**changes) -> Config:
    return Config(**GOOD | changes)


def field(number: int) -> str:
    return library().cxd_field(number).decode()


@pytest.mark.parametrize(("struct", "name"), [
    (binding.Config, "cxd_config"), (binding.Counters, "cxd_counters"), (binding.Event, "cxd_event"),
    (binding.Answer, "cxd_answer")])
def test_ctypes_has_the_structs_of_c(struct, name):
    assert [field[0] for field in struct._fields_] == members(name)
    sizes = dict(zip(("cxd_config", "cxd_counters", "cxd_event", "cxd_answer"),
                     (c.c_uint64 * 4).in_dll(library(), "test_sizes"), strict=True))
    assert c.sizeof(struct) == sizes[name]


def test_every_field_has_its_name_and_number():
    assert [field(number + 1) for number in range(len(BAD))] == members("cxd_config") == list(BAD)
    assert {field(0), field(-1), field(len(BAD) + 1)} == {"no field"}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_field_out_of_range_is_refused_by_its_number(name, value):
    assert library().cxd_check(config()) == 0
    number = library().cxd_check(config(**{name: value}))
    expected = "capacity_pages" if (name, value) == ("cache_pages", 17) else name
    assert field(number) == expected


def test_lifo_must_leave_a_page_unprotected():
    lifo = {"policy": 1, "protect": 4}
    assert field(library().cxd_check(config(**lifo))) == "protect"
    assert library().cxd_check(config(**lifo | {"protect": 3})) == 0
    assert library().cxd_check(config(protect=1024)) == 0, "the other policies do not look at it"


def test_only_types_in_use_are_checked():
    assert library().cxd_check(config(read_ns=(300, LONG))) == 0
    assert field(library().cxd_check(config(read_ns=(300, LONG), read_types=2))) == "read_ns"


@pytest.mark.parametrize("name", STAY)
def test_what_must_stay_is_refused_and_nothing_changes(name):
    core = Core(config())
    other = config(**{name: getattr(config(), name) + 1}, transfer_ns=0, read_ns=(1,))
    assert field(core.change(other)) == name
    assert core.access(0, 0, 0, 0).at == 340


def test_a_change_is_checked():
    core = Core(config())
    assert field(core.change(config(erase_ns=LONG))) == "erase_ns"


def fill(core: Core, now: int, page: int, write: bool = False) -> int:
    """One miss on a device at rest; how long it took."""
    answer = core.access(now, 0, page, write)
    if answer.kind == binding.VICTIM:
        core.evicted(answer.at, answer.victim)
        answer = core.read(answer.at, 0, page, write)
    elif answer.victim != binding.NO_PAGE:
        core.evicted(now, answer.victim)
    assert answer.kind == READ
    core.filled(answer.at, 0, page, write)
    assert core.state(page) == CACHED
    assert core.access(answer.at, 0, page, write).kind == HIT
    return answer.at - now


def test_times_and_semantics_change_at_work():
    core = Core(config())
    assert fill(core, 0, 0) == 340
    assert core.change(config(read_ns=(500,), transfer_ns=60, program_ns=(900,))) == 0
    assert fill(core, 10_000, 1, write=True) == 560
    assert [fill(core, 20_000 * page, page) for page in (2, 3, 4)] == [560] * 3
    assert fill(core, 100_000, 5) == 960 + 560, "the dirty page is programmed first, on the die that is read next"
    assert core.change(config(unwritten=1)) == 0
    assert fill(core, 200_000, 6) == 0
    assert core.change(config(prefetch_pages=1, prefetch_free=1)) == 0
    assert core.next() == NEVER
    fill(core, 300_000, 7)
    assert core.next() == 300_000 + 340 and core.prefetches_open() == 1


def test_nothing_is_prefetched_from_the_limit_on():
    for limit, there in ((4, 2), (2**31, 3)):  # after page 1: pages 2, 3 and 4
        core = Core(config(prefetch_pages=3))
        core.limit(limit)
        fill(core, 0, 1)
        assert core.prefetches_open() == there and core.counts()["prefetch_dropped"] == 3 - there


def test_the_drain_starts_and_ends_as_it_is_told():
    core = Core(config(drain_pages=4, drain_high=2, drain_stop=1))
    for page in range(3):
        fill(core, 0, page)
    assert core.next() == NEVER
    core.drain(5_500, 1)
    core.drain(5_600, 1)
    assert core.next() == 6_000 and core.tick(5_999).kind == binding.IDLE
    for page in (0, 1):
        answer = core.tick(6_000)
        assert (answer.kind, answer.victim, answer.done) == (binding.UNMAP, page, 1)
        core.evicted(6_000, page)
    assert core.tick(6_500).kind == binding.IDLE and core.next() == 7_000
    core.drain(6_600, 0)
    core.drain(6_700, 1)
    assert core.next() == 7_000, "switched off and on again, it ticks as it did"
    core.drain(6_800, 0)
    assert core.tick(7_000).kind == binding.IDLE and core.next() == NEVER


def test_a_first_write_is_noted_only_while_the_page_is_there():
    core = Core(config())
    assert core.written(0) == 0 and core.words[0] == 0
    fill(core, 0, 0)
    assert core.written(0) == 1 and core.words[0] == CACHED | binding.DIRTY | binding.WRITTEN


def test_counters_are_zeroed_but_for_resident():
    core = Core(config())
    fill(core, 0, 0)
    assert core.counts()["claims"] == 1
    core.zero_counters()
    assert {name: n for name, n in core.counts().items() if n} == {"resident": 1}
    assert core.pages_by_state() == [15, 0, 1, 0, 0]
