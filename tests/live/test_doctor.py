"""cxdbench doctor: what it finds here, and what it says where something is missing."""
import json
import os
import sys

import pytest

from cxdbench import cli
from cxdbench.cli import doctor as command_of
from cxdbench.live import binding, costs, doctor, host
from cxdbench.live.binding import LiveError

from .conftest import needs_live


@pytest.fixture
def command(capsys):
    """Run the command in this process: (exit status, stdout, stderr)."""
    def call(*arguments) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err
    return call


@pytest.fixture
def unbuilt(monkeypatch):
    """As if libcxd.so had never been compiled."""
    binding.library.cache_clear()
    monkeypatch.setattr(binding, "find", lambda: None)
    monkeypatch.setattr(sys, "platform", "linux")
    yield
    binding.library.cache_clear()


@pytest.fixture
def quick(monkeypatch):
    """No measurement, and no look at the cores' clocks."""
    monkeypatch.setattr(doctor, "measured", lambda works, auto: [])
    monkeypatch.setattr(doctor, "LOOK_S", 0.02)


def by_name(found) -> dict:
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    return dict(zip(names, found, strict=True))


def test_json_has_every_finding_with_a_name_and_a_value(command):
    status, out, err = command("doctor", "--json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert (status, err) == (0, "")
    for one in found:
        assert one.keys() == {"name", "value", "ok", "mend", "data"}
        assert one["name"] and isinstance(one["value"], str) and one["value"].strip() == one["value"] != ""
        assert one["ok"] in (True, False, None) and isinstance(one["mend"], str) and "\n" not in one["value"] + one["mend"]
    names = {one["name"] for one in found}
    assert names >= {"engine model", "engine live", "engine dram", "engine kmod", "libcxd.so", "kernel", "cores",
                     *(f"mode {mode}" for mode in (*binding.MODES, "auto"))}


def test_the_table_is_aligned_and_mends_stand_below(command, monkeypatch, quick):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    status, out, _ = command("doctor")
    lines = out.splitlines()
    at = lines[0].index("works") if "works" in lines[0] else lines[0].index("can be")
    assert status == 0 and lines[0].startswith("ok  engine model ")
    for line in lines:
        assert line[:2] in ("ok", "- ", "!!", "  ") and line[at - 2:at].isspace() and not line[at].isspace()
        assert (line[:2] == "  ") == line.strip().startswith("mend: ")
    redis = next(i for i, line in enumerate(lines) if "redis-server" in line)
    assert lines[redis].startswith("-   redis-server") and lines[redis + 1].strip() == "mend: run `apt-get install redis-server`"


def test_without_the_library_it_says_how_to_get_it(command, unbuilt):
    status, out, _ = command("doctor", "--json")
    found = {one["name"]: one for one in json.loads(out)}
    assert status == 0 and found["engine model"]["ok"] is True
    for name in ("libcxd.so", "engine live", "engine dram"):
        assert found[name]["ok"] is False and found[name]["value"].startswith("libcxd.so is not there")
        assert found[name]["mend"].startswith("run `apt-get install gcc libc6-dev` and then `make setup`")
    assert found["mode sigbus"]["value"] == "not tried without libcxd.so" and found["mode auto"]["ok"] is False
    assert found["measurements"]["value"] == "not made without libcxd.so" and "noise floor" not in found


def test_another_system_is_sent_to_the_model(monkeypatch):
    found = doctor.broken("engine live", "needs Linux, and this is darwin", "use the model")
    assert (found.value, found.mend) == ("needs Linux, and this is darwin", "use the model")


def test_missing_files_are_not_visible_here(monkeypatch, tmp_path, quick):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setattr(doctor, "available_bytes", lambda: (tmp_path / "meminfo").stat())
    found = by_name(doctor.examine())
    for name in ("vm.max_map_count", "NUMA nodes", "transparent huge pages", "frequency governor", "turbo",
                 "cycle counter", "hypervisor", "memory available"):
        assert found[name].value == "not visible here" and found[name].ok is None and not found[name].mend
    assert found["vm.unprivileged_userfaultfd"].value.startswith("not visible here; does not matter")
    assert found["cores"].data["free"] is None and found["cores"].data["cores"] == len(os.sched_getaffinity(0))


def test_what_the_files_say_is_read(monkeypatch, tmp_path):
    files = {
        "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu constant_tsc hypervisor\n",
        "proc/sys/vm/max_map_count": "20000\n", "sys/devices/system/node/node0/distance": "10 21\n",
        "sys/devices/system/node/node10/distance": "21 10\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    found = by_name([*doctor.limits("guard"), *doctor.machine(), *doctor.processors()])
    assert found["vm.max_map_count"].data == {"max_map_count": 20000, "cached_pages": 7500}
    assert found["vm.max_map_count"].ok is False and "sysctl vm.max_map_count=42768" in found["vm.max_map_count"].mend
    assert found["NUMA nodes"].value == "2, distances: node 0: 10 21; node 10: 21 10"
    assert found["transparent huge pages"].value == "enabled madvise; shmem_enabled not visible here"
    assert found["frequency governor"].ok is False and "cpupower" in found["frequency governor"].mend
    assert found["turbo"].value == "off" and found["hypervisor"].data is True
    assert found["cycle counter"].value == "constant, not nonstop" and found["cycle counter"].ok is False
    assert found["cores by cgroup"].data == 1.5 and found["cores by cgroup"].ok is False
    assert by_name(doctor.limits("sigbus"))["vm.max_map_count"].ok is None


def test_idle_and_stolen_time_are_told_by_core(monkeypatch):
    mine = sorted(os.sched_getaffinity(0))
    looks = iter([{core: [0] * 8 for core in mine}, {core: [20, 0, 0, 50, 5, 0, 0, 25] for core in mine}])
    monkeypatch.setattr(doctor, "core_times", lambda: next(looks))
    data = doctor.processors()[0].data
    assert data["free"] == round(0.55 * len(mine), 2) and data["stolen"] == 0.25 * len(mine)


REFUSED = ("userfaultfd cannot be opened here (Operation not permitted): needs Linux 5.11 or newer and no seccomp "
           "filter that forbids it")


@needs_live
def test_a_refused_mode_is_told_with_its_reason(monkeypatch, quick):
    probe = host.probe
    monkeypatch.setattr(host, "probe", lambda mode: REFUSED if mode in ("sigbus", "thread") else
                        "not this one" if mode == "guard" else probe(mode))
    found = by_name(doctor.examine())
    assert found["mode sigbus"].value == "userfaultfd cannot be opened here (Operation not permitted)"
    assert found["mode sigbus"].ok is False and found["mode sigbus"].mend.startswith("needs Linux 5.11")
    assert "seccomp=unconfined" in found["mode thread"].mend
    assert (found["mode guard"].value, found["mode guard"].mend) == ("not this one", "")
    assert found["mode auto"].value == "takes mprotect"


@needs_live
def test_what_is_measured_has_the_right_size():
    before = os.sched_getaffinity(0)
    found = by_name(doctor.measured({"sigbus": host.probe("sigbus"), "guard": "refused"}, "sigbus"))
    assert "miss by guard" not in found and found["cycles"].data == pytest.approx(costs.cycles_per_ns(), abs=1e-5)
    late = found["noise floor"].data
    assert late["p50"] <= late["p90"] <= late["p99"] <= late["p999"]
    if not host.probe("sigbus"):
        cost = found["miss by sigbus"].data
        assert cost["modelled_ns"] == 6200 and 200 < cost["total_ns"] < 1e6
        assert 0 < cost["entry_ns"] < cost["total_ns"]
        if len(before) > 1:
            cost = found["TLB shootdown"].data
            assert 50 < cost["alone_ns"] < 1e6 and 50 < cost["beside_ns"] < 1e6 and 0 < cost["busy_share"] <= 1
    assert os.sched_getaffinity(0) == before


@needs_live
def test_one_core_measures_no_shootdown_and_a_failure_is_told(monkeypatch):
    monkeypatch.setattr(costs, "cores", lambda: 1)
    monkeypatch.setattr(costs, "miss", lambda mode: (_ for _ in ()).throw(LiveError("it broke: run `make setup`")))
    found = by_name(doctor.measured({"sigbus": ""}, "sigbus"))
    assert found["TLB shootdown"].value == "not measured: there is one core"
    broken = found["miss by sigbus"]
    assert (broken.value, broken.ok, broken.mend) == ("it broke", False, "run `make setup`")


def test_a_model_that_fails_ends_with_1(command, monkeypatch, quick):
    def fails(*_, **__):
        raise ImportError("numba is gone")
    monkeypatch.setattr(command_of, "run", fails)
    monkeypatch.setattr(command_of, "validate", fails)
    status, out, _ = command("doctor")
    assert status == 1 and out.startswith("!!  engine model") and "ImportError: numba is gone" in out


def test_a_model_not_yet_compiled_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(command_of, "compiled", lambda: False)
    found = command_of.model()
    assert found.ok and "was not tried" in found.value
