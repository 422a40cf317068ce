"""Pictures of the model itself, as SVG that any viewer shows: the page states with their counts, the path of a miss."""
from __future__ import annotations

from html import escape

import xarray as xr

from cxdbench.device import Device
from cxdbench.result import STAGES, TRANSITIONS
from cxdbench.run import run
from cxdbench.workload import Chase

# Okabe and Ito's palette, told apart by colour-blind readers; one colour a stage
COLOURS = dict(zip(STAGES, ("#56b4e9", "#d55e00", "#cc79a7", "#f0e442", "#e69f00", "#999999", "#0072b2", "#009e73",
                            "#882255", "#44aa99"), strict=True))
_INK, _BOX = "#555555", "#e8eef4"
_STYLE = f'font-family="sans-serif" font-size="13" fill="{_INK}"'


class Svg(str):
    """An SVG text that a notebook shows as a picture."""

    def __repr__(self) -> str:
        return f"<SVG, {len(self)} characters>"

    def _repr_svg_(self) -> str:
        return str(self)


def _text(x: float, y: float, text: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {_STYLE} {extra}>{escape(text)}</text>'


def state_machine(result: xr.Dataset) -> Svg:
    """The four page states and how often each transition was taken in the timed part of a run."""
    counts = dict(zip(TRANSITIONS, result["transitions"].values.tolist(), strict=True))
    clean = int(result["evictions"].sel(kind="clean").sum())
    dirty = int(result["evictions"].sel(kind="dirty").sum())
    places = {"NOT_CACHED": (110, 50), "LOADING": (530, 50), "CACHED": (530, 210), "EVICTING": (110, 210)}
    parts = []
    for name, (x, y) in places.items():
        parts.append(f'<rect x="{x - 70}" y="{y - 24}" width="140" height="48" rx="10" fill="{_BOX}" '
                     f'stroke="{_INK}"/>' + _text(x, y + 5, name, extra='font-weight="bold"'))
    arrows = [((180, 50), (456, 50)), ((530, 74), (530, 182)), ((460, 210), (184, 210)), ((110, 186), (110, 78))]
    for (x1, y1), (x2, y2) in arrows:
        parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{_INK}" marker-end="url(#tip)"/>')
    reads = int(result["nand_reads"])
    labels = [
        (320, 40, f"{counts[TRANSITIONS[0]]:,} claimed", "middle"),
        (320, 68, "(one compare-and-swap a page)", "middle"),
        (542, 126, f"{counts[TRANSITIONS[1]]:,} installed", "start"), (542, 144, f"{reads:,} NAND reads", "start"),
        (320, 200, f"{counts[TRANSITIONS[2]]:,} chosen as victims", "middle"),
        (320, 228, f"{clean:,} clean, {dirty:,} dirty", "middle"),
        (122, 126, f"{counts[TRANSITIONS[3]]:,} gone", "start"),
        (122, 144, f"{int(result['nand_programs']):,} NAND programs", "start"),
    ]
    parts += [_text(x, y, text, anchor) for x, y, text, anchor in labels]
    tip = (f'<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
           f'<path d="M0,0 L8,4 L0,8 z" fill="{_INK}"/></marker>')
    return Svg(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 260" width="720" height="260">'
               f'<rect width="720" height="260" fill="white"/><defs>{tip}</defs>{"".join(parts)}</svg>')


def idle_miss_ns(device: Device) -> dict[str, float]:
    """Mean time by stage, ns, of a miss on an otherwise idle device: one thread, private pages, cache turned over."""
    small = device.scaled(cache_pages=max(256, 2 * device.eviction.protect if device.eviction.kind == "lifo" else 0))
    result = run(small, Chase(threads=1, wss=2.0, pattern="sequential", node_bytes=4096, accesses=20_000))
    misses = int(result["count"].sel(outcome="miss"))
    return {stage: float(total) / misses for stage, total in zip(
        STAGES, result["stage_sum_ns"].sum("bin").values, strict=True)}


def miss_path(devices: dict[str, Device]) -> Svg:
    """One bar a device: where the time of an idle miss goes, stage by stage, in order."""
    paths = {name: idle_miss_ns(device) for name, device in devices.items()}
    longest = max(sum(p.values()) for p in paths.values())
    parts, height = [], 40 * len(paths) + 50
    for row, (name, path) in enumerate(paths.items()):
        x, y = 90.0, 10 + 40 * row
        parts.append(_text(80, y + 20, name, "end"))
        for stage, time in path.items():
            width = 520 * time / longest
            if width > 0:
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="28" fill="{COLOURS[stage]}">'
                             f"<title>{stage} {time / 1000:.2f} us</title></rect>")
            x += width
        parts.append(_text(x + 8, y + 20, f"{sum(path.values()) / 1000:.2f} us", "start"))
    seen = [s for s in STAGES if any(p[s] > 0 for p in paths.values())]
    for i, stage in enumerate(seen):
        parts.append(f'<rect x="{90 + 88 * i}" y="{height - 28}" width="12" height="12" fill="{COLOURS[stage]}"/>'
                     + _text(106 + 88 * i, height - 17, stage, "start"))
    return Svg(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" height="{height}">'
               f'<rect width="720" height="{height}" fill="white"/>{"".join(parts)}</svg>')
