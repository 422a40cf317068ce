"""How addresses are made: Chase (a pointer chase), Zipf (skewed draws), Trace (recorded accesses).

Like the device: frozen, bounds checked, JSON round trip, dotted `with_`. All addresses are pages of 4 KiB counted
from the start of the device; `cxdbench.trace` reads trace files into the arrays a Trace holds.
"""
from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PlainSerializer, field_validator, model_validator

from cxdbench.device import PAGE_BYTES, Device, Share
from cxdbench.settings import ConfigError, Settings, config_error, short
from cxdbench.trace import MAX_THREADS, Accesses, read_trace

Threads = Annotated[int, Field(ge=1, le=MAX_THREADS)]
Wss = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False,
                             description="bytes of all threads over the cache's bytes")]
Accesses_ = Annotated[int, Field(ge=1, le=10**12, description="timed accesses of all threads together")]


class Workload(Settings):
    """What all workloads share: how a run warms up, what it starts from, and its randomness.

    warmup: untimed accesses of all threads before the timed part, or "auto": until the cache has filled and turned
    over once, or one pass of the working set, whichever is longer. start: cold skips the warm-up and finds an empty
    cache. prepare: "written" writes every page of the working set once, untimed, before the warm-up; "clean" finds a
    device on which nothing was ever written (a chase's nodes and a store's records are written before they are read,
    so written is their default).
    think_ns: time between a thread's accesses, not part of any latency.
    """

    warmup: Literal["auto"] | Annotated[int, Field(strict=True, ge=0, le=10**12)] = "auto"
    start: Literal["warm", "cold"] = "warm"
    prepare: Literal["clean", "written"] = "clean"
    think_ns: int = Field(0, ge=0, le=10**9)
    write_share: Share = 0.0
    seed: int = Field(1, ge=0, le=2**63 - 1)


class Chase(Workload):
    """Pointer chase: each thread walks nodes of `node_bytes` without pause, every access timed.

    pattern: sequential (a ring in address order) | cycle (one random cycle through all nodes) | random (independent
    draws). Threads own equal private shares of the working set, or walk one `shared` set from evenly spaced starts.
    """

    prepare: Literal["clean", "written"] = "written"
    wss: Wss = 2.5
    threads: Threads = 8
    pattern: Literal["sequential", "cycle", "random"] = "cycle"
    node_bytes: int = Field(512, ge=64, le=PAGE_BYTES, description="a power of two")
    accesses: Accesses_ = 1_000_000
    shared: bool = Field(False, strict=True)

    @field_validator("node_bytes")
    @classmethod
    def _power_of_two(cls, value: int) -> int:
        if value & (value - 1):
            raise ValueError(f"must be a power of two from 64 to {PAGE_BYTES}")
        return value

    @property
    def nodes_per_page(self) -> int:
        return PAGE_BYTES // self.node_bytes


class Zipf(Workload):
    """Independent draws with P(rank k) ~ 1 / k^skew over the working set's pages.

    `scramble` scatters the ranks over the set (as YCSB does); without it the hottest page comes first.
    """

    prepare: Literal["clean", "written"] = "written"
    wss: Wss = 2.5
    threads: Threads = 8
    skew: float = Field(0.99, ge=0, le=4, allow_inf_nan=False)
    scramble: bool = True
    accesses: Accesses_ = 1_000_000
    shared: bool = Field(True, strict=True)


def _list(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


Column = Annotated[Any, PlainSerializer(_list, return_type=list | None, when_used="json")]


class Trace(Workload):
    """Recorded accesses, replayed in order by each thread and, like the chase, from the start again after the end.

    Either `path` (CSV or Parquet with columns thread, address | page, is_write; or valgrind lackey text) or arrays:
    `pages` (page numbers, int), `thread` (default all 0) and `writes` (bool, default none), all of one length.
    A recorded trace holds no time between accesses: `think_ns` is it, and is the user's to state.
    `warmup="auto"` replays once untimed, and again until the cache has turned over if more pages are touched than it
    holds. `prepare="written"` writes every page up to the last one touched. `accesses=None` times one replay.
    """

    pages: Column = None
    thread: Column = None
    writes: Column = None
    path: str | None = None
    accesses: Accesses_ | None = None

    @field_validator("path", mode="before")
    @classmethod
    def _path(cls, value: Any) -> Any:
        if value is not None and "\0" in str(value):
            raise ValueError("must be the path of a file")
        return None if value is None else str(value)

    @field_validator("pages", "thread", "writes", mode="before")
    @classmethod
    def _column(cls, value: Any) -> Any:
        if value is None:
            return None
        try:
            column = np.array(value)
        except ValueError:
            raise ValueError("must be a flat array of whole numbers") from None
        if column.ndim != 1 or column.dtype.kind not in "iub" or column.size == 0:
            raise ValueError(f"must be a flat array of whole numbers, at least one; got {column.dtype} "
                             f"of shape {column.shape}")
        column.flags.writeable = False
        return column

    @model_validator(mode="after")
    def _either(self) -> Trace:
        def fault(name: str, why: str) -> ConfigError:
            return config_error("Trace", ((name,), getattr(self, name), why))

        if self.pages is None and self.path is None:
            raise fault("pages", "must be given, or path")
        if self.path is not None:
            for name in ("pages", "thread", "writes"):
                if getattr(self, name) is not None:
                    raise fault(name, "must not be given together with path: the file says it")
        if self.write_share != 0:
            raise fault("write_share", "must be 0: the trace itself says which accesses write")
        return self

    def load(self) -> Accesses:
        """The accesses, from the arrays or the file. Errors: ConfigError that names the file and the fault."""
        if self.path is not None:
            return read_trace(self.path)
        return Accesses.from_arrays(self.pages, self.thread, self.writes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.model_dump_json() == other.model_dump_json()

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


WORKLOADS = {"Chase": Chase, "Zipf": Zipf, "Trace": Trace}


def to_json(workload: Workload) -> str:
    """`{"kind": "Chase", ...}`; a Trace held in arrays is recorded by its path or its length, not its contents."""
    data = workload.model_dump(mode="json", exclude={"pages", "thread", "writes"})
    if isinstance(workload, Trace) and workload.pages is not None:
        data["pages_in_memory"] = len(workload.pages)
    return json.dumps({"kind": type(workload).__name__, **data})


def from_json(text: str) -> Workload:
    """Read what `to_json` wrote. A Trace that was held in arrays cannot come back: ConfigError."""
    try:
        data = dict(json.loads(text))
    except (ValueError, TypeError):
        raise ConfigError(f"workload is {short(text)}: must be the JSON that to_json writes") from None
    kind = data.pop("kind", None)
    if not isinstance(kind, str) or kind not in WORKLOADS:
        raise ConfigError(f"workload kind is {kind!r}: allowed: {', '.join(WORKLOADS)}")
    if "pages_in_memory" in data:
        raise ConfigError("this Trace was made from arrays, which a result does not keep: give them again")
    return WORKLOADS[kind](**data)


def working_set_pages(workload: Chase | Zipf, device: Device) -> int:
    """Pages of the working set: wss x cache_pages, at least one a thread. ConfigError beyond the device."""
    pages = max(1, round(workload.wss * device.cache_pages))
    if pages > device.capacity_pages:
        raise ConfigError(f"{type(workload).__name__}.wss is {workload.wss}: the working set of {pages} pages is beyond "
                          f"the device's capacity_pages {device.capacity_pages}; at most "
                          f"{device.capacity_pages / device.cache_pages:.4g}")
    if not workload.shared and pages < workload.threads:
        raise ConfigError(f"{type(workload).__name__}.wss is {workload.wss}: its {pages} pages are fewer than "
                          f"threads {workload.threads}; raise wss or cache_pages")
    return pages
