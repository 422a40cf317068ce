"""What a thread does: accesses, one after another, each a hit, a wait or a miss down the fault path."""

from collections import Counter

from .background import ask_for_prefetches
from .draws import FAULT, exponential_knots, quantile_knots, threshold
from .machine import EVICTING, LOADING, NOT_CACHED, Machine, Page
from .schedule import SLEEP, Actor, at


class Access:
    """One access by `actor`, from its start to its end; `run` is a generator for the schedule."""

    def __init__(self, machine: Machine, actor: Actor, page: Page, writes: bool):
        self.m, self.actor, self.page, self.writes = machine, actor, page, writes
        self.t, self.start = actor.thread, machine.now
        self.stages = Counter()

    def run(self):
        """Yields what it waits for; returns its latency."""
        m, page, waited = self.m, self.page, False
        again, m.again[self.t] = m.again[self.t], None
        while page.state in (LOADING, EVICTING):
            m.log_event(self.t, page.number, "wait")
            if page.state == LOADING:
                m.settle_fate(page, "late")
            waited, asleep = True, m.now
            page.sleepers.append(self.actor)
            yield SLEEP
            self.stages["queue"] += m.now - asleep
        if page.state == NOT_CACHED:
            return (yield from self.miss())
        m.write(page, self.writes)
        m.settle_fate(page, "useful")
        if m.device.semantics.policy_sees == "all":
            m.policy.seen(page.number)
        if waited:
            self.stages["install"] += m.device.hit_ns
            return self.finish("waited", m.now + m.device.hit_ns)
        m.log_event(self.t, page.number, "hit")
        second = round(m.device.fault_path.second_exit_us * 1000) if page is again else 0
        return self.finish("hit", m.now + m.device.hit_ns + second)

    def finish(self, outcome: str, end: int, modelled_ns: int | None = None) -> int:
        m, latency = self.m, end - self.start
        assert outcome == "hit" or sum(self.stages.values()) == latency
        charged = modelled_ns is not None
        m.finished.append((outcome, latency, dict(+self.stages),
                           latency - m.nand.configured_ns(self.page.number) if charged else None,
                           latency - modelled_ns if charged else None))
        m.levels.append((len(m.policy.queue), m.evictions_ever - m.evictions_start))
        m.by_thread[outcome][self.t] += 1
        m.by_thread["sum_ns"][self.t] += latency
        return latency

    def miss(self):
        m, page, path = self.m, self.page, self.m.device.fault_path
        m.move(page, LOADING)
        m.log_event(self.t, page.number, "fill")
        victim = yield from getattr(self, path.kind)(path)
        if victim is not None:
            issued = m.now
            yield at(m.program(victim, self.t))
            self.stages["victim"] += m.now - issued
            m.move(victim, NOT_CACHED)
        issued = m.now
        ready, stages, reason = m.read_step(page, self.t, self.writes)
        self.stages.update(stages)
        m.counters[reason] += 1
        yield at(ready)
        m.install(page, self.t, self.writes)
        delay = self.leave_cylon(path) if path.kind == "cylon" else 0
        delay += ask_for_prefetches(m, page, self.stages)
        return self.finish("miss", m.now + delay, ready - issued if reason == "charged" else None)

    def frame(self):
        """Take a frame: (whether it cost a victim, the victim if a program must end before it is gone)."""
        m = self.m
        while m.free == 0 and not m.policy.queue:
            since = m.now
            m.without_frame.append(self.actor)
            yield SLEEP
            self.stages["victim"] += m.now - since
        if m.free:
            m.free -= 1
            return False, None
        victim = m.page(m.policy.evict())
        return True, victim if m.evict(victim, self.t) else None

    # The fault paths, up to the victim's program: each returns the victim as `frame` does.

    def ideal(self, path):
        return (yield from self.frame())[1]

    def cxdvirt(self, path):
        m = self.m
        overhead = m.streams[self.t][FAULT].quantile(quantile_knots(path.overhead_us))
        took, victim = yield from self.frame()
        begun = m.now
        if took:
            begun = max(m.now, m.serial_free)
            m.serial_free = begun + min(round(path.serial_us * 1000), overhead)
        self.stages["lock"] += begun - m.now
        self.stages["exit"] += overhead
        yield at(begun + overhead)
        return victim

    def cylon(self, path):
        m, exit_ns = self.m, round(path.exit_us * 1000)
        self.stages["exit"] += exit_ns
        yield at(m.now + exit_ns)
        asked = m.now
        if not m.lock.ask(self.actor):
            yield SLEEP
            m.lock.woke(self.actor)
        self.stages["lock"] += m.now - asked
        rest = m.streams[self.t][FAULT].quantile(quantile_knots(path.rest_us))
        self.stages["exit"] += rest
        yield at(m.now + rest)
        return (yield from self.frame())[1]

    def leave_cylon(self, path) -> int:
        """Release the lock; the ns a second fault on the page just installed costs, if there is one."""
        m, stream = self.m, self.m.streams[self.t][FAULT]
        m.lock.release(self.actor)
        m.again[self.t] = self.page
        if not stream.happens(threshold(path.refault_probability)):
            return 0
        gap = stream.quantile(exponential_knots(path.refault_gap_us))
        refault = {"reentry": gap, "refault": round(path.exit_us * 1000)}
        self.stages.update(refault)
        return sum(refault.values())
