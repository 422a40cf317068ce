"""The page's "Eviction policies": a queue of the CACHED pages, oldest first, and who must leave it."""

from collections import OrderedDict


class Fifo:
    def __init__(self, protect: int = 0):
        self.protect = protect
        self.queue: OrderedDict[int, None] = OrderedDict()
        self.referenced: set[int] = set()

    def install(self, page: int) -> None:
        assert page not in self.queue
        self.referenced.discard(page)
        self.queue[page] = None

    def seen(self, page: int) -> None:
        """An access found `page` cached, and the policy sees it."""

    def choose(self) -> int:
        return next(iter(self.queue))

    def evict(self) -> int | None:
        """The victim, out of the queue; None where no page is cached."""
        if not self.queue:
            return None
        page = self.choose()
        del self.queue[page]
        return page


class Lifo(Fifo):
    def choose(self) -> int:
        pages = list(self.queue)
        return pages[max(0, len(pages) - 1 - self.protect)]


class Clock(Fifo):
    def seen(self, page: int) -> None:
        self.referenced.add(page)

    def choose(self) -> int:
        while (page := next(iter(self.queue))) in self.referenced:
            self.referenced.remove(page)
            self.queue.move_to_end(page)
        return page


class Lru(Fifo):
    def seen(self, page: int) -> None:
        self.queue.move_to_end(page)


POLICIES = {"fifo": Fifo, "lifo": Lifo, "clock": Clock, "lru": Lru}
