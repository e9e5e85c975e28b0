"""lines.py TRAINER DOCUMENT [PYTHON]: the commands of docs/trainer.md, run as they stand there, in a folder with files of the
names that they use. A trainer put before the real one on the path makes the runs small; it changes nothing else. Of what
the document shows of a command's output, the words must be there; numbers are another run's."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SMALL = "--steps 3 --layers 1 --context 16 --batch-size 2 --threads 1"
SHORT = "--sample-tokens 4 --eval-batches 1"
TEXT = "Once upon a time there was a small model that read a small book, over and over again.\n" * 40


def blocks(document):
    """(language, lines) of every block, fenced or indented; the language of the latter is "sh"."""
    found, lines, fence = [], [], None
    for line in document.splitlines() + [""]:
        if fence is None and line.startswith("```"):
            fence, lines = line[3:], []
        elif fence is not None and line == "```":
            found.append((fence, lines))
            fence, lines = None, []
        elif fence is not None:
            lines.append(line)
        elif line.startswith("    "):
            lines.append(line[4:])
        elif lines:
            found.append(("sh", lines))
            lines = []
    return found


def shard(tokens):
    return struct.pack("<256i", 20240520, 1, len(tokens), *([0] * 253)) + struct.pack(f"<{len(tokens)}H", *tokens)


class Folder:
    """Where the commands run."""

    def __init__(self, path, trainer, configuration):
        self.path = path
        self.trainer = trainer
        wrapper = path / "bin" / "trainer"
        wrapper.parent.mkdir()
        # Not where a run goes on: it has its settings.
        wrapper.write_text(
            "#!/bin/sh\ncase \" $* \" in\n*\" --resume \"*) ;;\n"
            f"\" train \"*) exec {trainer} \"$@\" {SMALL} {SHORT} ;;\n"
            f"\" verify \"*) exec {trainer} \"$@\" {SMALL} ;;\n"
            f"esac\nexec {trainer} \"$@\"\n"
        )
        wrapper.chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{wrapper.parent}:{os.environ['PATH']}", XDG_CACHE_HOME=str(path / "cache"))
        for name in ("book.txt", "text.txt", "val.txt", *configuration["data"]):
            (path / name).write_text(TEXT)
        (path / "run.json").write_text(json.dumps(configuration))
        (path / "shards").mkdir()
        tokens = [7 * i % 4000 for i in range(3000)]
        for name in ("shards/train_1.bin", "shards/train_2.bin", "shards/val.bin", "shards/val_1.bin", "train_000001.bin"):
            (path / name).write_bytes(shard(tokens))
        self.make("of-text", "book.txt", "--width 16 --feed-forward 16 --heads 2")
        self.make("of-tokens", "shards/val.bin", "--width 16 --feed-forward 16 --heads 2 --vocabulary 4000")

    def make(self, name, data, options):
        self.run(f"trainer train --data {data} --out {name} --quiet {options}")
        # Under the numbers that the document has too.
        for step in (500, 1000):
            shutil.copy(self.path / name / "checkpoint-00000003.safetensors",
                        self.path / name / f"checkpoint-{step:08}.safetensors")

    def place(self, line, made):
        """The run that a line wants to be there, in the folder that it names, unless a line of its block made it."""
        for name in ("DIR", "runs/20260101-120000-bf16", "run", "book"):
            if name in made or not re.search(rf"(^|\s){name}(/|\s|$)", line):
                continue
            shutil.rmtree(self.path / name, ignore_errors=True)
            if f"--out {name}" in line:
                made.add(name)
            else:
                kind = "of-tokens" if re.search(r"--prompt-tokens|shards/", line) else "of-text"
                shutil.copytree(self.path / kind, self.path / name)

    def run(self, line, allowed=(0,)):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=self.path, env=self.environment, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
        if done.returncode not in allowed:
            sys.exit(f"{line}\nends with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout


def words(text):
    """The first word of each line, which is a label; other lines are empty."""
    return [line.split()[0] if line.split() and not re.match(r"[\d\[]", line.split()[0]) else "" for line in text.splitlines()]


def check_shown(line, shown, said):
    if [word for word in words("\n".join(shown))] != words(said):
        sys.exit(f"{line}\nThe document shows:\n" + "\n".join(shown) + f"\nIt says:\n{said}")


def statuses(line):
    """Those that a line may end with. A lever that this machine lacks is status 5, and three steps of levers or precisions
    may well be outside."""
    return (0, 1, 5) if line.startswith("trainer verify") else (0,)


def has_packages(python):
    return subprocess.run([python, "-c", "import ml_dtypes, safetensors.numpy"], stderr=subprocess.DEVNULL).returncode == 0


def main(trainer, document, python):
    found = blocks(pathlib.Path(document).read_text())
    configuration = json.loads("\n".join(next(lines for language, lines in found if language == "json")))
    count, said = 0, ""
    with tempfile.TemporaryDirectory() as work:
        folder = Folder(pathlib.Path(work), trainer, configuration)
        for language, lines in found:
            made = set()
            if language == "sh":
                for line in lines:
                    if not line.startswith("trainer "):
                        sys.exit(f"no command: {line}")
                    folder.place(line, made)
                    said = folder.run(line, statuses(line))
                    count += 1
            elif language == "text" and lines[0].startswith("$ "):
                folder.place(lines[0][2:], made)
                said = folder.run(lines[0][2:])
                check_shown(lines[0], lines[1:], said)
                count += 1
            elif language == "text" and not lines[0].startswith("Usage: "):  # which install_help compares
                check_shown("the command before:", lines, said)
            elif language == "python" and has_packages(python):
                (folder.path / "block.py").write_text("\n".join(lines))
                folder.run(f"{python} block.py")
            elif language == "python":
                print("skipped: a block of Python, which needs the packages safetensors and ml_dtypes")
    if count < 20:
        sys.exit(f"only {count} commands were found")
    print(f"{count} commands ran")


main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "python3")
