"""The model engine: settings into arrays, the phases of a run, and the arrays into what a result is built from."""
from __future__ import annotations

import numpy as np

from cxdbench.bins import N_BINS, bins_of
from cxdbench.control import Cancelled, Control, interruptible
from cxdbench.device import ConfigError, Device, ns, program_types_ns, read_types_ns
from cxdbench.model import layout as at
from cxdbench.model.eviction import queue_size
from cxdbench.model.inputs import Inputs, prepare, threshold, warm_up
from cxdbench.model.loop import run_phase
from cxdbench.model.nand import nand_size
from cxdbench.model.pages import NO_PAGE, NO_THREAD
from cxdbench.model.record import EXCESS_ROW, HIST_ROWS, MISS_ROW, RESIDUAL_ROW, WAIT_ROW
from cxdbench.result import EVENTS, STAGES, Measured
from cxdbench.workload import Workload

MAX_LOG_EVENTS = 50_000_000
_MASK64 = 2**64 - 1


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
    return z ^ (z >> 31)


def stream_seed(seed: int, thread: int, stream: int) -> int:
    """Start of a thread's splitmix64 stream."""
    return _mix(seed ^ _mix((int(at.GOLD) * (1 + 4 * thread + stream)) & _MASK64))


def _knots(quantiles_us: tuple[float, ...]) -> list[tuple[int, int]]:
    levels = (0, 0.5, 0.99, 0.999, 0.9999)
    knots = [(round(u * 2**32), ns(v)) for u, v in zip(levels, quantiles_us, strict=True)]
    return [*knots, (2**32, knots[-1][1])]


def exponential_knots(mean_us: float) -> list[tuple[int, int]]:
    """Quantiles of an exponential, closer together towards the tail, cut at 1 in 100,000."""
    levels = [0, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .98, .99, .999, .9999, .99999]
    knots = [(round(u * 2**32), round(-mean_us * 1000 * float(np.log1p(-u)))) for u in levels]
    return [*knots, (2**32, knots[-1][1])]


class Run:
    """The arrays of one run, in their initial state: an empty cache, or a filled one once its phases have run."""

    def __init__(self, device: Device, inputs: Inputs, seed: int) -> None:
        self.device, self.inputs = device, inputs
        self.cfg, self.knots = _settings(device, inputs)
        nand, cache, T = device.nand, device.cache_pages, inputs.threads
        cells, mask, stack = queue_size(int(self.cfg[at.C_POLICY]), cache, device.eviction.protect)
        self.cfg[at.C_RING_MASK], self.cfg[at.C_STACK_AT] = mask, stack
        self.queue = np.zeros(cells, np.uint32)
        self.g = np.zeros(at.G_LOG_LOST + 1, np.uint64)
        self.g[at.G_FREE] = cache
        if self.cfg[at.C_POLICY] == at.LRU:
            self.queue[3 * (cache + 1):-1] = np.arange(cache, 0, -1)
            self.g[at.G_FRAMES_FREE] = cache
        self.g[at.G_KEPT_FOR] = NO_THREAD
        self.th = np.zeros((max(T, at.MAX_THREADS), 40), np.uint64)
        self.th[:, [at.T_SLEEPS_ON, at.T_AGAIN, at.T_VICTIM]] = NO_PAGE
        for t in range(T):
            for stream in range(4):
                self.th[t, at.T_RNG_ADDRESS + stream] = stream_seed(seed, t, stream)
            self.th[t, at.T_KEEP_BELOW] = _keep_below(device, t, T)
        self.word = np.zeros(device.capacity_pages, np.uint32)
        self.nand = np.zeros(nand_size(nand.dies, nand.channels), np.uint64)
        self.times = np.zeros((2, 16), np.uint64)
        for row, values in enumerate((read_types_ns(nand), program_types_ns(nand))):
            self.times[row, :len(values)] = values
        unfinished = (device.prefetch.queue_pages if device.prefetch.pages else 0) + (
            cache if device.drain.pages else 0)
        self.heap = np.zeros((unfinished + 4, 5), np.uint64)
        self.order = np.zeros(at.MAX_THREADS, np.uint64)
        self.zipf = np.stack([inputs.zipf_keep, inputs.zipf_alias])
        self.hist = np.zeros((HIST_ROWS, N_BINS), np.uint64)
        self.stage = np.zeros((N_BINS, at.N_STAGES), np.uint64)
        self.no_hist = np.zeros((0, N_BINS), np.uint64)
        self.no_window = np.zeros((0, 5), np.uint64)
        self.no_log = np.zeros((0, 4), np.uint64)

    def addresses(self, kind: int, shift: int, first: np.ndarray, length: np.ndarray, position: np.ndarray,
                  write_below: int) -> None:
        """Where the threads' accesses come from, from the next phase on."""
        T = self.inputs.threads
        self.cfg[at.C_STREAM], self.cfg[at.C_SHIFT], self.cfg[at.C_WRITE_BELOW] = kind, shift, write_below
        self.th[:T, at.T_FIRST], self.th[:T, at.T_LENGTH], self.th[:T, at.T_POS] = first, length, position

    def phase(self, quota: np.ndarray, control: Control, name: str, window=None, log=None) -> None:
        """Let each thread do `quota[t]` accesses. Raises Cancelled."""
        control.begin(name, quota.sum())
        self.th[:len(quota), at.T_LEFT] = quota
        self.g[at.G_DONE], self.g[at.G_TOTAL] = 0, int(quota.sum())
        finished = run_phase(
            self.cfg, self.g, self.th, self.word, self.queue, self.nand, self.times, self.knots, self.inputs.entries,
            self.zipf, self.heap, self.order,
            self.no_hist if window is None else self.hist, self.no_hist if window is None else self.stage,
            self.no_window if window is None else window, self.no_log if log is None else log, control.cells)
        if not finished and self.g[at.G_NOW] >= at.TOO_LATE:
            raise ConfigError(f"the run passes {int(at.TOO_LATE)} ns of the device's time (four years) in its {name}: lower "
                              "accesses, think_ns or the NAND's times")
        if not finished or control.cancelled:
            raise Cancelled(f"cancelled in the {name}")

    def evictions(self) -> int:
        return int(self.g[at.G_EVICT_BEGUN])

    def mark_written(self, pages: int) -> None:
        """The first `pages` pages have content."""
        self.word[:pages] |= at.WRITTEN

    def warm_up(self, workload: Workload, control: Control) -> tuple[int, bool]:
        """Everything before the timed part, as `inputs.warm_up` has it."""
        return warm_up(self, self.inputs, workload, self.device.cache_pages, control)

    def start_counting(self) -> None:
        """The timed part begins: counters and records from zero, prefetches so far without a fate to be counted."""
        g, th = self.g, self.th
        g[at.FIRST_COUNTER:] = 0
        g[[at.G_MISS_MIN, at.G_WAIT_MIN]] = at.NEVER
        th[:, [at.T_HITS, at.T_MISSES, at.T_WAITS, at.T_SUM_NS]] = 0
        self.hist[:], self.stage[:] = 0, 0
        if self.device.prefetch.pages:
            self.word &= np.uint32(0xFFFFFFFF ^ at.PREFETCHED)


def _keep_below(device: Device, thread: int, threads: int) -> int:
    path = device.fault_path
    if path.kind != "cylon":
        return 0
    place = 2 * thread / (threads - 1) - 1 if threads > 1 else 0
    return threshold(min(1.0, max(0.0, path.handover_mean + path.handover_spread * place)))


def _settings(device: Device, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """cfg and the quantile knots."""
    cfg = np.zeros(at.C_WRITE_BELOW + 1, np.uint64)
    nand, path, sem, drain = device.nand, device.fault_path, device.semantics, device.drain
    policy = {"fifo": at.FIFO, "lifo": at.LIFO, "clock": at.CLOCK, "lru": at.LRU}[device.eviction.kind]
    high, low = int(drain.high * device.cache_pages), int(drain.low * device.cache_pages)
    values = {
        at.C_THREADS: inputs.threads, at.C_CACHE: device.cache_pages, at.C_CAPACITY: device.capacity_pages,
        at.C_HIT_NS: device.hit_ns, at.C_POLICY: policy, at.C_PROTECT: device.eviction.protect,
        at.C_SEES_HITS: sem.policy_sees == "all" and policy in (at.CLOCK, at.LRU),
        at.C_UNWRITTEN: {"charge": at.UNWRITTEN_CHARGE, "free": at.UNWRITTEN_FREE,
                         "program": at.UNWRITTEN_PROGRAM}[sem.unwritten_read],
        at.C_WRITEBACK_FREE: sem.writeback == "free", at.C_WRITE_MISS_NONE: sem.write_miss == "none",
        at.C_PF_PAGES: device.prefetch.pages, at.C_PF_DELAY: ns(device.prefetch.start_delay_us),
        at.C_PF_PUSH_NS: device.prefetch.push_ns, at.C_PF_QUEUE: device.prefetch.queue_pages,
        at.C_PF_FREE: sem.prefetch_timing == "free",
        at.C_DRAIN_PAGES: drain.pages, at.C_DRAIN_PERIOD: ns(drain.period_us), at.C_DRAIN_HIGH: high,
        at.C_DRAIN_STOP: low if drain.stop is None else max(low, high - drain.stop),
        at.C_PATH: {"ideal": at.PATH_IDEAL, "cxdvirt": at.PATH_CXDVIRT, "cylon": at.PATH_CYLON}[path.kind],
        at.C_DIES: nand.dies, at.C_CHANNELS: nand.channels, at.C_TRANSFER_NS: ns(nand.transfer_us),
        at.C_CHANNEL_MODEL: at.CHANNEL_EVENT if nand.channel_model == "event" else at.CHANNEL_NONE,
        at.C_ERASE_NS: ns(nand.erase_us), at.C_BLOCK_PAGES: nand.pages_per_block,
        at.C_N_READ: len(read_types_ns(nand)), at.C_N_PROGRAM: len(program_types_ns(nand)),
    }
    knots = np.zeros((2, 32, 2), np.uint64)
    rows: list[list[tuple[int, int]]] = []
    if path.kind == "cxdvirt":
        values[at.C_SERIAL_NS] = ns(path.serial_us)
        rows = [_knots(path.overhead_us)]
    elif path.kind == "cylon":
        values |= {at.C_EXIT_NS: ns(path.exit_us), at.C_REFAULT: threshold(path.refault_probability),
                   at.C_HANDOVER_NS: ns(path.handover_us), at.C_SECOND_EXIT_NS: ns(path.second_exit_us)}
        rows = [_knots(path.rest_us), exponential_knots(path.refault_gap_us)]
    for row, points in enumerate(rows):
        knots[row, :len(points)] = points
        values[at.C_N_REST if row == 0 else at.C_N_GAP] = len(points)
    for index, value in values.items():
        cfg[index] = int(value)
    return cfg, knots


def measure(device: Device, workload: Workload, *, log: bool = False, control: Control | None = None) -> Measured:
    """One run of the model: warm-up as the workload says, then the timed part. Raises ConfigError, Cancelled."""
    control = control or Control()
    return interruptible(lambda: _measure(device, workload, log, control), control.cancel)


def _measure(device: Device, workload: Workload, log: bool, control: Control) -> Measured:
    inputs = prepare(device, workload)
    run = Run(device, inputs, workload.seed)
    run.cfg[at.C_THINK_NS] = workload.think_ns
    warmup, reached = run.warm_up(workload, control)
    run.start_counting()
    resident_start, began = int(run.g[at.G_CACHED]), int(run.g[at.G_NOW])
    window = np.full((at.WINDOWS, 5), at.NEVER, np.uint64)
    events = _log_array(device, inputs) if log else None
    run.phase(inputs.timed, control, "timed part", window, events)
    return _collect(run, window, events, warmup, reached, resident_start, began)


def _log_array(device: Device, inputs: Inputs) -> np.ndarray:
    most = int(inputs.timed.sum()) * (10 + 4 * device.prefetch.pages) + 4096
    return np.empty((min(most, MAX_LOG_EVENTS), 4), np.uint64)


def _collect(run: Run, window, events, warmup, reached, resident_start, began) -> Measured:
    g, T, hit_ns = run.g, run.inputs.threads, run.device.hit_ns
    th = run.th[:T].astype(np.int64)
    hits = int(th[:, at.T_HITS].sum())
    second = int(g[at.G_SECOND_EXITS])
    latency = np.stack([np.zeros(N_BINS, np.uint64), run.hist[MISS_ROW], run.hist[WAIT_ROW]])
    slow_ns = hit_ns + int(run.cfg[at.C_SECOND_EXIT_NS])
    plain_bin, slow_bin = bins_of(np.array([hit_ns, slow_ns], np.uint64))
    latency[0, plain_bin] += np.uint64(hits - second)
    latency[0, slow_bin] += np.uint64(second)
    taken = window[:, :4].astype(np.int64)
    taken[-1, 3] = g[[at.G_CLEAN_FORE, at.G_DIRTY_FORE, at.G_CLEAN_BACK, at.G_DIRTY_BACK]].sum()
    taken = np.diff(taken, axis=0, prepend=0)
    state = run.word & np.uint32(at.STATE)
    names = {
        "fills": at.G_FILLS, "charged": at.G_CHARGED, "charged_program": at.G_CHARGED_PROGRAM,
        "uncharged_unwritten": at.G_UNCHARGED_UNWRITTEN, "uncharged_write": at.G_UNCHARGED_WRITE,
        "nand_reads": at.G_NAND_READS, "nand_programs": at.G_NAND_PROGRAMS, "nand_erases": at.G_NAND_ERASES,
        "prefetch_asked": at.G_PF_ASKED, "prefetch_dropped": at.G_PF_DROPPED, "prefetch_already": at.G_PF_ALREADY,
        "prefetch_issued": at.G_PF_ISSUED, "prefetch_charged": at.G_PF_CHARGED,
        "prefetch_uncharged": at.G_PF_UNCHARGED, "prefetch_useful": at.G_PF_USEFUL, "prefetch_late": at.G_PF_LATE,
        "prefetch_wasted": at.G_PF_WASTED,
    }
    counters = {name: int(g[index]) for name, index in names.items()}
    counters |= {
        "prefetch_unseen": int(np.count_nonzero(run.word & np.uint32(at.PREFETCHED))),
        "resident_start": resident_start, "resident_end": int(np.count_nonzero(state == at.CACHED)),
        "unsettled_end": int(np.count_nonzero((state == at.LOADING) | (state == at.EVICTING))),
    }
    misses, waits = int(g[at.G_MISSES]), int(g[at.G_WAITS])
    log = None
    if events is not None:
        log = events[:int(g[at.G_LOG_N])]
    return Measured(
        latency=latency, count=[hits, misses, waits],
        sum_ns=[(hits - second) * hit_ns + second * slow_ns, int(g[at.G_MISS_SUM]), int(g[at.G_WAIT_SUM])],
        min_ns=[hit_ns if hits > second else slow_ns, int(g[at.G_MISS_MIN]), int(g[at.G_WAIT_MIN])],
        max_ns=[slow_ns if second else hit_ns, int(g[at.G_MISS_MAX]), int(g[at.G_WAIT_MAX])],
        stage_sum_ns=run.stage.T, excess=run.hist[EXCESS_ROW:EXCESS_ROW + 2],
        residual=run.hist[RESIDUAL_ROW:RESIDUAL_ROW + 2],
        thread={"hits": th[:, at.T_HITS], "misses": th[:, at.T_MISSES], "waits": th[:, at.T_WAITS],
                "run_ns": th[:, at.T_END_NS] - began, "sum_ns": th[:, at.T_SUM_NS] + th[:, at.T_HITS] * hit_ns},
        window={"hits": taken[:, 0], "misses": taken[:, 1], "waits": taken[:, 2], "evictions": taken[:, 3],
                "resident": window[:, 4].astype(np.int64)},
        evictions=g[[at.G_CLEAN_FORE, at.G_CLEAN_BACK, at.G_DIRTY_FORE, at.G_DIRTY_BACK]].astype(np.int64).reshape(2, 2),
        transitions=[int(g[at.G_CLAIMS] + g[at.G_PF_ISSUED]), int(g[at.G_FILLS]), int(g[at.G_EVICT_BEGUN]),
                     int(g[at.G_EVICT_ENDED])],
        counters=counters, log=log, log_lost=int(g[at.G_LOG_LOST]),
        warmup_accesses=warmup, warmup_reached=reached, working_set_pages=run.inputs.working_set_pages,
        note=run.inputs.note)


assert STAGES == at.STAGES and len(EVENTS) == at.EV_ERASE + 1
