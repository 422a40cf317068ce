"""The device's state, its log and its counters, and the steps threads and background share."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from .draws import ADDRESS, FAULT, HANDOVER, WRITE, Addresses, Stream, threshold
from .eviction import POLICIES
from .nand import Nand
from .schedule import Actor, Lock, Schedule

NOT_CACHED, LOADING, CACHED, EVICTING = "NOT_CACHED", "LOADING", "CACHED", "EVICTING"


@dataclass
class Page:
    number: int
    state: str = NOT_CACHED
    dirty: bool = False
    open_fate: bool = False
    written: bool = False
    sleepers: list[Actor] = field(default_factory=list)


@dataclass
class OracleResult:
    """Of the timed part. `log`: (t_ns, thread, page, kind). `finished`, an item an access: (outcome,
    latency_ns, stages, excess_ns, residual_ns), the last two None unless a NAND read was charged.
    `counters` by name; `transitions` by (from, to). `levels`: (pages cached, evictions so far)
    after each item of `finished`. The rest lists by thread."""

    log: list[tuple[int, int, int, str]]
    finished: list[tuple]
    levels: list[tuple[int, int]]
    counters: Counter
    transitions: Counter
    hits: list[int]
    misses: list[int]
    waits: list[int]
    sum_ns: list[int]
    run_ns: list[int]
    resident_start: int
    resident_end: int
    phases: int


class Machine:
    def __init__(self, device, workload, inputs):
        self.device, self.threads = device, int(inputs.threads)
        self.think_ns, self.write_threshold = workload.think_ns, int(inputs.write_threshold)
        self.schedule = Schedule()
        self.pages: dict[int, Page] = {}
        self.free = device.cache_pages
        self.policy = POLICIES[device.eviction.kind](device.eviction.protect)
        self.nand = Nand(device.nand, self.log_event)
        self.streams = [[Stream(workload.seed, t, k) for k in (ADDRESS, WRITE, FAULT, HANDOVER)]
                        for t in range(self.threads)]
        self.addresses = [Addresses(inputs, t, self.streams[t][ADDRESS]) for t in range(self.threads)]
        self.again: list[Page | None] = [None] * self.threads
        self.serial_free = 0
        handover_us = getattr(device.fault_path, "handover_us", 0)
        self.lock = Lock(self.schedule, round(handover_us * 1000), self._stays)
        self.without_frame: list[Actor] = []
        self.unfinished_prefetches = 0
        self.draining = False
        self.running = 0
        self.evictions_ever = 0
        self.latest = self.t0 = self.phases = 0
        self.start_counting()

    def start_counting(self) -> None:
        self.log, self.finished, self.levels = [], [], []
        self.counters, self.transitions = Counter(), Counter()
        self.by_thread = defaultdict(lambda: [0] * self.threads)
        self.clock = [self.latest] * self.threads
        self.resident_start, self.evictions_start = len(self.policy.queue), self.evictions_ever
        for page in self.pages.values():
            page.open_fate = False

    def result(self) -> OracleResult:
        assert all(page.state in (NOT_CACHED, CACHED) for page in self.pages.values())
        self.counters["prefetch_unseen"] = sum(page.open_fate for page in self.pages.values())
        return OracleResult(
            self.log, self.finished, self.levels, self.counters, self.transitions,
            *(self.by_thread[name] for name in ("hit", "miss", "waited", "sum_ns")),
            run_ns=[clock - self.t0 for clock in self.clock], phases=self.phases,
            resident_start=self.resident_start, resident_end=len(self.policy.queue))

    @property
    def now(self) -> int:
        return self.schedule.now

    def page(self, number: int) -> Page:
        return self.pages.setdefault(number, Page(number))

    def log_event(self, thread: int, page: int, kind: str) -> None:
        self.log.append((self.now, thread, page, kind))

    def move(self, page: Page, state: str) -> None:
        """A change of state; who sleeps on the page wakes once it is neither loading nor evicting."""
        self.transitions[page.state, state] += 1
        page.state = state
        if state in (CACHED, NOT_CACHED):
            for sleeper in page.sleepers:
                self.schedule.plan(sleeper, self.now)
            page.sleepers = []

    def settle_fate(self, page: Page, fate: str) -> None:
        if page.open_fate:
            page.open_fate = False
            self.counters["prefetch_" + fate] += 1

    def evict(self, victim: Page, thread: int) -> bool:
        """Take `victim`, out of the queue, from the cache. Whether it stays until a program ends."""
        self.evictions_ever += 1
        self.settle_fate(victim, "wasted")
        kind = "evict_dirty" if victim.dirty else "evict_clean"
        self.log_event(thread, victim.number, kind)
        self.counters[f"{kind}_{'background' if thread < 0 else 'foreground'}"] += 1
        charged = victim.dirty and self.device.semantics.writeback == "charged"
        victim.dirty = False
        self.move(victim, EVICTING if charged else NOT_CACHED)
        return charged

    def program(self, page: Page, thread: int) -> int:
        before = len(self.log)
        end = self.nand.program(self.now, page.number, thread)
        self.counters["nand_programs"] += 1
        self.counters["nand_erases"] += len(self.log) - before - 1
        return end

    def read_step(self, page: Page, thread: int, writes: bool) -> tuple[int, dict[str, int], str]:
        """(ready, stages, how it was counted)."""
        semantics, name = self.device.semantics, page.number
        if thread < 0 and semantics.prefetch_timing == "free":
            return self.now, {}, "uncharged_prefetch"
        if writes and semantics.write_miss == "none":
            return self.now, {}, "uncharged_write"
        if not page.written and semantics.unwritten_read == "free":
            return self.now, {}, "uncharged_unwritten"
        if not page.written and semantics.unwritten_read == "program":
            page.written = True
            end = self.program(page, thread)
            return end, {"sense": end - self.now}, "charged_program"
        self.counters["nand_reads"] += 1
        return *self.nand.read(self.now, name), "charged"

    def install(self, page: Page, thread: int, writes: bool) -> None:
        self.counters["fills"] += 1
        self.policy.install(page.number)
        self.log_event(thread, page.number, "install")
        self.move(page, CACHED)
        self.write(page, writes)
        self.frame_may_be_had()

    def frame_may_be_had(self) -> None:
        """Threads without a frame look again."""
        for sleeper in self.without_frame:
            self.schedule.plan(sleeper, self.now)
        self.without_frame = []

    def write(self, page: Page, writes: bool) -> None:
        if writes:
            page.dirty = page.written = True

    def _stays(self, t: int) -> bool:
        path = self.device.fault_path
        lean = 2 * t / (self.threads - 1) - 1 if self.threads > 1 else 0
        share = min(1, max(0, path.handover_mean + path.handover_spread * lean))
        return self.streams[t][HANDOVER].happens(threshold(share))
