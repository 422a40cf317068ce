"""The model's closed loop over the core: T threads in virtual time that do what the core's answers ask for."""

from collections import Counter, defaultdict
from heapq import heappop, heappush

from cxdbench.model.inputs import MAX_WARMUP_PASSES, prepare

from ..oracle.draws import ADDRESS, WRITE, Addresses, Stream
from .binding import (
    ASK,
    BACKGROUND,
    CACHED,
    EVICTING,
    HIT,
    IDLE,
    LOADING,
    MAP,
    NEVER,
    NO_PAGE,
    READ,
    SLEEPERS,
    STARVED,
    UNMAP,
    VICTIM,
    WAIT,
    WAKE,
    WRITTEN,
    Core,
    settings,
)


class Thread:
    """One thread: what it accesses, and which call to the core is its next (`step`)."""

    def __init__(self, inputs, seed: int, t: int):
        self.addresses = Addresses(inputs, t, Stream(seed, t, ADDRESS))
        self.write_stream, self.threshold = Stream(seed, t, WRITE), int(inputs.write_threshold)
        self.step, self.page, self.write, self.victim = "draw", NO_PAGE, False, NO_PAGE
        self.start = self.since = self.left = self.end = 0
        self.waited = False

    def next_access(self) -> tuple[int, bool]:
        page, write = self.addresses.next()
        return page, self.write_stream.happens(self.threshold) or write


class Driver:
    """A run of `workload`; `run()` does all its phases. What it saw of the timed part stays in its attributes.

    asks: hits that write are known only here, as to a CPU, and the core asks of each victim whether there were any.
    """

    def __init__(self, device, workload, asks: bool = False):
        self.device, self.workload, self.inputs = device, workload, prepare(device, workload)
        self.core, self.asks, self.dirty = Core(settings(device, asks)), asks, set()
        self.threads = [Thread(self.inputs, workload.seed, t) for t in range(self.inputs.threads)]
        self.order: list[tuple[int, int]] = []
        self.sleepers, self.starved = defaultdict(list), []
        self.live = self.latest = 0
        self.start_counting()

    def start_counting(self) -> None:
        self.latencies = {"hit": [], "miss": [], "waited": []}
        self.by_thread = {name: [0] * len(self.threads) for name in (*self.latencies, "sum_ns")}
        self.stages, self.hits_after_a_wait = Counter(), []
        self.t0, self.resident_start = self.latest, self.core.counts()["resident"]
        self.core.zero_counters()

    # phases

    def run(self) -> None:
        self.warm_up()
        self.start_counting()
        self.core.log_into(int(self.inputs.timed.sum()) * (10 + 4 * self.device.prefetch.pages) + 4096)
        self.phase(self.inputs.timed)

    def warm_up(self) -> None:
        inputs, cache = self.inputs, self.device.cache_pages
        cold = self.workload.start == "cold"
        if inputs.write_pass and cold:
            for page in range(inputs.extent_pages):
                self.core.words[page] |= WRITTEN
        elif inputs.write_pass:
            self.write_pass()
        if cold:
            return
        if not isinstance(inputs.warmup, str):
            self.phase(inputs.warmup)
            return
        began = self.core.counts()["evict_begun"]
        for _ in range(MAX_WARMUP_PASSES):
            self.phase(inputs.pass_accesses)
            if inputs.working_set_pages <= cache or self.core.counts()["evict_begun"] - began >= cache:
                return

    def write_pass(self) -> None:
        kept = [thread.next_access for thread in self.threads]
        for thread, first in zip(self.threads, self.inputs.write_first, strict=True):
            pages = iter(range(int(first), 2**32))
            thread.next_access = lambda pages=pages: (next(pages), True)
        self.phase(self.inputs.write_length)
        for thread, next_access in zip(self.threads, kept, strict=True):
            thread.next_access = next_access

    def phase(self, quota) -> None:
        start, core = self.latest, self.core
        for t, (thread, left) in enumerate(zip(self.threads, quota, strict=True)):
            thread.left, thread.end = int(left), start
            if thread.left:
                self.live += 1
                heappush(self.order, (start, t))
        core.drain(start, self.live > 0)
        while self.live or core.next() != NEVER:
            due = core.next()
            if due != NEVER and (not self.order or due <= self.order[0][0]):
                self.background(due)
            else:
                self.turn(*heappop(self.order))
        assert not self.order and not self.starved and not any(self.sleepers.values())

    # events

    def background(self, now: int) -> None:
        core, unfinished = self.core, self.core.prefetches_open()
        answer = core.tick(now)
        if answer.kind != IDLE:
            assert answer.at == now
        elif core.prefetches_open() == unfinished:
            return  # a tick of the drain with nothing to do counts for no time
        self.latest = max(self.latest, now)
        if answer.kind == ASK:
            answer = self.tell(answer, now, BACKGROUND, answer.page, False)
        if answer.kind == UNMAP:
            assert core.state(answer.victim) == EVICTING
            if answer.done:
                self.evicted(now, answer.victim)
        elif answer.kind == MAP:
            self.filled(now, BACKGROUND, answer.page, False)
        elif answer.kind == WAKE:
            self.wake(now, answer.page)
            self.wake_starved(now)

    def turn(self, now: int, t: int) -> None:
        """An event of thread t, and all its steps that fall due at once."""
        thread, due = self.threads[t], now
        while due == now:
            due = getattr(self, thread.step)(now, t, thread)
        if due < NEVER:
            heappush(self.order, (due, t))

    # A thread's steps: each returns when its next one is due, and NEVER if it sleeps, has left, or is on its way anew.

    def draw(self, now, t, thread) -> int:
        thread.page, thread.write = thread.next_access()
        thread.start, thread.waited, thread.step = now, False, "access"
        return now

    def access(self, now, t, thread) -> int:
        unseen = self.asks and thread.write and self.core.state(thread.page) == CACHED
        if unseen:
            self.dirty.add(thread.page)
        answer = self.core.access(now, t, thread.page, thread.write and not unseen)
        if answer.kind == HIT:
            if thread.waited:
                self.hits_after_a_wait.append(self.core.logged() - 1)
                self.stages["install"] += self.device.hit_ns
            return self.settle("waited" if thread.waited else "hit", now + self.device.hit_ns, t, thread)
        thread.waited = answer.kind == WAIT
        if answer.kind == WAIT:
            self.core.words[thread.page] |= SLEEPERS
            self.sleepers[thread.page].append(t)
            thread.since = now
            return NEVER
        assert self.core.state(thread.page) == LOADING
        return self.follow(answer, now, t, thread)

    def frame(self, now, t, thread) -> int:
        return self.follow(self.core.frame(now, t, thread.page, thread.write), now, t, thread)

    def victim_out(self, now, t, thread) -> int:
        self.evicted(now, thread.victim)
        return self.follow(self.core.read(now, t, thread.page, thread.write), now, t, thread)

    def fill(self, now, t, thread) -> int:
        self.filled(now, t, thread.page, thread.write)
        pushes = self.device.prefetch.pages * self.device.prefetch.push_ns
        self.stages["install"] += pushes
        return self.settle("miss", now + pushes, t, thread)

    def follow(self, answer, now, t, thread) -> int:
        """Do what the core says to a claimed page."""
        if answer.kind == STARVED:
            thread.step, thread.since = "frame", now
            self.starved.append(t)
            return NEVER
        if answer.kind == ASK:
            answer = self.tell(answer, now, t, thread.page, thread.write)
        assert answer.page == thread.page and answer.at >= now
        if answer.kind == VICTIM:
            thread.step, thread.victim = "victim_out", answer.victim
            self.stages["victim"] += answer.at - now
            return answer.at
        assert answer.kind == READ
        if answer.victim != NO_PAGE:
            self.evicted(now, answer.victim)
        parts = {"queue": answer.queue_ns, "sense": answer.sense_ns, "transfer": answer.transfer_ns}
        assert sum(parts.values()) == answer.at - now
        self.stages.update(parts)
        thread.step = "fill"
        return answer.at

    def tell(self, answer, now, t, page, write):
        """Tell of a victim what only the CPU knows."""
        victim, dirty = answer.victim, answer.victim in self.dirty
        assert self.asks and self.core.state(victim) == EVICTING
        self.dirty.discard(victim)
        return self.core.unmapped(now, t, page, write, victim, dirty)

    def settle(self, outcome, end, t, thread) -> int:
        latency = end - thread.start
        self.latencies[outcome].append(latency)
        self.by_thread[outcome][t] += 1
        self.by_thread["sum_ns"][t] += latency
        self.latest = max(self.latest, end)
        thread.left -= 1
        thread.step = "draw"
        if thread.left:  # an event of its own, also at the same time
            heappush(self.order, (end + self.workload.think_ns, t))
        else:
            thread.end = end
            self.live -= 1
            if not self.live:
                self.core.drain(end, 0)
        return NEVER

    # changes of state

    def evicted(self, now: int, victim: int) -> None:
        assert self.core.state(victim) == EVICTING
        self.changed(now, victim, self.core.evicted(now, victim))

    def filled(self, now: int, t: int, page: int, write: bool) -> None:
        assert self.core.state(page) == LOADING
        self.changed(now, page, self.core.filled(now, t, page, write))
        self.wake_starved(now)

    def changed(self, now: int, page: int, former: int) -> None:
        """The former word tells whether anybody sleeps on the page."""
        assert bool(former & SLEEPERS) == bool(self.sleepers[page])
        self.wake(now, page)

    def wake(self, now: int, page: int) -> None:
        assert not self.core.words[page] & SLEEPERS
        self.stir(self.sleepers.pop(page, []), "queue", now)

    def wake_starved(self, now: int) -> None:
        starved, self.starved = self.starved, []
        self.stir(starved, "victim", now)

    def stir(self, threads: list[int], stage: str, now: int) -> None:
        for t in threads:
            self.stages[stage] += now - self.threads[t].since
            heappush(self.order, (now, t))

    def log(self) -> list[tuple[int, int, int, int]]:
        """The core's log without the hits of accesses that had waited, which the model does not log."""
        events = self.core.log()
        for i in reversed(self.hits_after_a_wait):
            del events[i]
        return events
