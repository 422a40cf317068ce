"""The oracle against the page: tiny runs whose every time was worked out by hand."""

import pytest

from cxdbench.device import Device
from cxdbench.model.inputs import prepare
from cxdbench.workload import Chase, Trace

from .oracle import simulate
from .oracle.draws import Stream, exponential_knots, mix, quantile_knots, threshold
from .oracle.nand import Channel
from .oracle.schedule import SLEEP, Actor, Lock, Schedule, afresh, at

HIT = 139


def device(cache_pages=4, **fields):
    return Device(cache_pages=cache_pages, capacity_pages=1024, **fields)


def replay(dev, pages, thread=None, writes=None, **fields):
    """One replay of a trace on an empty cache."""
    fields = {"start": "cold"} | fields
    workload = Trace(pages=pages, thread=thread, writes=writes, **fields)
    return simulate(dev, workload, prepare(dev, workload))


def latencies(result, outcome=None):
    return [item[1] for item in result.finished if outcome in (None, item[0])]


def evicted(result):
    return [page for _, _, page, kind in result.log if kind.startswith("evict")]


# Numbers

def test_splitmix64_gives_the_published_values():
    # Seed 1234567, the first outputs of Vigna's splitmix64.c.
    stream = Stream(0, 0, 0)
    stream.state = 1234567
    assert [stream.draw() for _ in range(3)] == [
        value >> 32 for value in (6457827717110365317, 3203168211198807973, 9817491932198370423)]


def test_streams_begin_where_the_page_says():
    assert Stream(7, 3, 2).state == mix(7 ^ mix(0x9E3779B97F4A7C15 * 15 % 2**64))


def test_quantile_draws_interpolate_in_whole_ns():
    knots = quantile_knots((1, 2, 3, 4, 5))
    assert knots[:2] == [(0, 1000), (2**31, 2000)] and knots[-1] == (2**32, 5000)

    class Fixed(Stream):
        def draw(self):
            return self.value

    stream = Fixed(0, 0, 0)
    for value, expected in ((0, 1000), (2**30, 1500), (2**31 - 1, 1999), (2**31, 2000), (2**32 - 1, 5000)):
        stream.value = value
        assert stream.quantile(knots) == expected


def test_the_exponentials_median_is_mean_times_ln_2():
    assert dict(exponential_knots(17.0))[threshold(0.5)] == 11784


# NAND

def test_an_idle_read_takes_sense_plus_transfer():
    result = replay(device(), [5])
    assert result.finished == [("miss", 6200, {"sense": 3000, "transfer": 3200}, 0, 0)]
    assert result.log == [(0, 0, 5, "fill"), (6200, 0, 5, "install")]
    assert result.run_ns == [6200]


def test_reads_on_one_die_serialise():
    result = replay(device(nand={"channels": 8, "ways": 16}), [1, 129], thread=[0, 1])
    assert latencies(result) == [6200, 12400]
    assert result.finished[1][2] == {"queue": 6200, "sense": 3000, "transfer": 3200}


def test_reads_on_one_channel_share_only_it():
    result = replay(device(nand={"channels": 8, "ways": 16}), [1, 9], thread=[0, 1])
    assert latencies(result) == [6200, 9400]
    assert result.finished[1][2] == {"queue": 3200, "sense": 3000, "transfer": 3200}


def test_channel_none_has_no_conflicts():
    result = replay(device(nand={"channel_model": "none"}), [1, 9], thread=[0, 1])
    assert latencies(result) == [6200, 6200]


def test_a_page_has_the_times_of_its_type():
    dev = device(nand={"channels": 1, "ways": 2, "read_us": [10, 20, 30], "transfer_us": 0})
    assert latencies(replay(dev, [0, 1, 2, 4, 6])) == [10_000, 10_000, 20_000, 30_000, 10_000]


def test_a_read_behind_a_program_waits_and_a_block_full_of_programs_is_erased():
    # One die, one frame. The write of 0 is evicted by the read of 1: its program is issued at 6200 + 139, its
    # transfer ends at 9539, its end is 109539, and the erase keeps the die until 1109539; read: + 6200.
    dev = device(1, nand={"channels": 1, "ways": 1, "pages_per_block": 1})
    result = replay(dev, [0, 0, 1], writes=[False, True, False])
    assert result.log == [
        (0, 0, 0, "fill"), (6200, 0, 0, "install"), (6200, 0, 0, "hit"), (6339, 0, 1, "fill"),
        (6339, 0, 0, "evict_dirty"), (6339, 0, 0, "program"), (6339, 0, 0, "erase"),
        (1_115_739, 0, 1, "install")]
    assert result.finished[2] == (
        "miss", 1_109_400, {"victim": 103_200, "queue": 1_000_000, "sense": 3000, "transfer": 3200},
        1_103_200, 103_200)
    assert result.counters["nand_erases"] == result.counters["evict_dirty_foreground"] == 1


def test_a_channel_takes_the_first_gap_that_holds_the_transfer():
    channel = Channel("event")
    assert channel.transfer(0, 100, 10) == 100
    assert channel.transfer(0, 120, 10) == 120
    assert channel.transfer(0, 105, 10) == 110      # fits exactly between the two
    assert channel.busy == [(100, 130)]
    assert channel.transfer(0, 95, 10) == 130       # the 5 ns before 100 do not hold it
    assert channel.transfer(0, 90, 10) == 90        # an earlier gap stays usable
    assert channel.transfer(0, 95, 0) == 95
    assert channel.transfer(200, 200, 10) == 200 and channel.busy == [(200, 210)]


def test_a_channel_that_remembers_64_grows_its_last():
    channel = Channel("event")
    for i in range(64):
        assert channel.transfer(0, 100 * i, 10) == 100 * i
    assert channel.transfer(0, 110, 10) == 110 and channel.busy[1] == (100, 120)      # touches: as ever
    assert channel.transfer(0, 250, 10) == 6310 and channel.busy[-1] == (6300, 6320)  # none: behind all
    assert channel.transfer(0, 7000, 10) == 7000 and channel.busy[-1] == (6300, 7010)
    assert len(channel.busy) == 64


# Accesses and states

def test_hits_follow_a_miss_and_threads_wait_for_one_fill():
    result = replay(device(), [7, 7, 7], thread=[0, 1, 1], think_ns=50)
    assert result.log == [(0, 0, 7, "fill"), (0, 1, 7, "wait"), (6200, 0, 7, "install"), (6389, 1, 7, "hit")]
    assert result.finished == [
        ("miss", 6200, {"sense": 3000, "transfer": 3200}, 0, 0),
        ("waited", 6200 + HIT, {"queue": 6200, "install": HIT}, None, None), ("hit", HIT, {}, None, None)]
    assert (result.hits, result.misses, result.waits) == ([0, 1], [1, 0], [0, 1])
    assert result.run_ns == [6200, 6389 + HIT] and result.counters["charged"] == 1


def test_a_page_being_written_back_is_waited_for_and_then_claimed():
    dev = device(1, nand={"channels": 2, "ways": 1, "program_us": 10})
    result = replay(dev, [0, 1, 0], thread=[0, 0, 1], writes=[True, False, False])
    # Thread 1 waits for 0's fill; at 6200 thread 0 first takes its frame for 1 (write-back until 19400), so
    # that thread 1 sleeps on, then claims 0, finds the frame in use by 1's read, and sleeps until it is there.
    assert result.log == [
        (0, 0, 0, "fill"), (0, 1, 0, "wait"), (6200, 0, 0, "install"), (6200, 0, 1, "fill"),
        (6200, 0, 0, "evict_dirty"), (6200, 0, 0, "program"), (6200, 1, 0, "wait"), (19_400, 1, 0, "fill"),
        (25_600, 0, 1, "install"), (25_600, 1, 1, "evict_clean"), (31_800, 1, 0, "install")]
    assert result.finished[2] == (
        "miss", 31_800, {"queue": 19_400, "victim": 6200, "sense": 3000, "transfer": 3200}, 25_600, 25_600)


def test_free_writeback_costs_nothing():
    dev = device(1, semantics={"writeback": "free"})
    result = replay(dev, [0, 1], writes=[True, False])
    assert latencies(result) == [6200, 6200] and result.counters["nand_programs"] == 0
    assert result.counters["evict_dirty_foreground"] == 1


def test_semantics_of_misses():
    write = [False, True]
    free = replay(device(semantics={"unwritten_read": "free"}), [0, 1], writes=write)
    assert latencies(free) == [0, 0] and free.counters["uncharged_unwritten"] == 2
    program = replay(device(semantics={"unwritten_read": "program"}), [0])
    assert program.finished == [("miss", 103_200, {"sense": 103_200}, None, None)]
    assert [kind for *_, kind in program.log] == ["fill", "program", "install"]
    none = replay(device(semantics={"write_miss": "none"}), [0, 1], writes=write)
    assert latencies(none) == [6200, 0] and none.counters["uncharged_write"] == 1
    written = replay(device(semantics={"unwritten_read": "free"}), [0, 1], prepare="written")
    assert latencies(written) == [6200, 6200] and written.resident_start == 0


# Eviction

@pytest.mark.parametrize(("policy", "victims"), [
    ("fifo", [0, 1, 2]),
    ({"kind": "lifo", "protect": 1}, [1, 2, 3]),
    ({"kind": "lifo", "protect": 2}, [0, 1, 2]),
    ("clock", [1, 2, 0]),
    ("lru", [1, 2, 3]),
])
def test_victims_in_order(policy, victims):
    # Pages 0 1 2 fill the cache, 0 is touched, 3 evicts, 0 is touched (in whichever state), 4 and 5 evict.
    pages = {"clock": [0, 1, 2, 0, 3, 4, 5], "lru": [0, 1, 2, 0, 3, 0, 4, 5]}
    kind = policy if isinstance(policy, str) else policy["kind"]
    assert evicted(replay(device(3, eviction=policy), pages.get(kind, [0, 1, 2, 3, 4, 5]))) == victims


def test_a_policy_that_sees_only_faults_knows_no_hits():
    for kind in ("clock", "lru"):
        dev = device(3, eviction=kind, semantics={"policy_sees": "faults"})
        assert evicted(replay(dev, [0, 1, 2, 0, 3])) == [0]


# Fault paths

def cxdvirt(**fields):
    return {"kind": "cxdvirt", "overhead_us": (2,) * 5, "serial_us": 1.5} | fields


def test_cxdvirt_serialises_only_misses_that_evict():
    dev = device(2, fault_path=cxdvirt(), nand={"transfer_us": 0})
    result = replay(dev, [0, 1, 2, 3], thread=[0, 1, 0, 1])
    # At 0 two frames are free: 2000 + 3000 each. At 5000 both evict: the second starts 1500 later.
    assert latencies(result) == [5000, 5000, 5000, 6500]
    assert result.finished[3][2] == {"lock": 1500, "exit": 2000, "sense": 3000}
    assert result.finished[3][3:] == (3500, 3500)


def cylon(**fields):
    return {"kind": "cylon", "exit_us": 4, "rest_us": (1,) * 5, "refault_probability": 0, "handover_mean": 0,
            "handover_spread": 0, "handover_us": 12, "second_exit_us": 4} | fields


def test_cylons_lock_is_held_through_the_read_and_handed_over():
    result = replay(device(fault_path=cylon()), [0, 1, 1], thread=[0, 1, 1])
    # Thread 0: 4000 exit, 1000 rest, 6200 NAND. Thread 1 asked at 4000 and has the lock at 11200 + 12000.
    assert latencies(result, "miss") == [11_200, 30_400]
    assert result.finished[1][2] == {"exit": 5000, "lock": 19_200, "sense": 3000, "transfer": 3200}
    assert latencies(result, "hit") == [HIT + 4000]


def test_cylons_next_miss_takes_a_kept_lock_first():
    result = replay(device(fault_path=cylon(handover_mean=1)), [0, 1, 2, 3], thread=[0, 0, 0, 1])
    # Thread 0 releases at 11200, asks at 15200, before thread 1's 23200: and so on until it leaves at 33600.
    assert [item[1] for item in result.finished] == [11_200, 11_200, 11_200, 33_600 + 12_000 + 1000 + 6200]


def test_a_lock_by_hand():
    schedule, has = Schedule(), []

    def life(name, lock, start, hold):
        def steps(me):
            yield afresh(start)
            if not lock.ask(me):
                yield SLEEP
                lock.woke(me)
            has.append((schedule.now, name))
            yield at(schedule.now + hold)
            lock.release(me)
        actor = Actor(len(has))
        actor.thread, actor.steps = "abcd".index(name), steps(actor)
        schedule.plan(actor, 0)
        return actor

    lock = Lock(schedule, 10, stays=lambda t: t == 0)
    for name, start in (("a", 0), ("b", 5), ("c", 6)):
        life(name, lock, start, 20)
    while schedule.pending:
        schedule.step()
    # a frees at 20, b has it at 30 and frees at 50, c has it at 60; nobody waits when c frees at 80.
    assert has == [(0, "a"), (30, "b"), (60, "c")] and lock.free


def test_a_refault_delays_the_completion_but_not_the_lock():
    path = cylon(refault_probability=1, refault_gap_us=0)
    result = replay(device(fault_path=path), [0, 1], thread=[0, 1])
    assert latencies(result, "miss") == [15_200, 34_400]
    assert result.finished[0][2] == {"exit": 5000, "refault": 4000, "sense": 3000, "transfer": 3200}


# Background

def prefetch(**fields):
    return {"pages": 1, "start_delay_us": 1, "push_ns": 100} | fields


def test_a_prefetch_is_useful_when_touched_there():
    result = replay(device(prefetch=prefetch()), [0, 1], think_ns=10_000)
    assert result.log == [
        (0, 0, 0, "fill"), (6200, 0, 0, "install"), (7200, -1, 1, "prefetch"), (13_400, -1, 1, "install"),
        (16_300, 0, 1, "hit")]
    assert result.finished[0][2] == {"sense": 3000, "transfer": 3200, "install": 100}
    assert result.finished[0][3:] == (100, 100)
    counters = result.counters
    assert counters["prefetch_useful"] == counters["prefetch_charged"] == counters["prefetch_asked"] == 1


def test_a_prefetch_is_late_when_touched_on_its_way_and_unseen_if_never():
    late = replay(device(prefetch=prefetch()), [0, 1], think_ns=2000)
    assert late.finished[1] == ("waited", 5100 + HIT, {"queue": 5100, "install": HIT}, None, None)
    assert late.counters["prefetch_late"] == 1 and late.counters["prefetch_unseen"] == 0
    unseen = replay(device(prefetch=prefetch(pages=2)), [0])
    assert unseen.counters["prefetch_unseen"] == 2 and unseen.resident_end == 3


def test_a_prefetch_is_wasted_when_evicted_dropped_beyond_the_queue_and_already_there():
    # Frames 2. 0 fills and asks for 1; 8 evicts 0 and asks for 9, which evicts 1 (untouched).
    wasted = replay(device(2, prefetch=prefetch()), [0, 8], think_ns=20_000)
    assert evicted(wasted) == [0, 1] and wasted.counters["prefetch_wasted"] == 1
    assert wasted.counters["evict_clean_background"] == wasted.counters["evict_clean_foreground"] == 1
    full = replay(device(prefetch=prefetch(pages=3, queue_pages=2)), [0])
    assert full.counters["prefetch_asked"] == 3 and full.counters["prefetch_dropped"] == 1
    end = replay(device(prefetch=prefetch(pages=3)), [1022])
    assert end.counters["prefetch_dropped"] == 2 and end.counters["prefetch_issued"] == 1
    there = replay(device(prefetch=prefetch()), [1, 0])
    assert there.counters["prefetch_already"] == 1


def test_a_prefetch_waits_for_its_dirty_victims_program():
    dev = device(1, prefetch=prefetch(), nand={"program_us": 10})
    result = replay(dev, [0], writes=[True])
    # Start at 7200, program: 3200 + 10000, read: 6200.
    assert result.log[2:] == [
        (7200, -1, 1, "prefetch"), (7200, -1, 0, "evict_dirty"), (7200, -1, 0, "program"),
        (26_600, -1, 1, "install")]


def drain(**fields):
    return {"high": 0.75, "low": 0.25, "pages": 2, "period_us": 10} | fields


def test_a_drain_runs_from_its_high_mark_to_its_low_one_some_pages_a_tick():
    result = replay(device(drain=drain()), [0, 1, 2, 3], think_ns=1000)
    # Installs at 6200, 13400, 20600 and 27800, when the thread leaves: no tick comes at 30000, nor later.
    assert result.log[-1] == (27_800, 0, 3, "install") and evicted(result) == []
    result = replay(device(drain=drain()), [0, 1, 2, 3, 3], think_ns=3000)
    # Installs at 6200, 15400, 24600, 33800: the tick at 30000 takes 0 and 1 and stops at the low mark.
    assert [(t, page) for t, thread, page, _ in result.log if thread == -1] == [(30_000, 0), (30_000, 1)]


def test_a_drains_stop_is_a_level_below_high_and_its_dirty_pages_are_programmed():
    dev = device(drain=drain(stop=1), nand={"program_us": 1})
    result = replay(dev, [0, 1, 2, 2], writes=[True] * 4, think_ns=8000)
    # Installs at 6200, 20400, 34600: at 40000 the level is 3 and goes to 2. The last access is at 42600.
    assert [(t, page, kind) for t, thread, page, kind in result.log if thread == -1] == [
        (40_000, 0, "evict_dirty"), (40_000, 0, "program")]
    assert result.counters["evict_dirty_background"] == 1 and result.resident_end == 2


# Phases

def test_warm_up_passes_until_the_cache_has_turned_over():
    dev = device(8)

    def phases(**fields):
        workload = Chase(**{"threads": 1, "accesses": 10, "prepare": "clean"} | fields)
        return simulate(dev, workload, prepare(dev, workload)).phases

    # 12 pages: the first pass evicts 4, the second 12, together at least 8; then the timed phase.
    assert phases(wss=1.5, pattern="sequential") == 3
    assert phases(wss=0.5) == 2
    assert phases(wss=0.5, prepare="written") == 3
    assert phases(start="cold") == 1
    # 9 pages under LIFO, which gives up its newest: 1 eviction, then 2 a pass, so 5 passes to reach 8.
    dev = device(8, eviction={"kind": "lifo", "protect": 0})
    assert phases(wss=9 / 8, pattern="sequential") == 6


def test_the_timed_part_counts_from_zero_and_goes_on_where_the_warm_up_stopped():
    dev = device(8)
    workload = Chase(
        wss=1, threads=1, pattern="sequential", node_bytes=4096, accesses=3, warmup=6, prepare="clean")
    result = simulate(dev, workload, prepare(dev, workload))
    assert [(page, kind) for _, _, page, kind in result.log] == [
        (6, "fill"), (6, "install"), (7, "fill"), (7, "install"), (0, "hit")]
    assert result.log[0][0] == 6 * 6200 and result.run_ns == [2 * 6200 + HIT]
    assert (result.resident_start, result.resident_end) == (6, 8)
