"""The cxdbench command: what it prints, its exit statuses, and what is left when it is stopped."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cxdbench as cxd
from cxdbench import cli

SMALL = ["--cache-pages", "1024", "--set", "accesses=20000"]
COMMAND = [sys.executable, "-c", "from cxdbench.cli import main; main()"]


@pytest.fixture
def command(capsys):
    """Run the command in this process: (exit status, stdout, stderr)."""
    def call(*arguments) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err
    return call


def expected(**changes):
    device = cxd.Device.named("cxdvirt").scaled(1024)
    return cxd.run(device, cxd.Chase(accesses=20_000, **changes))


def strict(text: str):
    """JSON as the standard has it: no NaN."""
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")
    return json.loads(text, parse_constant=refuse)


def test_run_prints_the_summary_as_json(command):
    status, out, err = command("run", *SMALL, "--set", "wss=1.5", "--json")
    assert (status, err) == (0, "")
    summary = cxd.summary(expected(wss=1.5))
    printed = strict(out)
    assert printed.keys() == summary.keys()
    for name, value in summary.items():
        assert printed[name] == value or (value != value and printed[name] is None), name
    assert printed["miss_p9999_ns"] is None and printed["miss_p50_ns"] > 6200


def test_run_prints_an_aligned_table_with_units(command):
    status, out, _ = command("run", *SMALL)
    lines = out.splitlines()
    table = lines[lines.index("") + 1:-1]
    assert status == 0 and "1,024 cache pages" in lines[0] and "Chase" in lines[1] and "wss=2.5" in lines[1]
    ratio = cxd.summary(expected())["hit_ratio"]
    assert any(line.split() == ["hit", "ratio", f"{ratio:.4f}"] for line in table)
    assert any(line.startswith("miss P50") and line.endswith(" us") for line in table)
    assert len({len(line) for line in table}) == 1  # one right edge
    assert lines[-1] == "-: fewer than 20 samples beyond"


def test_run_with_seeds_gives_means_and_bounds(command):
    status, out, _ = command("run", *SMALL, "--seeds", 3, "--json")
    printed = strict(out)
    assert status == 0 and printed["hit_ratio_low"] <= printed["hit_ratio"] <= printed["hit_ratio_high"]
    status, out, _ = command("run", *SMALL, "--seeds", 3)
    assert status == 0 and "means over 3 seeds" in out and " to " in out


def test_run_writes_the_result_and_says_where(command, tmp_path):
    status, out, err = command("run", *SMALL, "--json", "--out", tmp_path / "r.nc")
    assert status == 0 and "written to" in err and strict(out)
    assert cxd.open_result(tmp_path / "r.nc").identical(expected())


def test_set_finds_device_and_workload_by_name(command, tmp_path):
    sets = ["nand.read_us=[3, 25]", "eviction=lru", "drain.stop=null", "shared=true", "think_ns=1_000", "prefetch=2"]
    status, _, _ = command("run", *SMALL, *(part for text in sets for part in ("--set", text)),
                           "--out", tmp_path / "r.nc")
    assert status == 0
    result = cxd.open_result(tmp_path / "r.nc")
    device, workload = json.loads(result.attrs["device"]), json.loads(result.attrs["workload"])
    assert device["nand"]["read_us"] == [3, 25] and device["eviction"]["kind"] == "lru"
    assert device["drain"]["stop"] is None and device["prefetch"]["pages"] == 2
    assert workload["shared"] is True and workload["think_ns"] == 1000


def test_other_devices_and_workloads(command, tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text("page,is_write\n" + "".join(f"{i % 50},{i % 2}\n" for i in range(500)))
    status, out, _ = command("run", "--device", "ideal", "--cache-pages", 20, "--set", "eviction.protect=4",
                             "--workload", "trace", "--set", f"path={trace}", "--json")
    assert status == 0 and strict(out)["accesses"] == 500
    status, out, _ = command("run", "--device", "cylon", *SMALL, "--workload", "zipf", "--set", "skew=1.2", "--json")
    assert status == 0 and strict(out)["hit_ratio"] > 0.5


def test_sweep_gives_a_line_for_each_point(command, tmp_path):
    axes = ["--axis", "wss=0.35,2.2", "--axis", "nand.read_us=3,[3,25]"]
    status, out, _ = command("sweep", *axes, *SMALL, "--json", "--out", tmp_path / "g.nc")
    points = strict(out)
    assert status == 0 and [(p["wss"], p["nand.read_us"]) for p in points] == [
        (0.35, "3"), (0.35, "3, 25"), (2.2, "3"), (2.2, "3, 25")]
    assert points[2]["hit_ratio"] == cxd.summary(expected(wss=2.2))["hit_ratio"] and points[0]["miss_p50_ns"] is None
    assert cxd.open_result(tmp_path / "g.nc")["finished"].all()
    assert [file.name for file in tmp_path.iterdir()] == ["g.nc"]
    status, out, _ = command("sweep", "--axis", "nand.erase_us=0,1000", *SMALL, "--seeds", 2)
    lines = out.splitlines()
    assert status == 0 and lines[0].split()[:2] == ["nand.erase_us", "[us]"] and "miss P99 [us]" in lines[0]
    assert len(lines[0]) == len(lines[1]) and "means over 2 seeds" in lines[-1]


@pytest.mark.parametrize("arguments, says", [
    (["run", "--set", "wsss=1"], "--set 'wsss' is unknown: the closest names are wss"),
    (["run", "--set", "wss"], "--set is 'wss': must be name=value"),
    (["run", "--set", "wss=abc"], "Chase.wss is 'abc'"),
    (["run", "--set", "wss=nan"], "Chase.wss is nan"),
    (["run", "--set", "accesses=0"], "Chase.accesses is 0"),
    (["run", "--set", "wss=21"], "beyond the device's capacity_pages"),
    (["run", "--set", "nand.ways=65"], "Device.nand.ways is 65"),
    (["run", "--device", "foo"], "device 'foo' is unknown"),
    (["run", "--cache-pages", "x"], "'--cache-pages'"),
    (["run", "--cache-pages", "0"], "Device.cache_pages is 0"),
    (["run", "--bogus"], "No such option"),
    (["run", "--workload", "lru"], "--workload is 'lru': must be chase, zipf, trace"),
    (["run", "--workload", "trace"], "must be given"),
    (["run", "--workload", "trace", "--set", "path=nope.csv"], "nope.csv"),
    (["run", "--seeds", "0"], "seeds is 0"),
    (["run", "--out", "no/folder/r.nc"], "--out is 'no/folder/r.nc'"),
    (["run", "--out", "."], "--out is '.'"),
    (["sweep"], "--axis"),
    (["sweep", "--axis", "wss="], "--axis is 'wss='"),
    (["sweep", "--axis", "wss=1,300"], "point wss=300"),
    (["sweep", "--axis", "wss=1", "--axis", "wss=2"], "--axis wss is given twice"),
    (["sweep", "--axis", "skew=1"], "it is a field of Zipf"),
    (["report", "nope.ipynb"], "nope.ipynb cannot be exported: there is no such file"),
    (["run", "--set", "wss=1", "--set", "wss=2"], "--set wss is given twice"),
    (["sweep", "--axis", "wss=1", "--set", "wss=2"], "--set wss and --axis wss"),
    (["run", "--set", "scale=7"], "scale"),
    (["published", "--figure", "17"], "figure is '17'"),
    (["frobnicate"], "frobnicate"),
])
def test_bad_input_is_one_sentence_and_status_2(command, arguments, says):
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert says in err and err.startswith("cxdbench: ") and err.count("\n") == 1


def test_a_fault_of_ours_is_not_called_bad_input(command, monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError("a fault")
    monkeypatch.setattr(sys.modules["cxdbench.run"], "run", fails)
    with pytest.raises(ZeroDivisionError):
        cli.main(["run"])


def test_report_exports_a_notebook(command, tmp_path):
    import nbformat
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Seen"), nbformat.v4.new_code_cell("6 * 7")])
    nbformat.write(book, tmp_path / "n.ipynb")
    status, _, err = command("report", tmp_path / "n.ipynb")
    assert status == 2 and "it has no saved outputs" in err
    status, out, _ = command("report", tmp_path / "n.ipynb", "--execute", "--out", tmp_path / "seen.html")
    assert status == 0 and out.strip() == str(tmp_path / "seen.html")
    assert ">42<" in (tmp_path / "seen.html").read_text().replace("\n", "")


def start(*arguments) -> subprocess.Popen:
    return subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(there, child, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not there() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.05)


def stop(child) -> tuple[float, str, str]:
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    return time.monotonic() - began, out, err


def test_ctrl_c_ends_a_sweep_with_130_and_keeps_its_points(tmp_path):
    folder, device = tmp_path / "g.nc.points", cxd.Device.named("cxdvirt").scaled(1024)
    cxd.sweep(device, cxd.Chase(), {"accesses": [2_000]}, path=folder, progress=False)
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("*.nc")}
    child = start("sweep", "--cache-pages", 1024, "--axis", "accesses=2000,100000000000", "--json", "--out", tmp_path / "g.nc")
    wait_for(lambda: cpu_seconds(child.pid) > 4, child)  # it is past its imports and in the long run
    took, out, err = stop(child)
    assert child.returncode == 130 and took < 2, err
    assert [point["accesses"] for point in strict(out)] == [2000]
    assert err == f"cxdbench: cancelled with 1 of 2 points finished; they are kept in {folder}, from where the same sweep goes on\n"
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.nc")} == kept and not (tmp_path / "g.nc").exists()


def test_ctrl_c_ends_a_run_with_130(tmp_path):
    child = start("run", "--set", "accesses=100000000000")
    wait_for(lambda: cpu_seconds(child.pid) > 4, child)
    took, out, err = stop(child)
    assert child.returncode == 130 and took < 2 and out == "" and err == "cxdbench: cancelled\n"


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_console_script_is_there_and_explains_itself():
    script = Path(sys.executable).with_name("cxdbench")
    shown = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0 and all(name in shown.stdout for name in ("run", "sweep", "report", "published", "doctor"))
    bad = subprocess.run([script, "run", "--set", "wss=-1"], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2 and bad.stdout == "" and bad.stderr.count("\n") == 1 and "Chase.wss is -1" in bad.stderr
