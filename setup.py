"""What pyproject.toml cannot say: which folders make the package, and the C library.

The data files live in data/, where a reader of the repository looks for them, and are installed as
`cxdbench.data`. pyproject.toml can find packages or list them, but not find all and add one.

libcxd.so holds no Python: it is loaded by ctypes and is the same for every Python. Where it cannot be compiled the
package installs without it, and the model engine runs; the live engine then says what is missing.
"""

from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

SOURCES = sorted(map(str, [*Path("kmod/core").glob("*.c"), *Path("kmod/user").glob("*.c")]))
HEADERS = sorted(map(str, [*Path("kmod/core").glob("*.h"), *Path("kmod/user").glob("*.h")]))


class Library(build_ext):
    """A plain shared library, cxdbench/live/libcxd.so."""

    def get_ext_filename(self, fullname: str) -> str:
        return f"{fullname.replace('.', '/')}.so"

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return ext.export_symbols


class Wheel(bdist_wheel):
    """A wheel for this platform and any Python 3."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    packages=[*find_packages(include=["cxdbench", "cxdbench.*"]), "cxdbench.data"],
    package_dir={"cxdbench.data": "data"},
    package_data={"cxdbench": ["report_template/*"], "cxdbench.data": ["*", "*/*"]},
    include_package_data=False,
    ext_modules=[Extension(
        "cxdbench.live.libcxd", SOURCES, depends=HEADERS, optional=True,
        extra_compile_args=["-std=gnu11", "-O2", "-g0", "-pthread"], extra_link_args=["-pthread"])],
    cmdclass={"build_ext": Library, "bdist_wheel": Wheel},
)
