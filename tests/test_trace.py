"""Trace files: round trips through CSV, Parquet and lackey text, and one clear sentence for each fault."""
import json
import re
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxdbench import lackey
from cxdbench._data import data_path
from cxdbench.device import ConfigError, Device
from cxdbench.run import run
from cxdbench.summary import summary
from cxdbench.trace import Accesses, read_trace, recorded
from cxdbench.workload import Trace

row = st.tuples(st.integers(0, 40), st.sampled_from([3, 7, 1000]), st.booleans())
access = st.tuples(st.sampled_from("LSM"), st.integers(0, 2**20), st.integers(1, 64))
rows, words = (st.lists(one, min_size=1, max_size=60) for one in (row, access))


def write(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def fails(path, pattern):
    """Reading fails with one sentence that names the file and matches."""
    with pytest.raises(ConfigError, match=pattern) as caught:
        read_trace(path)
    message = str(caught.value)
    assert message.startswith(f"trace {str(path)!r}") and "\n" not in message and len(message) < 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("trace")


# Round trips

@settings(deadline=None)     # the first example compiles and imports
@given(rows=rows, parquet=st.booleans())
def test_pages_round_trip(folder, rows, parquet):
    table = pd.DataFrame(rows, columns=["page", "thread", "is_write"])
    path = folder / "pages"
    table.to_parquet(path) if parquet else table.to_csv(path, index=False)
    got = read_trace(path)
    numbers = sorted(set(table.thread))
    assert got.pages.dtype == np.uint32 and got.pages.tolist() == table.page.tolist()
    assert got.thread.tolist() == [numbers.index(t) for t in table.thread]
    assert got.writes.dtype == bool and got.writes.tolist() == table.is_write.tolist()
    assert got.threads == len(numbers) and got.footprint_pages == table.page.nunique()


@settings(deadline=None)     # the first example compiles and imports
@given(addresses=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60), parquet=st.booleans())
def test_addresses_become_dense_pages(folder, addresses, parquet):
    table = pd.DataFrame({"address": np.array(addresses, np.uint64)})
    path = folder / "addresses"
    table.to_parquet(path) if parquet else table.to_csv(path, index=False)
    got = read_trace(path)
    numbers = sorted({a // 4096 for a in addresses})
    assert got.pages.tolist() == [numbers.index(a // 4096) for a in addresses]
    assert "renumbered densely" in got.note and f"{len(numbers)} pages" in got.note
    assert not got.writes.any() and got.threads == 1


def lackey_units(accesses, shift):
    """What each access touches, the slow way."""
    for kind, address, size in accesses:
        touched = sorted({byte >> shift for byte in range(address, address + size)})
        for writes in {"L": [False], "S": [True], "M": [False, True]}[kind]:
            yield from ((unit, writes) for unit in touched)


@settings(deadline=None)     # the first example compiles and imports
@given(accesses=words, shift=st.sampled_from([lackey.PAGE_SHIFT, lackey.LINE_SHIFT]), noise=st.data())
def test_lackey_round_trip(folder, accesses, shift, noise):
    lines = ["==17== Lackey, an example Valgrind tool", "==17== "]
    for kind, address, size in accesses:
        if noise.draw(st.booleans()):
            lines.append(f"I  {address:08x},3")
        lines.append(f" {kind} {address:{noise.draw(st.sampled_from(['08x', '08X']))}},{size}")
    end = noise.draw(st.sampled_from(["\n", "\r\n"]))
    path = folder / "lackey"
    path.write_text(end.join(lines) + noise.draw(st.sampled_from(["", end])), newline="")
    got = [(u, w) for units, writes in lackey.read_units(path, shift)
           for u, w in zip(units.tolist(), writes.tolist(), strict=True)]
    assert got == list(lackey_units(accesses, shift))
    pages = list(lackey_units(accesses, lackey.PAGE_SHIFT))
    numbers = sorted({p for p, _ in pages})
    trace = read_trace(path)
    assert [numbers[p] for p in trace.pages] == [p for p, _ in pages]
    assert trace.writes.tolist() == [w for _, w in pages]


def test_lackey_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(lackey, "CHUNK_BYTES", 37)
    monkeypatch.setattr(lackey, "CHUNK_UNITS", 2 * (64 + 2) + 1)
    accesses = [("LSM"[n % 3], 977 * n, 1 + n % 64) for n in range(200)]
    path = write(tmp_path, "".join(f" {k} {a:x},{s}\n" for k, a, s in accesses))
    got = [unit for units, _ in lackey.read_units(path, 6) for unit in units.tolist()]
    assert got == [unit for unit, _ in lackey_units(accesses, 6)]


def test_a_modify_reads_and_then_writes_and_a_straddle_touches_both(tmp_path):
    got = read_trace(write(tmp_path, " M 00001ffc,8\n L 00005000,4\n"))
    assert got.pages.tolist() == [0, 1, 0, 1, 2]
    assert got.writes.tolist() == [False, False, True, True, False]


def test_csv_of_yes_and_no_in_either_spelling_and_blank_lines(tmp_path):
    got = read_trace(write(tmp_path, "page,is_write\n1,true\n2,False\n\n3,1\n4,0\n"))
    assert got.pages.tolist() == [1, 2, 3, 4] and got.writes.tolist() == [True, False, True, False]


def test_the_workload_reads_a_path(tmp_path):
    assert Trace(path=write(tmp_path, "page\n4\n2\n")).load().pages.tolist() == [4, 2]


# Files at fault

def test_missing_file_and_folder(tmp_path):
    fails(tmp_path / "none.csv", "cannot be read: No such file")
    fails(tmp_path, "cannot be read: Is a directory")


@pytest.mark.parametrize("text, pattern", [
    (b"", "the file is empty"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "of another kind .*expected Parquet, CSV with a header line, or"),
    (b"\x1f\x8b\x08\0\0\0", "of another kind"),
    (json.dumps({"page": [1, 2]}, indent=1).encode(), r"first line is '\{': expected Parquet"),
    (b"one,two\n1,2\n", "first line is 'one,two': expected .* columns are address, page, thread, is_write"),
    (b"12,0\n13,1\n", "first line is '12,0': a CSV needs a header line"),
    (b"page,thread,is_write\n", "holds no accesses"),
    (b"==1== Lackey\n==1== \n", "holds no accesses"),
    (b"page,cpu,when\n1,0,3\n", "unknown columns 'cpu', 'when': known are address, page, thread, is_write"),
    (b"thread,is_write\n0,1\n", "give either page or address"),
    (b"page,address\n0,1\n", "give either page or address"),
    (b"page,page\n0,1\n", "twice"),
    (b"page,thread\n1,0\n2\n", "line 3 has 1 fields: the header has 2"),
    (b"page,thread\n1,0\n2,0,0\n", "line 3 has 3 fields: the header has 2"),
    (b"page,thread\n1,0\n\n2,\n", "line 4: thread is '': it must be a whole number"),
    (b"page\n1\n2.5\n", r"line 3: page is '2\.5': it must be a whole number, at least 0"),
    (b"page\n1\nNaN\n", "line 3: page is 'NaN'"),
    (b"address\n4096\n-8\n", "line 3: address is '-8': it must be a whole number, at least 0"),
    (b"page\n4096\n-8\n", "column 'page' holds -8: it must be at least 0"),
    (b"page,thread\n1,-1\n", "column 'thread' holds -1: it must be at least 0"),
    (b"page,is_write\n1,W\n", "line 2: is_write is 'W': allowed: 0, 1, true, false"),
    (b"page\n99999999999999999999\n", "line 2: page is '99999999999999999999'"),
    (b" L 1000,8\n L 10\n", r"line 2 is ' L 10': not a line of valgrind lackey's \(truncated"),
    (b" L 1000,8\n S 2000,\n", "line 2 is"),
    (b" L 1000,8\nhello, world\n S 2000,8\n", "line 2 is 'hello, world'"),
    (b" L 1000,8\n L 10g0,8\n", "line 2 is"),
    (b" L 1000,8\n L 1000,0\n", "line 2 is"),
    (b" L 1000,8\n L 1000,5000\n", "line 2 is"),
    (b" L ffffffffffffffff,2\n", "line 1 is"),
    (b" L 1ffffffffffffffff,2\n", "line 1 is"),
    (b"I  1000,8\n", "holds no data accesses"),
])
def test_files_at_fault(tmp_path, text, pattern):
    fails(write(tmp_path, text), pattern)


def test_threads_beyond_the_limit(tmp_path):
    body = "".join(f"{n},{n}\n" for n in range(65))
    fails(write(tmp_path, "page,thread\n" + body), r"Trace\.thread names 65 threads: at most 64")


def test_truncated_parquet_and_wrong_types(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"page": np.arange(10_000)}).to_parquet(path)
    whole = path.read_bytes()
    for size in (4, 100, len(whole) // 2, len(whole) - 1):
        fails(write(tmp_path, whole[:size], "cut"), "Parquet file is truncated or damaged")
    for table, pattern in [
        ({"page": [1.5]}, "'page' holds double: it must hold whole numbers"),
        ({"page": pd.array([1, None], "Int64")}, "'page' has 1 missing values"),
        ({"page": [-3]}, "'page' holds -3: it must be at least 0"),
        ({"page": [1], "is_write": ["yes"]}, "'is_write' holds .*string: it must hold true and false, or"),
        ({"page": [1], "is_write": [2]}, r"Trace\.writes holds 2: allowed are 0 to 1"),
        ({"page": [1], "size": [2]}, "unknown columns 'size'"),
        ({"page": np.array([], np.int64)}, "holds no accesses"),
    ]:
        pd.DataFrame(table).to_parquet(path)
        fails(path, pattern)


# The wrong unit

def test_page_numbers_named_address(tmp_path):
    rng = np.random.default_rng(1)
    for pages in (np.arange(5000), rng.integers(0, 25_165_824, 5000)):
        path = write(tmp_path, "address\n" + "\n".join(map(str, pages)) + "\n")
        fails(path, "as if they were page numbers: name the column page")


def test_bytes_named_page(tmp_path):
    fails(write(tmp_path, "page\n140737488355328\n"), "beyond 2147483647: if the column holds bytes")
    fails(write(tmp_path, "page\n4096\n8192\n"), "every page is a multiple of 4096, as if they were bytes")


def test_honest_units_pass(tmp_path):
    """Words, whole lines and the bytes of a few strings in `address`; strided and single pages in `page`."""
    rng = np.random.default_rng(2)
    for addresses in (8 * rng.integers(0, 10**6, 2000), 64 * np.arange(2000),
                      np.concatenate([8 * rng.integers(0, 10**6, 2000), np.arange(777, 999)])):
        text = "address\n" + "\n".join(map(str, addresses))
        assert len(read_trace(write(tmp_path, text))) == len(addresses)
    for pages in (64 * np.arange(2000), np.array([4096, 4096]), np.array([0, 0])):
        assert len(read_trace(write(tmp_path, "page\n" + "\n".join(map(str, pages))))) == len(pages)


# Arrays

@pytest.mark.parametrize("arrays, pattern", [
    (([],), r"Trace\.pages is empty"),
    (([-1],), r"Trace\.pages holds -1: allowed are 0 to 2147483647"),
    (([2**31],), r"Trace\.pages holds 2147483648: allowed"),
    (([1.0],), r"Trace\.pages is float64 of shape \(1,\): it must be a flat array of whole numbers"),
    (([[1]],), r"Trace\.pages is int64 of shape \(1, 1\)"),
    (([1, 2], [0]), r"Trace\.thread has 1 entries: it must have as many as pages, 2"),
    (([1, 2], None, [True] * 3), r"Trace\.writes has 3 entries"),
    (([1], [-1]), r"Trace\.thread holds -1"),
    (([1], None, [2]), r"Trace\.writes holds 2: allowed are 0 to 1"),
    ((list(range(65)), list(range(65))), r"Trace\.thread names 65 threads: at most 64"),
])
def test_arrays_at_fault(arrays, pattern):
    with pytest.raises(ConfigError, match=pattern):
        Accesses.from_arrays(*arrays)


def test_messages_name_the_file_once(tmp_path):
    path = write(tmp_path, "page,thread\n1,0\n2\n")
    with pytest.raises(ConfigError) as caught:
        Trace(path=path).load()
    assert len(re.findall("trace '", str(caught.value))) == 1


# The recorded trace

def test_the_shipped_trace_is_what_its_metadata_says():
    path = data_path("sqlite-orders.parquet")
    made, got = recorded(path), read_trace(path)
    assert path.stat().st_size < 2_000_000
    assert len(got) == made["left"]
    assert made["left"] / made["accesses"] == pytest.approx(made["left_ratio"], abs=1e-6)
    assert got.footprint_pages == made["pages"] == int(got.pages.max()) + 1
    assert got.threads == 1 and 0 < got.writes.mean() < 0.5       # what is written back was fetched
    assert made["command"] in got.note
    for figure in (f"{made['accesses']:,}", f"{made['left']:,}", f"{made['pages']:,}",
                   f"{made['cpu_cache_hit_ratio']:.2%}".replace("%", " %"), made["date"]):
        assert figure in data_path("README.md").read_text(encoding="utf-8")


def test_other_files_were_not_recorded(tmp_path):
    assert recorded(write(tmp_path, "page\n1\n")) == {}
    pd.DataFrame({"page": [1]}).to_parquet(tmp_path / "plain")
    assert recorded(tmp_path / "plain") == {}


@pytest.mark.parametrize("cache_pages", [1748, 3495])
def test_replayed_on_a_device_lru_misses_what_an_ordered_dict_misses(cache_pages):
    path = data_path("sqlite-orders.parquet")
    device = Device.named("ideal").scaled(cache_pages).with_(eviction="lru", drain="off")
    kept, misses = OrderedDict(), 0
    pages = read_trace(path).pages.tolist()
    for counted in (False, True):                              # the warm-up is one replay
        for page in pages:
            if page in kept:
                kept.move_to_end(page)
                continue
            misses += counted
            if len(kept) == cache_pages:
                kept.popitem(last=False)
            kept[page] = None
    got = summary(run(device, Trace(path=path)))
    assert (got["accesses"], got["misses"]) == (len(pages), misses)


def test_another_programs_metadata_is_no_record(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as parquet
    table = pa.table({"page": [1, 2, 5]}).replace_schema_metadata({"recorded": "not json"})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert recorded(tmp_path / "t.parquet") == {} and len(read_trace(tmp_path / "t.parquet")) == 3
