"""The package as a whole: its declarations against headers and library, types, documents, installation, records."""

import ast
import importlib.util
import inspect
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import SOURCE, halfstep, main

from halfstep import _library
from halfstep._declarations import from_headers

PACKAGE = SOURCE / "tools" / "python"
HEADERS = SOURCE / "engine" / "include" / "halfstep"


class Declarations(unittest.TestCase):
    def test_every_public_function_is_declared_and_there(self):
        text = " ".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
        text = re.sub(r"/\*.*?\*/|^#[^\n]*", " ", text, flags=re.S | re.M)
        names = {match[1] for match in re.finditer(r"HSTEP_API [^;(]*?(hstep_\w+)\(", text)}
        self.assertGreater(len(names), 100)
        missing = [name for name in names if not callable(getattr(_library.lib, name, None))]
        self.assertEqual(missing, [])

    def test_sizes_and_numbers_are_the_compilers(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("no C compiler")
        text = from_headers(HEADERS)
        structs = sorted(set(re.findall(r"^\} (hstep_\w+);", text, re.M)))
        numbers = sorted(set(re.findall(r"\bHSTEP_[A-Z0-9_]+(?= =)|(?<=#define )HSTEP_\w+", text)))
        self.assertGreater(len(structs), 30)
        lines = [f'printf("%zu\\n", sizeof({name}));' for name in structs]
        lines += [f'printf("%lld\\n", (long long){name});' for name in numbers]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "sizes.c"
            head = "#include <halfstep/halfstep.h>\n#include <stdio.h>\n"
            source.write_text(f"{head}int main(void) {{ {' '.join(lines)} }}\n")
            subprocess.run([compiler, f"-I{HEADERS.parent}", str(source), "-o", f"{folder}/sizes"], check=True)
            printed = subprocess.run([f"{folder}/sizes"], capture_output=True, text=True, check=True).stdout.split()
        seen = [_library.ffi.sizeof(name) for name in structs] + [getattr(_library.lib, name) for name in numbers]
        self.assertEqual(seen, [int(it) for it in printed])

    def test_every_status_has_its_exception(self):
        from halfstep.errors import Error, from_status

        statuses = [name for name in dir(_library.lib) if name.startswith("HSTEP_ERROR_")]
        self.assertGreater(len(statuses), 12)
        for name in statuses:
            words = name[len("HSTEP_ERROR_") :].title().replace("_", "")
            kind = {"Nonfiniteforward": "NonfiniteForward", "Memory": "OutOfMemory"}.get(words, words) + "Error"
            error = from_status(getattr(_library.lib, name), "why", "where")
            self.assertEqual(type(error).__name__, kind)
            self.assertTrue(isinstance(error, Error) and str(error) == "why" and error.operation == "where")

    def test_every_default_is_the_librarys(self):
        lib = _library.lib
        for settings, defaults in ((halfstep.AdamW(), lib.hstep_adamw_defaults()),
                                   (halfstep.Schedule(), lib.hstep_schedule_defaults())):
            for name, value in vars(settings).items():
                self.assertEqual({"constant": 0}.get(value, value), getattr(defaults, name), name)
        decoder, ours = lib.hstep_decoder_defaults(), halfstep.DecoderConfig(1, 1, 1, 1, 1)
        self.assertEqual((decoder.rotary_base, decoder.rms_epsilon, decoder.precision),
                         (ours.rotary_base, ours.rms_epsilon, _library.precision_number(ours.precision)))

    def test_a_wrong_library_is_refused(self):
        for path in ("/nowhere/libhalfstep.so", "libc.so.6"):
            environment = {**os.environ, "HALFSTEP_LIBRARY": path, "PYTHONPATH": str(PACKAGE)}
            command = [sys.executable, "-B", "-c", "import halfstep"]
            asked = subprocess.run(command, env=environment, capture_output=True, text=True)
            self.assertEqual(asked.returncode, 1)
            self.assertIn("LibraryNotFoundError", asked.stderr)
            self.assertIn(path, asked.stderr)


class Types(unittest.TestCase):
    def test_everything_public_has_a_docstring(self):
        bare = []
        for path in sorted((PACKAGE / "halfstep").glob("*.py")):
            tree = ast.parse(path.read_text())
            for node in [tree, *ast.walk(tree)]:
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    name = getattr(node, "name", path.name)
                    overload = any(ast.unparse(it) == "overload" for it in getattr(node, "decorator_list", []))
                    if not name.startswith("_") and not overload and ast.get_docstring(node) is None and name != "data":
                        bare.append(f"{path.name}: {name}")
        self.assertEqual(bare, [])
        for name in halfstep.__all__:
            if inspect.isclass(getattr(halfstep, name)):
                self.assertTrue(getattr(halfstep, name).__doc__, name)

    def test_mypy_strict(self):
        if shutil.which("mypy") is None:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as cache:
            judged = subprocess.run(
                ["mypy", "--strict", "--cache-dir", cache, "--config-file", "pyproject.toml", "-p", "halfstep"],
                cwd=PACKAGE, capture_output=True, text=True)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)


class Documents(unittest.TestCase):
    """Programs and commands print what the documents show behind them."""

    def check(self, document, least):
        text = (SOURCE / "docs" / document).read_text()
        blocks = re.findall(r"^```(python|sh)\n(.*?)^```\n+```text\n(.*?)^```", text, re.M | re.S)
        self.assertEqual(len(blocks), len(re.findall(r"^```(?:python|sh)$", text, re.M)))
        self.assertGreaterEqual(len(blocks), least)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "examples").symlink_to(SOURCE / "examples")
            wrapper = Path(folder) / "python3"
            wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            wrapper.chmod(0o755)
            environment = {**os.environ, "PYTHONPATH": os.environ.get("HALFSTEP_PACKAGE", str(PACKAGE)),
                           "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
            for language, block, shown in blocks:
                command = [sys.executable, "-c", block] if language == "python" else ["sh", "-ec", block]
                ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
                # A plot is made where its library is.
                printed = re.sub(r"^plot: .*$", "no plot: matplotlib is not installed (Debian: python3-matplotlib)",
                                 ran.stdout, flags=re.M)
                self.assertEqual((ran.stderr, printed), ("", shown), block)

    def test_of_the_package(self):
        self.check("python.md", 8)

    def test_of_who_studies_precision(self):
        self.check("precision-study.md", 5)


class Installation(unittest.TestCase):
    def test_pip_takes_the_library_along(self):
        for tool in ("pip", "setuptools", "wheel"):
            if importlib.util.find_spec(tool) is None:
                self.skipTest(f"{tool} is not installed")
        with tempfile.TemporaryDirectory() as folder:
            built = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
            shutil.copytree(PACKAGE, f"{folder}/source", ignore=built)
            environment = {**os.environ, "HALFSTEP_SOURCE": str(SOURCE)}
            environment.pop("PYTHONPATH", None)
            installed = subprocess.run(
                [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
                 "--no-compile", "--target", f"{folder}/installed", f"{folder}/source"],
                env=environment, capture_output=True, text=True)
            self.assertEqual(installed.returncode, 0, installed.stderr)
            environment.pop("HALFSTEP_LIBRARY")
            program = (
                "import halfstep, sys\n"
                "assert halfstep.__file__.startswith(sys.argv[1]), halfstep.__file__\n"
                "assert f'{sys.argv[1]}/halfstep/_library' in open('/proc/self/maps').read()\n"
                "print(halfstep.__version__, halfstep.matmul([[2]], [[3]])[0, 0])\n"
            )
            command = [sys.executable, "-B", "-c", program, f"{folder}/installed"]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                                 env={**environment, "PYTHONPATH": f"{folder}/installed"})
            self.assertEqual((ran.stderr, ran.stdout), ("", f"{halfstep.__version__} 6.0\n"))


class Records(unittest.TestCase):
    def read(self, *lines, kind=None):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "records.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            return halfstep.read_records(folder, kind)

    def test_numbers_that_json_lacks(self):
        line = {"schema": "halfstep.records/1", "record": "update", "loss": None, "loss_nonfinite": "-inf",
                "norm": None, "deep": [{"x": None, "x_nonfinite": "nan"}], "text": "a\u2028b"}
        record = self.read(json.dumps(line, ensure_ascii=False))[0]
        self.assertEqual((record["loss"], record["norm"], record["text"]), (-math.inf, None, "a\u2028b"))
        self.assertTrue(math.isnan(record["deep"][0]["x"]))
        self.assertNotIn("loss_nonfinite", record)

    def test_kinds(self):
        kinds = ["run", "update", "update", "end"]
        lines = [json.dumps({"schema": "halfstep.records/1", "record": kind}) for kind in kinds]
        self.assertEqual([it["record"] for it in self.read(*lines)], kinds)
        self.assertEqual(len(self.read(*lines, kind="update")), 2)
        self.assertEqual(self.read(), [])

    def test_the_last_configuration(self):
        def line(kind, **fields):
            return json.dumps({"schema": "halfstep.records/1", "record": kind, **fields})

        change = {"option": "steps", "before": 8, "after": 9}
        records = self.read(line("run", configuration={"steps": 8, "seed": 1}), line("resume", changes=[change]),
                            line("resume"), line("resume", changes=[{**change, "before": 9, "after": 20}]))
        self.assertEqual(halfstep.configuration(records), {"steps": 20, "seed": 1})
        self.assertEqual(records[0]["configuration"]["steps"], 8)
        with self.assertRaisesRegex(halfstep.InputFileError, "run record"):
            halfstep.configuration(records[1:])

    def test_refusals_name_file_and_line(self):
        good = '{"schema":"halfstep.records/1","record":"end"}'
        for bad in ("{", "7", "", '{"record":"end"}', '{"schema":"other/1","record":"end"}', good.replace('"end"', "NaN")):
            with self.assertRaisesRegex(halfstep.InputFileError, "records.jsonl, line 2"):
                self.read(good, bad, good)
        with self.assertRaisesRegex(halfstep.InputFileError, "/nowhere"):
            halfstep.read_records("/nowhere")


if __name__ == "__main__":
    main()
