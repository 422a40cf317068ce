"""The core's NAND is the oracle's, also beyond the 64 busy intervals that a channel remembers."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from cxdbench.device import Device
from cxdbench.result import EVENTS

from ..oracle.nand import REMEMBERED, Nand
from . import binding
from .binding import READ, WRITTEN, Core

OPERATIONS = 400


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), types=st.integers(1, 16), transfer_ns=st.sampled_from([0, 1, 7, 40]))
def test_the_cores_nand_is_the_oracles(seed, types, transfer_ns):
    """So many dies and so long reads that far more transfers of one channel lie ahead than it remembers, with gaps.

    Every page is asked for once and none is filled: a written one is read, another one programmed.
    """
    random = Random(seed)
    device = Device(
        cache_pages=OPERATIONS, capacity_pages=2000, semantics={"unwritten_read": "program"}, nand={
            "channels": 1, "ways": 64, "transfer_us": transfer_ns / 1000, "pages_per_block": 2, "erase_us": 1.5,
            "read_us": [random.uniform(2, 9) for _ in range(types)], "program_us": random.uniform(0, 3)})
    core, logged, now, most = Core(binding.settings(device)), [], 0, 0
    core.log_into(10 * OPERATIONS)
    oracle = Nand(device.nand, lambda thread, page, kind: logged.append((now, thread, page, kind)))
    for page in random.sample(range(2000), OPERATIONS):
        now += random.choice([0, 1, 5, 30, 100])
        read = random.random() < 0.8
        core.words[page] = WRITTEN * read
        answer = core.access(now, 3, page, False)
        assert (answer.kind, answer.charged) == (READ, read)
        parts = {"queue": answer.queue_ns, "sense": answer.sense_ns, "transfer": answer.transfer_ns}
        if read:
            assert (answer.at, parts) == oracle.read(now, page)
        else:
            end = oracle.program(now, page, 3)
            assert (answer.at, parts) == (end, {"queue": 0, "sense": end - now, "transfer": 0})
        most = max(most, len(oracle.channel[0].busy))
    assert most == (REMEMBERED if transfer_ns else 0)
    events = [(t, thread, page, EVENTS[kind]) for t, thread, page, kind in core.log() if EVENTS[kind] != "fill"]
    assert events == logged
    assert core.counts()["nand_erases"] == sum(kind == "erase" for *_, kind in logged)
