"""What `cxdbench doctor` prints: the engines, then what `live.doctor` finds."""
from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numba

from cxdbench import jit
from cxdbench.device import Device
from cxdbench.live.doctor import Finding, broken, examine
from cxdbench.run import BACKENDS, NOT_YET, run, unavailable, validate
from cxdbench.workload import Chase

WHAT = {"model": "virtual time", "live": "real page faults", "dram": "plain memory", "kmod": "kernel module"}


def findings() -> list[Finding]:
    """The engines first, model ahead of them all."""
    return [model(), *(engine(name) for name in BACKENDS if name != "model"), *examine()]


def model() -> Finding:
    """A small run of it; before its first run has compiled it, some half a minute, whether it can be compiled."""
    name = "engine model"
    try:
        device, workload = Device.named("cxdvirt").scaled(256), Chase(accesses=1000)
        if not compiled():
            validate(device, workload)
            numba.njit(lambda x: x + 1)(1)
            return Finding(name, f"can be compiled ({WHAT['model']}); its first run does so, in some 30 s, and was not tried", True)
        run(device, workload)
    except Exception as error:  # whatever it is, it is what is to be told
        return Finding(name, f"fails: {type(error).__name__}: {error}", False, "run `make setup` to install what it needs again")
    return Finding(name, f"works ({WHAT['model']})", True)


def compiled() -> bool:
    """Whether an earlier run left the model's machine code on disk."""
    return bool(jit.CACHE_DIR) and any(Path(jit.CACHE_DIR).glob("model_*/*.nbc"))


def engine(name: str) -> Finding:
    if name in NOT_YET:
        return Finding(f"engine {name}", NOT_YET[name])
    if why := unavailable(name):
        return broken(f"engine {name}", why, "use the model engine here, `--backend model`")
    return Finding(f"engine {name}", f"works ({WHAT[name]})", True)


def as_json(found: list[Finding]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]


def works(found: list[Finding]) -> bool:
    """Whether the model engine does, and so the command is of use here."""
    return any(one.name == "engine model" and one.ok for one in found)
