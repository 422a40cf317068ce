"""The `cxdbench` command: run, sweep, report, published, doctor. Figures to stdout, everything else to stderr.

Exit status: 0 done; 1 it ran and something does not hold; 2 bad input, with one sentence; 130 Ctrl-C.
"""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cxdbench.axes import overlap, split
from cxdbench.control import Cancelled
from cxdbench.device import ConfigError, Device
from cxdbench.workload import WORKLOADS, Workload

CTRL_C = 130

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
                  help="What a CXL-SSD does to a workload, from a model of its cache, NAND and fault path.")

Preset = Annotated[str, typer.Option("--device", help="Preset of data/devices.toml.")]
CachePages = Annotated[int, typer.Option(help="Cache size; the device's capacity shrinks alike.")]
Sets = Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help="A field of the device or the workload by "
                                         "dotted name, such as nand.read_us=25 or wss=1.5. Repeat for more.")]
Kind = Annotated[str, typer.Option("--workload", help="chase, zipf or trace (with --set path=FILE).")]
Seeds = Annotated[int | None, typer.Option(help="Repeat with so many seeds: means, and the lowest and highest.")]
Backend = Annotated[str, typer.Option(help="Engine: model (virtual time), live (real page faults), dram (plain memory).")]
Out = Annotated[Path | None, typer.Option(help="Write the whole result there, as netCDF.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to stdout.")]


@app.command()
def run(device: Preset = "cxdvirt", cache_pages: CachePages = 16_384, sets: Sets = [], workload: Kind = "chase",  # noqa: B006
        backend: Backend = "model", seeds: Seeds = None, out: Out = None, as_json: AsJson = False,
        node: Annotated[int | None, typer.Option(help="NUMA node of the memory (live, dram).")] = None,
        mode: Annotated[str | None, typer.Option(help="How live catches misses: auto, sigbus, thread, guard, mprotect.")] = None,
        compensate: Annotated[bool | None, typer.Option(help="Whether live takes a fault's own cost out of its wait.")] = None,
        ) -> None:
    """Run one workload on one device and print its summary."""
    from cxdbench.cli.figures import summary_json, summary_table
    from cxdbench.result import save_result
    from cxdbench.run import run as measure
    _place_for(out)
    result = measure(*_settings(device, cache_pages, sets, workload), backend, seeds=seeds, node=node, mode=mode,
                     compensate=compensate)
    print(json.dumps(summary_json(result)) if as_json else summary_table(result))
    for warning in json.loads(result.attrs["warnings"]):
        _say(f"note: {warning}")
    if out:
        _say(f"written to {save_result(result, out)}")


@app.command()
def sweep(axis: Annotated[list[str], typer.Option(metavar="NAME=VALUE,VALUE,…", help="A field and its values, such as "
                                                  "wss=0.35,1.1,2.2. Repeat for a grid.")],
          device: Preset = "cxdvirt", cache_pages: CachePages = 16_384, sets: Sets = [], workload: Kind = "chase",  # noqa: B006
          backend: Backend = "model", seeds: Seeds = None, out: Out = None, as_json: AsJson = False) -> None:
    """Run every point of a grid on all cores and print a line for each; what is measured in real time goes alone.

    With --out FILE each point is kept in FILE.points as it finishes, until FILE is written: the same command goes on
    where it was stopped.
    """
    from cxdbench.cli.figures import sweep_json, sweep_table
    from cxdbench.result import save_result
    from cxdbench.sweep import SweepCancelled
    from cxdbench.sweep import sweep as measure
    _place_for(out)
    axes: dict[str, list] = {}
    for text in axis:
        name, values = _pair(text, "--axis", "name=value,value,…")
        if name in axes:
            raise ConfigError(f"--axis {name} is given twice: give all its values at once")
        axes[name] = [_value(part) for part in re.findall(r"\[[^\]]*\]|[^,]+", values)]
    for text in sets:
        name = _pair(text, "--set", "name=value")[0]
        for swept in axes:
            if overlap(name, swept):
                raise ConfigError(f"--set {name} and --axis {swept} set the same field: give one of them")
    points = out.with_name(out.name + ".points") if out else None
    settings = _settings(device, cache_pages, sets, workload)
    show = (lambda grid: json.dumps(sweep_json(grid))) if as_json else sweep_table
    try:
        grid = measure(*settings, axes, backend=backend, seeds=seeds, path=points, progress=sys.stderr.isatty())
    except SweepCancelled as stopped:
        if stopped.partial["finished"].any():
            print(show(stopped.partial))
        raise
    print(show(grid))
    if out:
        _say(f"written to {save_result(grid, out)}")
        _remove(points)


@app.command()
def report(notebook: Annotated[Path, typer.Argument(help="An .ipynb file with saved outputs.")],
           out: Annotated[Path | None, typer.Option(help="The file to write; beside the notebook by default.")] = None,
           execute: Annotated[bool, typer.Option("--execute", help="Run the notebook first; it is not changed.")] = False,
           ) -> None:
    """Export a notebook as one HTML file that opens offline with live plots."""
    from cxdbench.report import ReportError, export
    try:
        print(export(notebook, out, execute))
    except ReportError as error:
        raise ConfigError(str(error)) from None


@app.command()
def published(figure: Annotated[str | None, typer.Option(help='Only the rows of one figure or table: 5, 6, "Table I".')] = None,
              as_json: AsJson = False) -> int:
    """Hold every published row against ours; exit status 1 if one claimed to be reproduced is outside its band."""
    from cxdbench import published as rows
    from cxdbench.cli.figures import published_json, published_table
    answers = rows.answer(figure=figure)
    print(json.dumps(published_json(answers)) if as_json else published_table(answers))
    broken = rows.broken(answers)
    for one in broken:
        _say(f"{one.row.id} is claimed as {one.claimed}, and ours is outside its band: {one.ours_text} against {one.row.band_text}")
    return 1 if broken else 0


@app.command("doctor")
def doctor_command(as_json: AsJson = False) -> int:
    """What this host can run, with what mends each thing that is missing; exit status 1 if not even the model runs."""
    from cxdbench.cli import doctor as host
    from cxdbench.live.doctor import table
    found = host.findings()
    print(json.dumps(host.as_json(found)) if as_json else table(found))
    return 0 if host.works(found) else 1


def _settings(device: str, cache_pages: int, sets: list[str], workload: str) -> tuple[Device, Workload]:
    kinds = {name.lower(): kind for name, kind in WORKLOADS.items()}
    if workload.lower() not in kinds:
        raise ConfigError(f"--workload is {workload!r}: must be {', '.join(kinds)}")
    kind = kinds[workload.lower()]
    changes = {}
    for text in sets:
        name, value = _pair(text, "--set", "name=value")
        if name in changes:
            raise ConfigError(f"--set {name} is given twice")
        changes[name] = _value(value)
    to_device, to_workload = split(changes, kind, "--set")
    return Device.named(device).scaled(cache_pages).with_(to_device), kind(**to_workload)


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip(" ,")):
        raise ConfigError(f"{option} is {text!r}: must be {form}")
    return name.strip(), value.strip()


def _value(text: str) -> Any:
    """A number, true, false, null, a [list] of them, or else the word itself."""
    for read in (int, float, json.loads):  # int reads 16_384, which JSON does not
        try:
            return read(text)
        except ValueError:
            continue
    return text.strip()


def _place_for(out: Path | None) -> None:
    if out and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise ConfigError(f"--out is {str(out)!r}: must be a file in a folder that exists")


def _remove(points: Path) -> None:
    """A sweep's own points, once they are in one file."""
    for file in [*points.glob("*.nc"), *points.glob(".*.part")]:
        file.unlink()
    if not any(points.iterdir()):
        points.rmdir()


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def main(arguments: list[str] | None = None) -> None:
    """The console script. Ends the process with the exit status above."""
    sys.exit(_main(arguments))


def _main(arguments: list[str] | None) -> int:
    try:
        status = app(args=arguments, prog_name="cxdbench", standalone_mode=False) or 0
        if status == CTRL_C:  # newer typers turn Ctrl-C into this status and say nothing
            _say("cxdbench: cancelled")
        return status
    except (ConfigError, OSError) as error:
        _say(f"cxdbench: {error}")
        return 2
    except Cancelled as error:
        _say(f"cxdbench: {error}")
        return CTRL_C
    except (KeyboardInterrupt, typer.Abort):
        _say("cxdbench: cancelled")
        return CTRL_C
    except Exception as error:
        if not isinstance(error, typer.BadParameter.__mro__[1]):  # a fault of ours, not of the command line
            raise
        _say(f"cxdbench: {error.format_message()}")
        return 2
