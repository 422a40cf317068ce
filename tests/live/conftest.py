"""What the tests on real page faults share."""
import subprocess
import sys
import textwrap

import pytest

import cxdbench as cxd
from cxdbench.live.host import why_not

needs_live = pytest.mark.skipif(bool(why_not()), reason=f"the live engine cannot run here: {why_not()}")
SMALL = cxd.Device(cache_pages=128, capacity_pages=1024,
                   nand={"read_us": 1, "program_us": 2, "erase_us": 5, "transfer_us": 1, "channels": 2, "ways": 2})


@pytest.fixture
def memory():
    with cxd.open_device(SMALL, compensate=False) as opened:
        yield opened


@pytest.fixture
def python():
    """python(code): run it in a fresh interpreter, since what it does may end it."""
    def run(code: str, timeout: float = 60, **options) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                              timeout=timeout, **options)
    return run
