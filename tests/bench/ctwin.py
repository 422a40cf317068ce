"""loop.c as a phase runner for the model's own `Run`: same arrays in, same arrays out."""
from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from cxdbench.bins import N_BINS
from cxdbench.control import Control
from cxdbench.model import layout, record
from cxdbench.model.engine import Run

SOURCE = Path(__file__).with_name("loop.c")
FLAGS = ["-O3", "-march=native", "-shared", "-fPIC", "-Wall", "-Werror"]
POINTERS = ("cfg", "g", "th", "nand", "order", "hist", "stage", "window", "word", "queue", "times", "entries", "ctl")


class Arrays(ctypes.Structure):
    """struct run of loop.c."""

    _fields_ = [*((name, ctypes.c_void_p) for name in POINTERS), ("windows", ctypes.c_uint64)]


@cache
def library() -> ctypes.CDLL:
    """Compile loop.c for this machine."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("bench: no C compiler; apt-get install gcc")
    macros = {name: value for module in (layout, record) for name, value in vars(module).items()
              if name.isupper() and isinstance(value, int)} | {"N_BINS": N_BINS, "TH_CELLS": 40}
    with tempfile.TemporaryDirectory(prefix="cxdbench-bench-") as name:
        return _build(compiler, Path(name), macros)


def _build(compiler: str, folder: Path, macros: dict[str, int]) -> ctypes.CDLL:
    (folder / "layout.h").write_text("".join(f"#define {name} {value}\n" for name, value in macros.items()))
    target = folder / "loop.so"
    subprocess.run([compiler, *FLAGS, f"-I{folder}", str(SOURCE), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


class CRun(Run):
    """A Run whose phases are done by loop.c."""

    def phase(self, quota: np.ndarray, control: Control, name: str, window=None, log=None) -> None:
        control.begin(name, quota.sum())
        self.th[:len(quota), layout.T_LEFT] = quota
        self.g[layout.G_DONE], self.g[layout.G_TOTAL] = 0, int(quota.sum())
        window = self.no_window if window is None else window
        arrays = {"cfg": self.cfg, "g": self.g, "th": self.th, "nand": self.nand, "order": self.order,
                  "hist": self.hist, "stage": self.stage, "window": window, "word": self.word, "queue": self.queue,
                  "times": self.times, "entries": self.inputs.entries, "ctl": control.cells}
        struct = Arrays(*(arrays[name].ctypes.data for name in POINTERS), len(window))
        library().run_phase(ctypes.byref(struct))
