"""Puts the C declarations and the library into the package.

The library is built by CMake from the source tree two folders up. HALFSTEP_LIBRARY=path takes one that is there
already; HALFSTEP_LIBRARY= (empty) takes none along: the package then looks for an installed one when it is imported.
"""

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = Path(__file__).resolve().parent
# A copy of this folder, as some tools make, has no source tree above it and names the tree.
SOURCE = Path(os.environ.get("HALFSTEP_SOURCE", HERE.parents[1]))
HEADERS = SOURCE / "engine" / "include" / "halfstep"


def version() -> str:
    text = (HEADERS / "halfstep.h").read_text(encoding="utf-8")
    found = re.search(r'#define HSTEP_VERSION "([0-9.]+)"', text)
    assert found is not None, f"{HEADERS}/halfstep.h names no version"
    return found[1]


def build_library(folder: Path) -> Path:
    configure = ["cmake", "-S", str(SOURCE), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", "-DHALFSTEP_TESTS=OFF"]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    subprocess.run(configure, check=True)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", str(folder), "--target", "halfstep_shared", "--parallel", jobs], check=True)
    return (folder / "libhalfstep.so").resolve()


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "halfstep"
        declare = runpy.run_path(str(HERE / "halfstep" / "_declarations.py"))["from_headers"]
        (package / "_declarations.h").write_text(declare(HEADERS), encoding="utf-8")
        library = os.environ.get("HALFSTEP_LIBRARY")
        if library is None:
            library = str(build_library(Path(self.build_lib).resolve().parent / "cmake"))
        shutil.rmtree(package / "_library", ignore_errors=True)
        if library:
            (package / "_library").mkdir()
            shutil.copy(library, package / "_library" / "libhalfstep.so")


class BinaryDistribution(Distribution):
    """The wheel is of one machine, for the library's sake."""

    def has_ext_modules(self) -> bool:
        return True


setup(version=version(), cmdclass={"build_py": BuildWithLibrary}, distclass=BinaryDistribution)
