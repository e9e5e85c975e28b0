"""The examples in Python run, and show what they are there to show."""

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import SOURCE, halfstep, main  # noqa: F401

FOLDER = SOURCE / "examples" / "python"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.environ.get("HALFSTEP_PACKAGE", str(SOURCE / "tools" / "python"))}


def run(name, *arguments, folder, **environment):
    ran = subprocess.run([sys.executable, "-B", str(FOLDER / name), *arguments], cwd=folder, capture_output=True,
                         text=True, env={**ENVIRONMENT, **environment})
    if ran.returncode != 0:
        raise AssertionError(f"{name}: {ran.stderr}")
    return ran.stdout


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_each_has_its_test(self):
        tests = {name[len("test_") :] for name in dir(self) if name.startswith("test_")}
        self.assertLessEqual({path.stem for path in FOLDER.glob("*.py")}, tests)

    def test_probe(self):
        """It is the trainer's own probe."""
        asked = subprocess.run([os.environ["HALFSTEP_TRAINER"], "--precision", "fp16"], capture_output=True, check=True)
        theirs = json.loads(asked.stdout)["overflow_probe"]
        ours = json.loads(run("probe.py", "--json", folder=self.folder))
        self.assertEqual((len(ours["skips"]), ours["kept"]), (theirs["skipped_attempts"], True))
        self.assertEqual((ours["loss_scale"], ours["step"]),
                         (theirs["retry"]["loss_scale"], theirs["retry"]["optimizer_step"]))
        for mine, it in zip(ours["skips"], theirs["attempts"]):
            named = {name: it["overflow"][name] for name in ("operation", "tensor", "kind", "index")}
            self.assertEqual(mine, {"loss_scale": it["loss_scale"], **named})
        self.assertEqual(len(run("probe.py", folder=self.folder).splitlines()), 8 + 2)

    def test_scale_sweep(self):
        """Numbers are lost without a scale, the error falls to a floor, and from some scale on it overflows."""
        shown = run("scale_sweep.py", "--csv", "sweep.csv", folder=self.folder).splitlines()
        rows = read_csv(self.folder / "sweep.csv")
        self.assertEqual((rows[0], len(rows), len(shown)), (["exponent", "error", "lost", "overflow"], 17, 17))
        finite = [(float(error), float(lost)) for _, error, lost, overflow in rows[1:] if not overflow]
        self.assertEqual([bool(row[3]) for row in rows[1:]], [False] * len(finite) + [True] * (16 - len(finite)))
        self.assertTrue(8 < len(finite) < 16)
        self.assertGreater(finite[0][0], 4 * finite[-1][0])
        self.assertTrue(finite[0][1] > 0 and finite[-1][1] == 0)
        self.assertLess(max(it[0] for it in finite[3:]), 1.1 * min(it[0] for it in finite[3:]))
        shown = run("scale_sweep.py", "--precision", "bf16", folder=self.folder)
        self.assertEqual(len(set(line.split()[1] for line in shown.splitlines()[1:])), 1, "bf16 needs no scale")

    def judge_study(self, shown, steps):
        rows = read_csv(self.folder / "out" / "losses.csv")
        self.assertEqual((rows[0], len(rows)), (["step", "f64", "fp16", "bf16", "mixture"], steps + 1))
        curves = {name: [float(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0])}
        for name in rows[0][1:]:
            self.assertLess(curves[name][-1], curves[name][0])
            if steps <= 20:  # one window of all
                gap = abs(sum(curves[name]) / sum(curves["f64"]) - 1)
                self.assertLess(gap, 0.01, name)
                self.assertIn(f"farthest from f64 {gap:.2%}", re.search(rf"^{name} .*$", shown, re.M)[0])
        self.assertEqual(len({tuple(curves[name]) for name in rows[0][1:]}), 4, "four different runs")

    def test_precision_study(self):
        shown = run("precision_study.py", "--steps", "12", "--out", "out", folder=self.folder)
        self.judge_study(shown, 12)
        there = importlib.util.find_spec("matplotlib") is not None
        self.assertEqual((self.folder / "out" / "losses.png").exists(), there)
        self.assertIn("plot: out/losses.png" if there else "no plot: matplotlib is not installed", shown)

    def test_precision_study_without_matplotlib(self):
        (self.folder / "matplotlib.py").write_text("raise ImportError\n")
        path = os.pathsep.join([str(self.folder), ENVIRONMENT["PYTHONPATH"]])
        shown = run("precision_study.py", "--steps", "2", "--out", "out", folder=self.folder, PYTHONPATH=path)
        self.assertIn("no plot: matplotlib is not installed", shown)
        self.assertEqual(len(read_csv(self.folder / "out" / "losses.csv")), 3)


if __name__ == "__main__":
    main()
