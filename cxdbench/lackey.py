"""Valgrind lackey's text (--tool=lackey --trace-mem=yes --log-file=FILE) to unit numbers, in Numba.

A unit is a page (shift 12) or a CPU-cache line (shift 6). ` L address,size` reads, ` S` writes, ` M`
reads and then writes, and each touches every unit that it overlaps; `I` lines (instruction fetches) and
valgrind's own `==` and `--` lines are skipped. Addresses are hexadecimal, sizes decimal. Lackey runs one
thread at a time and does not name it.
"""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cxdbench.jit import kernel

PAGE_SHIFT = 12
LINE_SHIFT = 6
MAX_SIZE = 4096                # lackey's own limit on one access is far below this
CHUNK_BYTES = 1 << 24
CHUNK_UNITS = 1 << 22
DONE, FULL, BAD = 0, 1, 2


@kernel
def _parse(text, at, end, line, shift, units, writes):
    """Parse whole lines of `text` from `at`: (status, where it stopped, lines read so far, units written).

    DONE: everything up to `end`, or to the last newline before it. FULL: the output wants emptying. BAD: a
    line that is not lackey's begins there.
    """
    count = np.int64(0)
    room = len(units) - 2 * ((MAX_SIZE >> shift) + 2)
    while at < end:
        stop = at
        while stop < end and text[stop] != 10:
            stop += 1
        if stop == end:
            break
        if count > room:
            return FULL, at, line, count
        last = stop - 1 if stop > at and text[stop - 1] == 13 else stop
        first = text[at] if last > at else 0
        if first == 32:                                             # ' '
            if last - at < 6 or text[at + 2] != 32:
                return BAD, at, line, count
            kind = text[at + 1]
            if kind != 76 and kind != 83 and kind != 77:            # L S M
                return BAD, at, line, count
            i = at + 3
            address = np.uint64(0)
            digits = 0
            while i < last and text[i] != 44:                       # ','
                c = text[i]
                if 48 <= c <= 57:
                    digit = c - 48
                elif 97 <= c <= 102:
                    digit = c - 87
                elif 65 <= c <= 70:
                    digit = c - 55
                else:
                    return BAD, at, line, count
                address = (address << np.uint64(4)) | np.uint64(digit)
                digits += 1
                i += 1
            i += 1
            size = np.int64(0)
            if digits == 0 or digits > 16 or i >= last or last - i > 4:
                return BAD, at, line, count
            while i < last:
                c = text[i]
                if c < 48 or c > 57:
                    return BAD, at, line, count
                size = size * 10 + (c - 48)
                i += 1
            if size == 0 or size > MAX_SIZE:
                return BAD, at, line, count
            low = address >> np.uint64(shift)
            high = (address + np.uint64(size - 1)) >> np.uint64(shift)
            span = np.int64(high - low) + 1
            if span < 1 or span > (MAX_SIZE >> shift) + 1:          # wrapped around the address space
                return BAD, at, line, count
            if kind != 83:
                for k in range(span):
                    units[count] = low + np.uint64(k)
                    writes[count] = False
                    count += 1
            if kind != 76:
                for k in range(span):
                    units[count] = low + np.uint64(k)
                    writes[count] = True
                    count += 1
        elif first == 61 or first == 45:                            # '==' and '--'
            if last - at < 2 or text[at + 1] != first:
                return BAD, at, line, count
        elif first != 73 and last > at:                             # 'I'
            return BAD, at, line, count
        line += 1
        at = stop + 1
    return DONE, at, line, count


def read_units(path: str | Path, shift: int = PAGE_SHIFT) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The file's accesses as (unit numbers uint64[n], writes bool[n]), in order, a few million at a time.

    Measured on one core of a virtual EPYC: 9 million lines (150 MB) a second.
    Raises ValueError that names the line where the text is not lackey's.
    """
    units, writes = np.empty(CHUNK_UNITS, np.uint64), np.empty(CHUNK_UNITS, np.bool_)
    line, rest = 0, b""
    with open(path, "rb") as file:
        while True:
            block = file.read(CHUNK_BYTES)
            data = rest + block if block else rest + b"\n" * (not rest.endswith(b"\n"))
            text, at, status = np.frombuffer(data, np.uint8), 0, FULL
            while status == FULL:
                status, at, line, count = _parse(text, at, len(text), line, shift, units, writes)
                if count:
                    yield units[:count].copy(), writes[:count].copy()
            if status == BAD:
                shown = data[at:at + 60].split(b"\n")[0].decode("utf-8", "replace")
                raise ValueError(f"line {line + 1} is {shown!r}: not a line of valgrind lackey's "
                                 "(truncated, or mixed with the program's output? record with --log-file)")
            if not block:
                return
            rest = data[at:]
