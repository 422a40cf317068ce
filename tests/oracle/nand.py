"""The page's "NAND": dies that do one thing at a time, channels that carry one page at a time."""

REMEMBERED = 64


class Channel:
    """Busy intervals [start, end), in order, apart from one another."""

    def __init__(self, model: str):
        if model not in ("event", "none"):
            raise NotImplementedError(model)
        self.conflicts, self.busy = model == "event", []

    def transfer(self, now: int, ready: int, length: int) -> int:
        """When a transfer asked for at `now` that is ready at `ready` starts."""
        if not self.conflicts or length == 0:
            return ready
        self.busy = [(a, b) for a, b in self.busy if b > now]
        start = ready
        for a, b in self.busy:
            if start + length <= a:
                break
            start = max(start, b)
        touches = any(start in (a, b) or start + length == a for a, b in self.busy)
        if len(self.busy) == REMEMBERED and not touches:
            a, b = self.busy.pop()
            start = max(ready, b)
            self.busy.append((a, start + length))
            return start
        merged = []
        for a, b in sorted([*self.busy, (start, start + length)]):
            if merged and merged[-1][1] == a:
                merged[-1] = (merged[-1][0], b)
            else:
                merged.append((a, b))
        self.busy = merged
        return start


class Nand:
    """`read` and `program` take the time now and answer when it ends; `log(thread, page, kind)` hears."""

    def __init__(self, nand, log):
        self.log = log
        self.dies, self.channels = nand.channels * nand.ways, nand.channels
        self.read_ns, self.program_ns = (
            [round(us * 1000) for us in (times if isinstance(times, tuple) else (times,))]
            for times in (nand.read_us, nand.program_us))
        self.erase_ns, self.transfer_ns = round(nand.erase_us * 1000), round(nand.transfer_us * 1000)
        self.pages_per_block = nand.pages_per_block
        self.die_avail = {die: 0 for die in range(self.dies)}
        self.programmed = {die: 0 for die in range(self.dies)}
        self.channel = [Channel(nand.channel_model) for _ in range(nand.channels)]

    def _of_type(self, page: int, times: list[int]) -> int:
        return times[page // self.dies % len(times)]

    def configured_ns(self, page: int) -> int:
        """An idle device's time for a read of `page`."""
        return self._of_type(page, self.read_ns) + self.transfer_ns

    def read(self, now: int, page: int) -> tuple[int, dict[str, int]]:
        """(ready, stages)."""
        die = page % self.dies
        begun = max(self.die_avail[die], now)
        sensed = begun + self._of_type(page, self.read_ns)
        sent = self.channel[die % self.channels].transfer(now, sensed, self.transfer_ns)
        self.die_avail[die] = sent + self.transfer_ns
        return sent + self.transfer_ns, {
            "queue": begun - now + sent - sensed, "sense": sensed - begun, "transfer": self.transfer_ns}

    def program(self, now: int, page: int, thread: int) -> int:
        """The program's end."""
        die = page % self.dies
        begun = max(self.die_avail[die], now)
        sent = self.channel[die % self.channels].transfer(now, begun, self.transfer_ns)
        end = sent + self.transfer_ns + self._of_type(page, self.program_ns)
        self.die_avail[die] = end
        self.log(thread, page, "program")
        self.programmed[die] += 1
        if self.programmed[die] == self.pages_per_block:
            self.programmed[die] = 0
            self.die_avail[die] = end + self.erase_ns
            self.log(thread, page, "erase")
        return end
