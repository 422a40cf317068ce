"""Recorded accesses: `read_trace` turns a file into `Accesses`, arrays of pages, threads and writes.

Formats, told apart by content: Parquet; CSV with a header line; valgrind lackey text. Columns: `page`
(numbers of 4 KiB pages from the start of the device, kept as they are) or `address` (bytes, see below),
and optionally `thread` (any whole numbers) and `is_write` (true/false or 1/0).

Byte addresses are sparse (heap, stack, mappings), a device is not: page = address // 4096, and the pages
touched are renumbered 0, 1, 2 ... in address order. Neighbours stay neighbours; gaps between mappings
vanish. `note` says so.
"""
from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from cxdbench.device import PAGE_BYTES, ConfigError

MAX_THREADS = 64
MAX_PAGES = 1 << 31
COLUMNS = ("address", "page", "thread", "is_write")
SNIFF_BYTES = 1 << 16


@dataclass(frozen=True, eq=False)
class Accesses:
    """`pages` uint32[n], `thread` uint16[n] in 0 to threads-1, `writes` bool[n], in the order recorded."""

    pages: np.ndarray
    thread: np.ndarray
    writes: np.ndarray
    note: str = ""

    @classmethod
    def from_arrays(cls, pages, thread=None, writes=None, note: str = "") -> Accesses:
        """Check and narrow. Threads are renumbered 0 to T-1 in order of their numbers. Raises ConfigError."""
        pages = _whole(pages, "pages")
        if len(pages) == 0:
            raise ConfigError("Trace.pages is empty: give at least one access")
        _within(pages, "pages", 0, MAX_PAGES - 1)
        thread = np.zeros(len(pages), np.uint16) if thread is None else _whole(thread, "thread")
        writes = np.zeros(len(pages), np.bool_) if writes is None else _whole(writes, "writes")
        for name, column in (("thread", thread), ("writes", writes)):
            if len(column) != len(pages):
                raise ConfigError(f"Trace.{name} has {len(column)} entries: it must have as many as pages, "
                                  f"{len(pages)}")
        _within(thread, "thread", 0, 2**63 - 1)
        _within(writes, "writes", 0, 1)
        numbers, thread = _dense(thread)
        if len(numbers) > MAX_THREADS:
            raise ConfigError(f"Trace.thread names {len(numbers)} threads: at most {MAX_THREADS}")
        return cls(pages.astype(np.uint32), thread.astype(np.uint16), writes.astype(np.bool_), note)

    def __len__(self) -> int:
        return len(self.pages)

    @cached_property
    def threads(self) -> int:
        """Number of threads."""
        return int(self.thread.max()) + 1

    @cached_property
    def footprint_pages(self) -> int:
        """Number of different pages."""
        return len(_dense(self.pages)[0])


def read_trace(path: str | Path) -> Accesses:
    """Read a Parquet, CSV or lackey file. Raises ConfigError: one sentence naming the file and its fault."""
    try:
        kind = _sniff(Path(path))
        accesses = _from_lackey(path) if kind == "lackey" else _from_columns(*_READERS[kind](path))
    except ConfigError as error:
        raise ConfigError(f"trace {str(path)!r}: {error}") from None
    except OSError as error:
        raise ConfigError(f"trace {str(path)!r} cannot be read: {error.strerror or error}") from None
    made = recorded(path)
    return replace(accesses, note=f"{accesses.note}; recorded: {json.dumps(made)}") if made else accesses


def _sniff(path: Path) -> str:
    """parquet, csv or lackey, from the file's first bytes."""
    with open(path, "rb") as file:
        head = file.read(SNIFF_BYTES)
    if not head:
        raise ConfigError("the file is empty")
    if head.startswith(b"PAR1"):
        return "parquet"
    wanted = "expected Parquet, CSV with a header line, or valgrind lackey text"
    if b"\0" in head or head.startswith(b"\x89PNG") or any(byte < 9 for byte in head[:512]):
        raise ConfigError(f"the file is of another kind (it begins with {head[:8]!r}); {wanted}")
    for line in head.splitlines():
        if line[:2] in (b"==", b"--") or not line.strip():
            continue
        if line[:3] in (b"I  ", b" L ", b" S ", b" M "):
            return "lackey"
        names = _names(line)
        if set(names) & set(COLUMNS):
            return "csv"
        shown = line[:60].decode("utf-8", "replace")
        if all(name.strip().lstrip("-").isdigit() for name in names):
            raise ConfigError(f"the first line is {shown!r}: a CSV needs a header line with page or "
                              "address, and may have thread and is_write")
        raise ConfigError(f"the first line is {shown!r}: {wanted}; a CSV's columns are {', '.join(COLUMNS)}")
    raise ConfigError(f"the file holds no accesses; {wanted}")


def _names(line: bytes) -> list[str]:
    text = line.decode("utf-8-sig", "replace")
    return [name.strip().strip('"') for name in text.split(",")]


def _check_columns(names: list[str]) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise ConfigError(f"unknown columns {', '.join(map(repr, unknown))}: known are {', '.join(COLUMNS)}")
    if len(set(names)) != len(names):
        raise ConfigError(f"a column is there twice: {', '.join(names)}")
    if ("page" in names) == ("address" in names):
        raise ConfigError(f"the columns are {', '.join(names)}: give either page or address")


def recorded(path: str | Path) -> dict:
    """How tools/record_trace.py made a file (command, versions, both ratios); empty for any other file."""
    import pyarrow.parquet as parquet
    if _sniff(Path(path)) != "parquet":
        return {}
    try:
        made = json.loads((parquet.read_schema(path).metadata or {}).get(b"recorded", b"{}"))
    except ValueError:
        return {}  # another program's word
    return made if isinstance(made, dict) else {}


def _read_csv(path: str | Path) -> tuple[dict[str, np.ndarray], list[str]]:
    import pyarrow as pa
    import pyarrow.csv as csv
    with open(path, "rb") as file:
        first = file.readline()
        while not first.strip():
            first = file.readline()
    names = _names(first)
    _check_columns(names)
    types = {"address": pa.uint64(), "page": pa.int64(), "thread": pa.int64(), "is_write": pa.bool_()}
    try:
        table = csv.read_csv(path, csv.ReadOptions(column_names=names, skip_rows=_header_rows(path)),
                             convert_options=csv.ConvertOptions(column_types=types, null_values=[]))
    except pa.ArrowInvalid as error:
        raise ConfigError(_first_bad_line(path, names) or f"the CSV cannot be read: {error}") from None
    return {name: table[name].to_numpy() for name in names}, names


def _header_rows(path: str | Path) -> int:
    """Lines up to and with the header; blank ones before it count."""
    with open(path, "rb") as file:
        return next(number for number, line in enumerate(file, 1) if line.strip())


def _first_bad_line(path: str | Path, names: list[str]) -> str:
    """What is wrong with the first line of a CSV that cannot be read, or nothing if none is found."""
    rows = _header_rows(path)
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.strip().split(",")
            if number <= rows or fields == [""]:
                continue
            if len(fields) != len(names):
                return f"line {number} has {len(fields)} fields: the header has {len(names)}"
            for name, field in zip(names, fields, strict=True):
                field = field.strip().strip('"')
                if name == "is_write":
                    if field.lower() not in ("0", "1", "true", "false"):
                        return f"line {number}: is_write is {field!r}: allowed: 0, 1, true, false"
                elif not field.isdecimal() or int(field) >= 2**64:
                    return f"line {number}: {name} is {field!r}: it must be a whole number, at least 0"
    return ""


def _read_parquet(path: str | Path) -> tuple[dict[str, np.ndarray], list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as parquet
    try:
        names = parquet.read_schema(path).names
        _check_columns(names)
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0][:100]
        raise ConfigError(f"the Parquet file is truncated or damaged ({reason})") from None
    for name in names:
        column = table[name]
        if column.null_count:
            raise ConfigError(f"column {name!r} has {column.null_count} missing values: it must have none")
        flag = name == "is_write"
        if not (pa.types.is_integer(column.type) or (flag and pa.types.is_boolean(column.type))):
            raise ConfigError(f"column {name!r} holds {column.type}: it must hold "
                              + ("true and false, or 1 and 0" if flag else "whole numbers"))
    return {name: table[name].to_numpy() for name in names}, names


_READERS = {"csv": _read_csv, "parquet": _read_parquet}


def _from_columns(columns: dict[str, np.ndarray], names: list[str]) -> Accesses:
    for name in names:
        if len(columns[name]) == 0:
            raise ConfigError("the file holds no accesses")
        if name != "is_write" and columns[name].dtype.kind == "i" and columns[name].min() < 0:
            raise ConfigError(f"column {name!r} holds {columns[name].min()}: it must be at least 0")
    if "address" in columns:
        addresses = columns["address"].astype(np.uint64)
        _check_addresses(addresses)
        pages, note = _renumber(addresses // PAGE_BYTES)
    else:
        pages, note = columns["page"], "page numbers as recorded"
        _check_pages(pages)
    return Accesses.from_arrays(pages, columns.get("thread"), columns.get("is_write"), note)


def _check_addresses(addresses: np.ndarray) -> None:
    """Page numbers under the name address: all low bits are equally common in them, unlike in bytes."""
    different = _dense(addresses)[0]
    aligned = np.count_nonzero(different % 8 == 0) / len(different)
    if len(different) >= 256 and aligned < 1 / 6:
        raise ConfigError(f"only {aligned:.0%} of the {len(different)} addresses are multiples of 8, as if "
                          "they were page numbers: name the column page if they are; if they are bytes, "
                          "round each down to its line of 64 B, which is what a device sees")


def _check_pages(pages: np.ndarray) -> None:
    """Byte addresses under the name page: beyond any device, or all multiples of 4096."""
    if pages.max() >= MAX_PAGES:
        raise ConfigError(f"page {pages.max()} is beyond {MAX_PAGES - 1}: if the column holds bytes, name it "
                          "address")
    if int(np.bitwise_or.reduce(pages)) % PAGE_BYTES == 0 and pages.max() > pages.min():
        raise ConfigError(f"every page is a multiple of {PAGE_BYTES}, as if they were bytes: name the column "
                          "address")


def _from_lackey(path: str | Path) -> Accesses:
    from cxdbench import lackey
    try:
        parts = list(lackey.read_units(path, lackey.PAGE_SHIFT))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not parts:
        raise ConfigError("the file holds no data accesses (record with --trace-mem=yes)")
    pages, note = _renumber(np.concatenate([units for units, _ in parts]))
    return Accesses.from_arrays(pages, None, np.concatenate([writes for _, writes in parts]),
                                f"valgrind lackey, unfiltered, threads not told apart; {note}")


def _renumber(pages: np.ndarray) -> tuple[np.ndarray, str]:
    numbers, dense = _dense(pages)
    return dense, (f"byte addresses: {len(numbers)} pages between {int(numbers[0]) * PAGE_BYTES:#x} and "
                   f"{(int(numbers[-1]) + 1) * PAGE_BYTES:#x}, renumbered densely in address order")


def _dense(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values, rising, and each entry's place among them; by hashing, as sorting is slow."""
    import pandas as pd
    codes, numbers = pd.factorize(values, sort=True)
    return np.asarray(numbers), codes


def _whole(values, name: str) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim != 1 or (column.size and column.dtype.kind not in "iub"):
        raise ConfigError(f"Trace.{name} is {column.dtype} of shape {column.shape}: it must be a flat "
                          "array of whole numbers")
    return column


def _within(column: np.ndarray, name: str, low: int, high: int) -> None:
    for value in (int(column.min()), int(column.max())):
        if not low <= value <= high:
            raise ConfigError(f"Trace.{name} holds {value}: allowed are {low} to {high}")
