"""The one place for Numba's flags, the key of its cache, and the few machine instructions Numba lacks.

Numba's own cache goes stale when a function that a cached one calls changes in another file. So the cache's folder
is named by a hash of every source that holds jitted code or what it takes from, and applies to this package's functions alone.
"""
from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

PACKAGE = Path(__file__).resolve().parent


def cache_key(package: Path = PACKAGE) -> str:
    """Hash over Numba's version and every source that is in model/ or uses this module; changes when one does."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        if path.parent.name == "model" or b"cxdbench.jit" in text or path.name == "jit.py":
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def _cache_dir() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for root in (home, os.path.join(tempfile.gettempdir(), f"cxdbench-{os.getuid()}" if hasattr(os, "getuid") else
                                    "cxdbench")):
        folder = Path(root, "cxdbench", "numba-" + cache_key())
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if os.access(folder, os.W_OK):
                return str(folder)
        except OSError:
            continue
    return ""


CACHE_DIR = _cache_dir()


def _njit(**flags):
    # _nrt=False: no kernel allocates, so no array needs its references counted; with the counting, atomic and in the
    # inner loop, a hit costs 100 ns instead of 4
    def decorate(function):
        theirs, numba.config.CACHE_DIR = numba.config.CACHE_DIR, CACHE_DIR
        try:
            return numba.njit(cache=bool(CACHE_DIR), nogil=True, error_model="numpy", _nrt=False,
                              **flags)(function)
        finally:
            numba.config.CACHE_DIR = theirs
    return decorate


kernel = _njit()                     # entry points: called from Python, hold no GIL
inline = _njit(forceinline=True)     # steps of a kernel: no call is left in the loop
outline = _njit()                    # rare steps: a call costs some 30 ns (arrays travel by value), inlining compile time


@intrinsic
def leading_zeros(typing_context, value):
    """Leading zero bits of a uint64 (64 for 0)."""
    def code(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
    return types.uint64(types.uint64), code


@intrinsic
def fetch_ahead(typing_context, array, index):
    """Ask the CPU to bring array[index] near; changes nothing else."""
    def code(context, builder, signature, args):
        struct = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(struct.data, [args[1]])
        i8p = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [i8p.type, i32, i32, i32])
        function = builder.module.declare_intrinsic("llvm.prefetch", (i8p.type,), function_type)
        builder.call(function, [i8p, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()
    return types.none(array, types.uint64), code
