"""Compile and run storm.c, plain or under a sanitizer. `make sanitize` runs this file: all modes, both sanitizers."""
from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [Path(__file__).with_name("storm.c"), *sorted((ROOT / "kmod/core").glob("*.c")),
           *sorted((ROOT / "kmod/user").glob("*.c"))]
MODES = ("sigbus", "thread", "guard", "mprotect")
PLAIN = ["-O2"]
SANITIZERS = {"address": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
              "thread": ["-O1", "-g", "-fsanitize=thread"]}


def compiler() -> str | None:
    return shutil.which("gcc") or shutil.which("cc")


def build(folder: Path, flags: list[str]) -> Path:
    """The program, compiled with these flags. RuntimeError with the compiler's words where it is not."""
    target = folder / "storm"
    done = subprocess.run([compiler(), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", *flags, "-o", target, *SOURCES],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return target


def run(program: Path, mode: str, seconds: float) -> subprocess.CompletedProcess:
    return subprocess.run([program, mode, str(seconds)], capture_output=True, text=True, timeout=60 + 3 * seconds)


def main() -> None:
    if compiler() is None:
        sys.exit("sanitize: no C compiler; apt-get install gcc")
    failed = False
    for name, flags in SANITIZERS.items():
        with tempfile.TemporaryDirectory() as folder:
            program = build(Path(folder), flags)
            for mode in MODES:
                done = run(program, mode, 5)
                failed |= done.returncode != 0
                print(f"{name} sanitizer, {done.stdout.strip() or mode}", done.stderr, sep="\n" if done.stderr else "")
    sys.exit("sanitize: see above" if failed else 0)


if __name__ == "__main__":
    main()
