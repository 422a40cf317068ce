#!/usr/bin/env python3
"""Make .venv, install cxdbench into it and warm the Numba cache; do only what is out of date.

    python3 tools/bootstrap.py [--extras dev,bench]

Needs a Python with its standard library and nothing else. The project has its own environment, so a system
Python that forbids installing (PEP 668) is no obstacle, and neither is one without ensurepip.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
STAMP = VENV / "cxdbench-setup.json"
INPUTS = ["pyproject.toml", "setup.py", "tools/bootstrap.py"]
OLDEST = (3, 11)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extras", default="", help="comma-separated extras of pyproject.toml")
    asked = {extra for extra in parser.parse_args().extras.split(",") if extra}
    if sys.version_info < OLDEST:
        sys.exit(
            f"cxdbench needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and {sys.executable} is "
            f"{sys.version.split()[0]}: run `make PYTHON=/path/to/newer/python3 ...`"
        )
    stamp = read_stamp()
    if stamp.get("environment") != environment_key():
        make_venv()
        stamp = {"environment": environment_key()}
    # Extras once asked for stay: `make lab` after `make test` neither drops nor forgets the dev tools.
    extras = sorted(asked | set(stamp.get("extras", [])))
    # The C library is compiled by the installation, so its sources are inputs of it.
    inputs = digest([*(ROOT / name for name in INPUTS), *sorted((ROOT / "kmod").glob("[cu]*/*.[ch]"))])
    if (stamp.get("inputs"), stamp.get("extras")) != (inputs, extras):
        install(extras)
        stamp |= {"inputs": inputs, "extras": extras}
        STAMP.write_text(json.dumps(stamp))
    sources = digest(sorted((ROOT / "cxdbench").rglob("*.py")))
    if stamp.get("warmed") != sources and warm():
        STAMP.write_text(json.dumps(stamp | {"warmed": sources}))


def read_stamp() -> dict:
    """What the last set-up did; empty if there was none or its Python is gone."""
    try:
        subprocess.run([PYTHON, "-c", ""], check=True, capture_output=True)
        return json.loads(STAMP.read_text())
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}


def environment_key() -> str:
    """A virtual environment is tied to one Python and to its own path."""
    return f"{sys.version.split()[0]} {sys.base_prefix} {VENV}"


def digest(paths) -> str:
    sha = hashlib.sha256()
    for path in paths:
        sha.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return sha.hexdigest()


def run(*command, quiet: bool = False) -> bool:
    if not quiet:
        print("+", *command, flush=True)
    sink = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.run([str(part) for part in command], stdout=sink, stderr=sink).returncode == 0
    except OSError:
        return False


def make_venv() -> None:
    """Make an empty .venv with pip in it, by the first of three ways that this machine allows."""
    venv = [sys.executable, "-m", "venv", "--clear"]
    print(f"making {VENV}", flush=True)
    # Debian keeps ensurepip in a package of its own; without it, only this first way is barred.
    if run(*venv, VENV, quiet=True):
        return
    if run(*venv, "--without-pip", VENV, quiet=True):
        if run(sys.executable, "-m", "pip", "--version", quiet=True) and run(
            sys.executable, "-m", "pip", "--python", PYTHON, "install", "-q", "pip"
        ):
            return
        if shutil.which("uv") and run("uv", "pip", "install", "-q", "--python", PYTHON, "pip"):
            return
    shutil.rmtree(VENV, ignore_errors=True)
    sys.exit(
        "cxdbench needs a virtual environment, and this Python can neither make one with pip in it nor borrow "
        "pip or uv: run `sudo apt-get install python3-venv` (Debian, Ubuntu) and try again"
    )


def install(extras: list[str]) -> None:
    what = f".[{','.join(extras)}]" if extras else "."
    print(f"installing cxdbench{what[1:]} into {VENV} (a few minutes the first time)", flush=True)
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    if not run(*pip, "-e", f"{ROOT}{what[1:]}"):
        sys.exit("cxdbench was not installed: pip's message is above")


def warm() -> bool:
    """Compile the model now rather than under the first slider."""
    if not (ROOT / "cxdbench/warm.py").exists():
        return False
    print("compiling the model (once, until its sources change)", flush=True)
    done = run(PYTHON, "-m", "cxdbench.warm")
    if not done:
        print("the model was not compiled ahead, for the reason above; the first run will try again")
    return done


if __name__ == "__main__":
    main()
