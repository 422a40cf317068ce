"""NAND through the public face: what queues on what."""
import pytest

import cxdbench as cxd


def device(**changes):
    base = cxd.Device(cache_pages=8, capacity_pages=256, hit_ns=100, nand={"channels": 2, "ways": 2})
    return base.with_(changes)


def latencies(dev, pages, thread=None, writes=None):
    """Latency of each access, by (thread, page), ns, from an empty cache."""
    trace = cxd.Trace(pages=pages, thread=thread, writes=writes, start="cold")
    log = cxd.event_log(cxd.run(dev, trace, log=True))
    fills = log[log.kind == "fill"].groupby(["thread", "page"]).t_ns.first()
    installs = log[log.kind == "install"].groupby(["thread", "page"]).t_ns.first()
    return (installs - fills).to_dict()


def test_an_idle_read_is_t_r_and_transfer():
    result = cxd.run(device(), cxd.Trace(pages=[0], start="cold"))
    assert int(result["sum_ns"].sel(outcome="miss")) == 6200
    assert cxd.summary(cxd.run(device(), cxd.Chase(threads=1, wss=4, node_bytes=4096)))["miss_p50_ns"] == 6200


def test_reads_on_one_die_serialise():
    assert latencies(device(), [0, 4], [0, 1]) == {(0, 0): 6200, (1, 4): 12_400}  # 4 dies: page 4 is on die 0


def test_reads_on_one_channel_share_it():
    assert latencies(device(), [0, 2], [0, 1]) == {(0, 0): 6200, (1, 2): 9400}  # dies 0 and 2 are on channel 0


def test_channels_and_dies_overlap():
    assert latencies(device(), [0, 1], [0, 1]) == {(0, 0): 6200, (1, 1): 6200}


def test_without_channel_conflicts_dies_overlap_on_one_channel():
    assert latencies(device(**{"nand.channel_model": "none"}), [0, 2], [0, 1]) == {(0, 0): 6200, (1, 2): 6200}


def test_a_read_behind_a_program_waits():
    # One frame: page 4's claim evicts dirty page 0, both on die 0; the read starts once the program has ended.
    one = device(cache_pages=1)
    result = latencies(one, [0, 4], writes=[True, False])
    assert result == {(0, 0): 6200, (0, 4): 3200 + 100_000 + 6200}


def test_a_full_block_of_programs_is_followed_by_an_erase():
    # Programs of pages 0 and 4 fill a two-page block of die 0; the read of page 8, on that die, waits for the erase.
    pages, writes = [0, 4, 8], [True, True, False]
    plain = latencies(device(cache_pages=1), pages, writes=writes)
    erasing = latencies(device(cache_pages=1, **{"nand.pages_per_block": 2}), pages, writes=writes)
    assert erasing[0, 8] - plain[0, 8] == 1_000_000 and erasing[0, 4] == plain[0, 4]


def test_page_types_have_their_own_times():
    dev = device(**{"nand.read_us": (10, 20, 30)})
    assert latencies(dev, [0, 4, 8, 12]) == {(0, p): 1000 * t + 3200 for p, t in zip([0, 4, 8, 12], [10, 20, 30, 10],
                                                                                     strict=True)}
    assert dev.configured_ns() == pytest.approx(23_200)
