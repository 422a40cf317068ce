"""Eight threads in C against one device, each way of catching a miss: no wrong byte, no lost fill, counts that agree."""
import pytest

from .storm import MODES, PLAIN, build, compiler, run

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler: apt-get install gcc")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(tmp_path_factory.mktemp("storm"), PLAIN)


@pytest.mark.parametrize("mode", MODES)
def test_no_byte_and_no_fill_is_lost(program, mode):
    done = run(program, mode, 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 wrong" in done.stdout and "counts agree" in done.stdout and " 0 without exactly one fill" in done.stdout
