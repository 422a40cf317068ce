"""The page's "Actors and order": whose event is next. An actor is a generator that yields its waits."""

from collections.abc import Generator
from itertools import count


def at(time: int) -> tuple[int, bool]:
    """Go on at `time`, within this event if that is now."""
    return time, False


def afresh(time: int) -> tuple[int, bool]:
    """Go on at `time`, in an event of its own."""
    return time, True


SLEEP = None  # until another actor plans for this one


class Actor:
    """Thread `thread`, or a piece of background work (-1)."""

    def __init__(self, thread: int, steps: Generator | None = None):
        self.thread, self.steps = thread, steps


class Schedule:
    def __init__(self):
        self.now = 0
        self.pending: dict[Actor, tuple[int, int, int]] = {}
        self.order = count()

    def plan(self, actor: Actor, time: int) -> None:
        assert time >= self.now and actor not in self.pending
        background = actor.thread < 0
        self.pending[actor] = (time, 0, next(self.order)) if background else (time, 1, actor.thread)

    def cancel(self, actor: Actor) -> None:
        del self.pending[actor]

    def step(self) -> None:
        """Handle the next event whole."""
        actor = min(self.pending, key=self.pending.__getitem__)
        self.now = self.pending.pop(actor)[0]
        for wish in actor.steps:
            if wish is SLEEP:
                return
            time, afresh = wish
            if time > self.now or afresh:
                self.plan(actor, time)
                return


class Lock:
    """Cylon's lock: held, free, kept for its last holder, or on its way to the designated waiter."""

    def __init__(self, schedule: Schedule, handover_ns: int, stays):
        self.schedule, self.handover_ns, self.stays = schedule, handover_ns, stays
        self.free, self.kept_for, self.designated = True, None, None
        self.waiters: list[Actor] = []

    def ask(self, x: Actor) -> bool:
        """Whether x has it at once; if not, x sleeps, has it when it wakes, and then calls `woke`."""
        if self.kept_for is x:
            self.schedule.cancel(self.designated)
            self.waiters.insert(0, self.designated)
            self.kept_for = self.designated = None
        elif not self.free:
            self.waiters.append(x)
            return False
        self.free = False
        return True

    def woke(self, w: Actor) -> None:
        assert self.designated is w
        self.kept_for = self.designated = None

    def release(self, v: Actor) -> None:
        if not self.waiters:
            self.free = True
            return
        self.designated = self.waiters.pop(0)
        self.schedule.plan(self.designated, self.schedule.now + self.handover_ns)
        if self.stays(v.thread):
            self.kept_for = v
