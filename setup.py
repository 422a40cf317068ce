"""Which folders make the package; everything else is in pyproject.toml.

The data files live in data/, where a reader of the repository looks for them, and are installed as
`cxdbench.data`. pyproject.toml can find packages or list them, but not find all and add one.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["cxdbench", "cxdbench.*"]), "cxdbench.data"],
    package_dir={"cxdbench.data": "data"},
    package_data={"cxdbench": ["report_template/*"], "cxdbench.data": ["*", "*/*"]},
    include_package_data=False,
)
