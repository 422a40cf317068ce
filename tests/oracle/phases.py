"""A run's chain of phases: write pass, warm-up passes, timed part."""

from .access import Access
from .background import drain, spawn
from .draws import WRITE
from .machine import Machine
from .schedule import Actor, afresh

MAX_WARMUP_PASSES = 16


def run_phases(m: Machine, workload, inputs) -> None:
    if inputs.write_pass and workload.start == "warm":
        regions = zip(inputs.write_first, inputs.write_length, strict=True)
        _phase(m, [[(page, True) for page in range(first, first + length)] for first, length in regions])
    elif inputs.write_pass:
        for page in range(inputs.extent_pages):
            m.page(page).written = True
    if workload.start == "warm":
        _warm_up(m, inputs)
    m.start_counting()
    _drawn_phase(m, inputs.timed)


def _warm_up(m: Machine, inputs) -> None:
    if not isinstance(inputs.warmup, str):
        _drawn_phase(m, inputs.warmup)
        return
    evictions_before, cache = m.evictions_ever, m.device.cache_pages
    for _ in range(MAX_WARMUP_PASSES):
        _drawn_phase(m, inputs.pass_accesses)
        if inputs.working_set_pages <= cache or m.evictions_ever - evictions_before >= cache:
            return


def _drawn_phase(m: Machine, quota) -> None:
    _phase(m, [[_draw(m, t) for _ in range(quota[t])] for t in range(m.threads)])


def _draw(m: Machine, t: int) -> tuple[int, bool]:
    page, writes = m.addresses[t].next()
    if m.write_threshold > 0:
        writes = m.streams[t][WRITE].happens(m.write_threshold)
    return page, writes


def _phase(m: Machine, accesses: list[list[tuple[int, bool]]]) -> None:
    """Every thread does its (page, writes); from the latest time of the phase before to all being over."""
    schedule = m.schedule
    m.phases += 1
    m.t0 = schedule.now = m.latest
    m.clock = [m.t0] * m.threads
    for t, work in enumerate(accesses):
        if work:
            actor = Actor(t)
            actor.steps = _life(m, actor, work)
            schedule.plan(actor, m.t0)
            m.running += 1
    ticks = spawn(m, drain(m)) if m.device.drain.pages else None
    while m.running or any(actor is not ticks for actor in schedule.pending):
        schedule.step()
        if not m.running and ticks in schedule.pending:
            schedule.cancel(ticks)
    m.latest = max(schedule.now, *m.clock)
    schedule.pending.clear()


def _life(m: Machine, actor: Actor, accesses):
    """A thread, from its start to when it leaves."""
    t, due = actor.thread, None
    for page, writes in accesses:
        if due is not None:
            yield afresh(due)
        access = Access(m, actor, m.page(int(page)), writes)
        latency = yield from access.run()
        m.clock[t] = access.start + latency
        due = m.clock[t] + m.think_ns
    m.running -= 1
