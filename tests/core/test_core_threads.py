"""Eight threads and a ticker hammer one core (hammer.c), plain and, where it links, under ThreadSanitizer."""

import subprocess
from pathlib import Path

import pytest

from .binding import CORE, SOURCES, compiler

HAMMER = Path(__file__).with_name("hammer.c")


@pytest.mark.parametrize(("sanitizer", "accesses"), [([], 4000), (["-fsanitize=thread", "-g"], 500),
                                                     (["-fsanitize=address,undefined", "-g"], 1000)],
                         ids=["plain", "tsan", "asan"])
def test_threads_find_a_consistent_core(tmp_path, sanitizer, accesses):
    build = [compiler(), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{CORE}", *sanitizer]
    empty = tmp_path / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    if sanitizer and (subprocess.run([*build, empty, "-o", tmp_path / "empty"], capture_output=True).returncode
                      or subprocess.run([tmp_path / "empty"], capture_output=True).returncode):
        pytest.skip(f"{sanitizer[0]} does not work here: apt-get install gcc")
    subprocess.run([*build, *SOURCES, HAMMER, "-o", tmp_path / "hammer"], check=True)
    done = subprocess.run([tmp_path / "hammer", str(accesses)], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert len(done.stdout.splitlines()) == 12
