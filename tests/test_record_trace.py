"""tools/record_trace.py, end to end: with a stand-in for valgrind and, where it is installed, valgrind."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cxdbench.trace import read_trace, recorded

ROOT = Path(__file__).resolve().parent.parent
STAND_IN = f"""#!{sys.executable}
import os, sys
if sys.argv[1:] == ["--version"]:
    print("valgrind-0.0 stand-in")
    sys.exit()
fd = next(int(word.split("=")[1]) for word in sys.argv if word.startswith("--log-fd="))
text = ["==1== Lackey", "I  00400000,3"]
for again in range(2):                                          # 2 MiB written, twice: nothing is still there
    text += [" S %x,8" % (0x10000000 + 64 * line) for line in range(32768)]
os.write(fd, ("\\n".join(text + [" L 7fff00000ffc,8", "==1== "]) + "\\n").encode())
"""


def record(*arguments, path=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(path or os.environ["PATH"])}
    return subprocess.run([sys.executable, ROOT / "tools" / "record_trace.py", *map(str, arguments)],
                          capture_output=True, text=True, timeout=300, env=environment)


def test_without_valgrind_it_says_how_to_install_it(tmp_path):
    ran = record(tmp_path / "t.parquet", "--", "true", path=tmp_path)
    assert ran.returncode != 0 and "valgrind is not installed. sudo apt-get install valgrind" in ran.stderr
    assert "Traceback" not in ran.stderr and not list(tmp_path.iterdir())


def test_what_leaves_the_cpu_cache_is_kept_by_page(tmp_path):
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(STAND_IN)
    valgrind.chmod(0o755)
    out = tmp_path / "t.parquet"
    ran = record(out, "--", "true", path=f"{tmp_path}:{os.environ['PATH']}")
    assert ran.returncode == 0, ran.stderr
    made, trace = recorded(out), read_trace(out)
    assert made["accesses"] == 65536 + 2 and made["cpu_cache_hit_ratio"] == 0
    written_back = 65536 - 16384 + 2                  # all but what fits, and two for the last two lines
    assert len(trace) == made["left"] == 65536 + 2 + written_back
    assert trace.writes.sum() == written_back
    assert trace.footprint_pages == made["pages"] == made["pages_before"] == 512 + 2
    assert trace.pages[:64].tolist() == [0] * 64 and trace.pages[-1] == 513


if shutil.which("valgrind"):
    def test_valgrind_itself(tmp_path):
        out = tmp_path / "t.parquet"
        ran = record(out, "--", "true")
        assert ran.returncode == 0, ran.stderr
        made, trace = recorded(out), read_trace(out)
        assert made["command"] == "true" and made["valgrind"].startswith("valgrind-")
        assert made["accesses"] > 10_000 and 0.5 < made["cpu_cache_hit_ratio"] < 1
        assert len(trace) == made["left"] and trace.footprint_pages == made["pages"] > 10


def test_a_program_that_fails_leaves_no_file(tmp_path):
    ran = record(tmp_path / "t.parquet", "--", "no-such-program")
    assert ran.returncode != 0 and not list(tmp_path.iterdir())
    assert "is not installed" in ran.stderr
