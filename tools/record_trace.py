"""Record what a program asks of memory behind a CPU cache, as a small page-level trace.

    python tools/record_trace.py                        # data/sqlite-orders.parquet, as shipped
    python tools/record_trace.py out.parquet --stdin in.txt -- PROGRAM ARGUMENTS

Valgrind's lackey writes every load and store to a pipe; `cxdbench.cpucache` (1 MiB, 16 ways, lines of 64 B)
answers most of them; the line fetches and write-backs that leave it are kept by page of 4 KiB, pages
renumbered densely in address order. Columns: thread (0: lackey does not tell threads apart), page, is_write.
The file's metadata says how it was made (`cxdbench.trace.recorded`). Instruction fetches, and what the
kernel itself reads and writes for the program, are not in it. Slow: each instruction is a line of lackey's.
"""
from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from cxdbench.cpucache import Filter
from cxdbench.lackey import LINE_SHIFT, PAGE_SHIFT, read_units

DATA = Path(__file__).resolve().parent.parent / "data"
PROGRAM = ["sqlite3", ":memory:"]
INSTALL = "sudo apt-get install {0}  (or: dnf install {0}, pacman -S {0})"


def need(program: str) -> None:
    if shutil.which(program) is None:
        sys.exit(f"record_trace: {program} is not installed. {INSTALL.format(program)}")


def version(program: str) -> str:
    """The beginning of what `PROGRAM --version` says; nothing where it has none."""
    found = subprocess.run([program, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = found.stdout.splitlines()
    return lines[0][:40].strip() if found.returncode == 0 and lines else ""


def record(command: list[str], stdin: Path | None) -> tuple[np.ndarray, np.ndarray, Filter, int]:
    """Run `command` under lackey -> lines that left the CPU cache, is_write, the cache, pages before it."""
    cache, left, writes, touched = Filter(), [], [], np.empty(0, np.uint64)
    reader, writer = os.pipe()
    with open(stdin or os.devnull, "rb") as source:
        lackey = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-fd={writer}"]
        run = subprocess.Popen([*lackey, *command], stdin=source, pass_fds=[writer])
    os.close(writer)
    shown = time.monotonic()
    for lines, is_write in read_units(f"/dev/fd/{reader}", LINE_SHIFT):
        touched = np.union1d(touched, lines >> np.uint64(PAGE_SHIFT - LINE_SHIFT))
        out, out_writes, _ = cache.pass_through(lines, is_write)
        left.append(out)
        writes.append(out_writes)
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{cache.accesses:,} accesses, {cache.left:,} left the CPU cache", file=sys.stderr)
    os.close(reader)
    if run.wait():
        sys.exit(f"record_trace: {command[0]} ended with status {run.returncode}: nothing was written")
    if not cache.left:
        sys.exit("record_trace: lackey reported no data accesses: nothing was written")
    return np.concatenate(left), np.concatenate(writes), cache, len(touched)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=DATA / "sqlite-orders.parquet")
    parser.add_argument("--stdin", type=Path, help="a file given to the program as its input")
    parser.add_argument("command", nargs="*", help="after --, the program and its arguments")
    options = parser.parse_args()
    if not options.command:
        options.command, options.stdin = PROGRAM, options.stdin or DATA / "sqlite-orders.sql"
    need("valgrind")
    need(options.command[0])

    lines, is_write, cache, before = record(options.command, options.stdin)
    numbers, page = np.unique(lines >> np.uint64(PAGE_SHIFT - LINE_SHIFT), return_inverse=True)
    shape = cache.cache
    made = {
        "command": " ".join(options.command) + (f" < {options.stdin.name}" if options.stdin else ""),
        "program": version(options.command[0]), "valgrind": version("valgrind"),
        "date": datetime.date.today().isoformat(),
        "cpu_cache": f"{shape.bytes} B, {shape.ways} ways, lines of {shape.line_bytes} B",
        "accesses": cache.accesses, "cpu_cache_hit_ratio": round(cache.hit_ratio, 6),
        "left": cache.left, "left_ratio": round(cache.left_ratio, 6),
        "pages_before": before, "pages": len(numbers),
    }
    thread = np.zeros(len(page), np.uint8)
    table = pa.table({"thread": thread, "page": page.astype(np.uint32), "is_write": is_write})
    table = table.replace_schema_metadata({"recorded": json.dumps(made)})
    parquet.write_table(table, options.out, compression="zstd", compression_level=19)
    print(json.dumps(made, indent=1))
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
