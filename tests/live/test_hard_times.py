"""What goes wrong around a live device: each a clear error, or handled. In processes of their own, which may end."""
import os
import signal
import subprocess
import sys
import time

import pytest
from jupyter_client.manager import start_new_kernel

import cxdbench as cxd

from .conftest import SMALL, needs_live

pytestmark = needs_live
OPEN = """
import cxdbench as cxd, ctypes, os, resource, signal, sys, threading
device = cxd.Device(cache_pages=64, capacity_pages=512, nand={"read_us": 1, "transfer_us": 1, "program_us": 1})
def walk(memory):
    a = memory.array(300 * 512)
    for page in range(300):
        a[page * 512] = page
    return all(a[page * 512] == page for page in range(300))
"""


def test_a_dead_background_thread_is_told(python):
    done = python(OPEN + """
from cxdbench.live.binding import library
memory = cxd.open_device(device.with_(prefetch=2), compensate=False)
library().cxd_kill_worker(memory.handle)
assert walk(memory)    # demand misses need no worker
for use in (memory.counters, memory.settle, memory.close):
    try:
        use()
    except cxd.LiveError as error:
        print(error)
    else:
        sys.exit("nothing was said")
""")
    assert done.returncode == 0 and done.stdout.count("background thread has died") == 3, done.stdout + done.stderr


def test_dead_servers_let_the_sleepers_go(python):
    done = python(OPEN + """
from cxdbench.live.binding import library
memory = cxd.open_device(device, mode="thread", compensate=False)
a = memory.array(300 * 512)
library().cxd_kill_worker(memory.handle)
for page in range(300):
    a[page * 512] = page
try:
    memory.counters()
except cxd.LiveError as error:
    print(error)
""", timeout=30)
    assert done.returncode == 0 and "died" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("limit, value, says", [
    ("RLIMIT_FSIZE", 1 << 20, "ulimit -f"), ("RLIMIT_NOFILE", 3, "ulimit -n"), ("RLIMIT_AS", None, "ulimit -v")])
def test_a_lowered_limit_is_named(python, limit, value, says):
    done = python(OPEN + f"""
big = device.with_(capacity_pages=1 << 20)
cxd.open_device(device, compensate=False).close()
value = {value}
if value is None:
    value = int(open("/proc/self/statm").read().split()[0]) * 4096 + (64 << 20)
if "{limit}" == "RLIMIT_NOFILE":
    value = max(map(int, os.listdir("/proc/self/fd")))
resource.setrlimit(resource.{limit}, (value, resource.getrlimit(resource.{limit})[1]))
try:
    cxd.open_device(big, compensate=False)
except (cxd.LiveError, OSError) as error:
    print(error)
""")
    assert done.returncode == 0 and says in done.stdout, done.stdout + done.stderr


def test_memory_that_is_not_there_is_refused_before_it_is_taken():
    with cxd.open_device(SMALL.with_(capacity_pages=1 << 28), compensate=False) as memory:
        with pytest.raises(cxd.LiveError, match=r"GiB of memory are needed and [\d.]+ GiB are available"):
            memory.array(1 << 36, "f8")
        assert memory.array(512).sum() == 0
    with pytest.raises(cxd.ConfigError, match="GiB are available"):
        cxd.run(SMALL.with_(cache_pages=(1 << 24) - 1, capacity_pages=1 << 30), cxd.Chase(wss=60, threads=1), "live")


def test_a_thread_that_blocks_the_signal_is_told(python):
    done = python(OPEN + """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGBUS])
try:
    cxd.open_device(device, mode="sigbus")
except cxd.LiveError as error:
    print(error)
with cxd.open_device(device, compensate=False) as memory:
    print(memory.mode, walk(memory))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGSEGV])
    try:
        memory.array(512)
    except cxd.LiveError as error:
        print(error)
with cxd.open_device(device, mode="thread", compensate=False) as memory:
    print(walk(memory))
""")
    assert all(text in done.stdout for text in ("blocks SIGBUS", "guard True", "blocks SIGSEGV")), done.stdout + done.stderr
    assert done.stdout.endswith("True\n"), done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["sigbus", "mprotect"])
def test_faulthandler_may_come_later(python, mode):
    done = python(OPEN + f"""
import faulthandler
with cxd.open_device(device, mode="{mode}", compensate=False) as memory:
    faulthandler.enable()
    assert walk(memory)
print("well", flush=True)
ctypes.string_at(8)
""")
    assert "well" in done.stdout and done.returncode == -signal.SIGSEGV
    assert done.stderr.count("Fatal Python error: Segmentation fault") == 1, done.stderr


@pytest.mark.parametrize("mode", ["sigbus", "mprotect"])
def test_another_handler_is_put_behind_ours(python, mode):
    done = python(OPEN + f"""
import time
with cxd.open_device(device, mode="{mode}", compensate=False) as memory:
    for s in (signal.SIGBUS, signal.SIGSEGV):
        signal.signal(s, lambda *_: None)
    time.sleep(0.1)
    print(walk(memory))
""")
    assert done.stdout == "True\n", done.stdout + done.stderr


def test_a_crash_elsewhere_is_still_a_crash(python):
    done = python(OPEN + """
memory = cxd.open_device(device, compensate=False)
ctypes.string_at(8)
""")
    assert done.returncode == -signal.SIGSEGV


def test_a_forked_child_is_stopped_with_a_message(python):
    done = python(OPEN + """
memory = cxd.open_device(device, compensate=False)
a = memory.array(512)
child = os.fork()
if not child:
    try:
        memory.counters()
    except cxd.LiveError as error:
        print(error, flush=True)
    a[0]
    os._exit(0)
_, status = os.waitpid(child, 0)
print(os.WIFSIGNALED(status), walk(memory))
""")
    assert "a forked process has no live device" in done.stdout and "True True" in done.stdout
    assert "does not inherit" in done.stderr


@pytest.mark.parametrize("nand", [{}, {"read_us": 1e6}], ids=["busy", "in one long wait"])
def test_ctrl_c_ends_a_run_within_a_second(nand):
    process = subprocess.Popen([sys.executable, "-c", OPEN + f"""
workload = cxd.Chase(wss=2, threads=2, accesses=10**9)
cxd.run(device, workload.with_(accesses=1000), "live", compensate=False)
print("ready", flush=True)
try:
    cxd.run(device.with_(nand={{**device.nand.model_dump(), **{nand}}}), workload, "live", compensate=False)
except KeyboardInterrupt:
    print("stopped", flush=True)
print(cxd.run(device, workload.with_(accesses=1000), "live", compensate=False)["count"].values.sum())
"""], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopped\n" and time.monotonic() - began < 1
    assert process.communicate(timeout=30)[0] == "1000\n" and process.returncode == 0


def test_a_notebooks_interrupt_ends_a_run_within_a_second():
    manager, client = start_new_kernel(kernel_name="python3")

    def until_idle() -> str:
        said = ""
        while True:
            content = client.get_iopub_msg(timeout=60)["content"]
            if content.get("execution_state") == "idle":
                return said
            said += str(content.get("text") or content.get("ename") or "")

    try:
        client.execute(OPEN + "workload = cxd.Chase(wss=2, threads=1, accesses=10**9)\n"
                       "memory = cxd.open_device(device, compensate=False)")
        until_idle()
        client.execute("cxd.run(device, workload, 'live', compensate=False)")
        time.sleep(2)
        began = time.monotonic()
        manager.interrupt_kernel()
        assert "KeyboardInterrupt" in until_idle() and time.monotonic() - began < 1
        client.execute("print(walk(memory), cxd.run(device, workload.with_(accesses=1000), 'live')['count'].values.sum())")
        assert "True 1000" in until_idle()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


FORBID_USERFAULTFD = """
import struct
def forbid():    # a seccomp filter: system call 323 fails with EPERM, all others are allowed
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, 323), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    filter = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(filter)
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
forbid()
"""


def test_without_userfaultfd_another_mode_is_taken(python):
    done = python(OPEN + FORBID_USERFAULTFD + """
from cxdbench.live.doctor import examine
with cxd.open_device(device, compensate=False) as memory:
    print(memory.mode, walk(memory))
print(next(finding.value for finding in examine() if finding.name == "mode auto"))
try:
    cxd.open_device(device, mode="sigbus")
except cxd.LiveError as error:
    print(error)
result = cxd.run(device, cxd.Chase(wss=2, threads=1, accesses=5000, write_share=0.3), "live", compensate=False)
print(all(i.holds for i in cxd.check(result)))
""")
    mode, works = done.stdout.split()[:2]
    assert mode in ("guard", "mprotect") and works == "True", done.stdout + done.stderr
    assert f"takes {mode}" in done.stdout
    assert "userfaultfd cannot be opened" in done.stdout and done.stdout.endswith("True\n")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else: this test needs to be run as root")
def test_an_ordinary_user_can(python):
    done = python(OPEN + """
from cxdbench.live.binding import library
library(), cxd.open_device, __import__("json"), __import__("faulthandler")
os.setgid(65534), os.setuid(65534)
print(open("/proc/sys/vm/unprivileged_userfaultfd").read().strip(), os.getuid())
with cxd.open_device(device) as memory:
    print(memory.mode, walk(memory))
""")
    assert done.returncode == 0 and done.stdout.endswith("sigbus True\n"), done.stdout + done.stderr


def test_a_mapping_cut_in_too_many_pieces_is_refused_before():
    most = int(open("/proc/sys/vm/max_map_count").read())
    with pytest.raises(cxd.LiveError, match=r"sysctl vm\.max_map_count"):
        cxd.open_device(SMALL.with_(cache_pages=most, capacity_pages=2 * most), mode="mprotect")





@pytest.mark.parametrize("mode", ["sigbus", "guard", "mprotect", "thread"])
def test_a_forked_child_may_open_devices_of_its_own(python, mode):
    done = python(OPEN + f"""
parents = [cxd.open_device(device, mode="{mode}", compensate=False) for _ in range(4)]
arrays = [memory.array(512) for memory in parents]
child = os.fork()
if not child:
    own = [cxd.open_device(device, mode="{mode}", compensate=False) for _ in range(2)]
    print(*[walk(memory) for memory in own], *[memory.counters()["claims"] >= 300 for memory in own], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(*[walk(memory) for memory in parents])
""", timeout=40)
    assert done.stdout == "True True True True\nTrue True True True\n", done.stdout + done.stderr


def test_signals_that_were_sent_reach_their_handler_each_time(python):
    done = python(OPEN + """
caught = []
signal.signal(signal.SIGBUS, lambda *_: caught.append(1))
memory = cxd.open_device(device, compensate=False)
for _ in range(3):
    os.kill(os.getpid(), signal.SIGBUS)
print(len(caught), walk(memory))
""")
    assert done.stdout == "3 True\n", done.stdout + done.stderr
