"""What no thread waits for: prefetches, and the drain that evicts between two levels of the cache."""

from math import floor

from .machine import LOADING, NOT_CACHED, Machine, Page
from .schedule import Actor, afresh, at


def spawn(m: Machine, steps) -> Actor:
    """Background work: `steps` up to its first wish is done now, by whoever spawns it."""
    actor = Actor(-1, steps)
    time, _ = next(steps)
    m.schedule.plan(actor, time)
    return actor


def ask_for_prefetches(m: Machine, page: Page, stages) -> int:
    """The pushes behind a demand fill of `page`; the ns they cost the thread."""
    prefetch = m.device.prefetch
    for ahead in range(page.number + 1, page.number + prefetch.pages + 1):
        m.counters["prefetch_asked"] += 1
        if ahead >= m.device.capacity_pages or m.unfinished_prefetches >= prefetch.queue_pages:
            m.counters["prefetch_dropped"] += 1
        else:
            m.unfinished_prefetches += 1
            spawn(m, _prefetch(m, m.page(ahead)))
    stages["install"] += prefetch.pages * prefetch.push_ns
    return prefetch.pages * prefetch.push_ns


def _prefetch(m: Machine, page: Page):
    yield afresh(m.now + round(m.device.prefetch.start_delay_us * 1000))
    if page.state != NOT_CACHED:
        m.counters["prefetch_already"] += 1
    elif m.free == 0 and not m.policy.queue:
        m.counters["prefetch_dropped"] += 1
    else:
        yield from _load(m, page)
    m.unfinished_prefetches -= 1


def _load(m: Machine, page: Page):
    m.counters["prefetch_issued"] += 1
    m.move(page, LOADING)
    page.open_fate = True
    m.log_event(-1, page.number, "prefetch")
    if m.free:
        m.free -= 1
    else:
        victim = m.page(m.policy.evict())
        if m.evict(victim, -1):
            yield at(m.program(victim, -1))
            m.move(victim, NOT_CACHED)
    ready, _, reason = m.read_step(page, -1, writes=False)
    m.counters["prefetch_charged" if reason == "charged" else "prefetch_uncharged"] += 1
    yield at(ready)
    m.install(page, -1, writes=False)


def drain(m: Machine):
    """The drain's ticks; the phase ends them with its last thread."""
    settings, cache = m.device.drain, m.device.cache_pages
    period = round(settings.period_us * 1000)
    high, stop = floor(settings.high * cache), floor(settings.low * cache)
    if settings.stop is not None:
        stop = max(stop, high - settings.stop)
    tick = m.now // period * period
    while True:
        tick += period
        yield afresh(tick)
        cached = m.policy.queue
        m.draining = m.draining or len(cached) >= high
        taken = 0
        while m.draining and len(cached) > stop and taken < settings.pages:
            _evict(m, m.page(m.policy.evict()))
            taken += 1
        if len(cached) <= stop:
            m.draining = False


def _evict(m: Machine, victim: Page) -> None:
    if not m.evict(victim, -1):
        m.free += 1
        m.frame_may_be_had()
        return

    def gone():
        m.move(victim, NOT_CACHED)
        m.free += 1
        m.frame_may_be_had()

    end = m.program(victim, -1)
    if end == m.now:
        gone()
    else:
        spawn(m, _later(end, gone))


def _later(time: int, then):
    yield at(time)
    then()
