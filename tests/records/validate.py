"""Holds real output of the trainer against the schemas in docs/, and its lines against each other.

usage: validate.py TRAINER SOURCE_FOLDER
"""

import copy
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

import strict

TINY = ("--width 8 --layers 1 --heads 2 --feed-forward 16 --context 8 --batch-size 2 --steps 8 --eval-every 4 "
        "--eval-batches 2 --warmup-steps 2 --threads 1 --quiet").split()
KINDS = ["run", "update", "evaluation", "sample", "warning", "checkpoint", "dump", "resume", "end"]


def load_schema(path):
    schema = strict.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check(validator, value, where):
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if error is not None:
        raise AssertionError(f"{where}: at {list(error.absolute_path)}: {error.message}")


def call(trainer, *arguments, status=0):
    result = subprocess.run([trainer, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert result.returncode == status, (arguments, result.returncode, result.stderr.decode(errors="replace"))
    return result.stdout.decode("utf-8", errors="strict")


def check_sequence(lines, where):
    """The lines of one run agree with each other."""
    kinds = [line["record"] for line in lines]
    assert kinds[0] == "run" and kinds.count("run") == 1, (where, kinds)
    assert kinds[-1] == "end" and kinds.count("end") == 1, (where, kinds)
    updates = [line for line in lines if line["record"] == "update"]
    committed = 0
    for index, update in enumerate(updates):
        applied = update["outcome"] == "applied"
        assert update["attempt"] == index + 1, where
        assert update["step"] == committed + 1, "a retry takes the same scheduled step"
        committed += applied
        assert update["optimizer_step"] == committed, where
        assert update["next_loss_scale"] <= update["loss_scale"] if not applied else True, where
        assert update["finite_updates"] == 0 if not applied else True, where
        assert math.log2(update["loss_scale"]).is_integer(), where
        if index > 0:
            assert update["loss_scale"] == updates[index - 1]["next_loss_scale"], where
    totals = lines[-1]["totals"]
    applied = [update for update in updates if update["outcome"] == "applied"]
    assert totals["steps"] == len(applied), where
    assert totals["attempts"] == len(updates), where
    assert totals["skipped"] == len(updates) - len(applied), where
    assert totals["tokens"] == sum(update["tokens"] for update in applied), where
    assert totals["seconds"] >= 0.999 * sum(update["seconds"] for update in updates), where
    source = lines[0]["data"][0]
    assert source["training_tokens"] + source["evaluation_tokens"] <= source["tokens"], where


def train(validator, trainer, where, *arguments, status=0):
    """Trains into a file and returns its records, checked."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "records.jsonl"
        call(trainer, "train", *TINY, "--out", folder, "--records", str(path), *arguments, status=status)
        text = path.read_bytes().decode("utf-8", errors="strict")
    assert text.endswith("\n"), where
    lines = [strict.loads(line) for line in text[:-1].split("\n")]
    for number, line in enumerate(lines, 1):
        check(validator, line, f"{where}, line {number}")
    check_sequence(lines, where)
    return lines


def check_standard_output(validator, trainer):
    with tempfile.TemporaryDirectory() as folder:
        text = call(trainer, "train", *TINY, "--out", folder, "--records", "-")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        check(validator, strict.loads(line), f"standard output, line {number}")


def check_skips(lines):
    updates = [line for line in lines if line["record"] == "update"]
    skips = [update for update in updates if update["outcome"] == "skipped"]
    assert skips and updates[0]["outcome"] == "skipped", "a scale of 2^24 must overflow fp16"
    assert all(update["next_loss_scale"] == update["loss_scale"] / 2 for update in skips)
    warnings = [line for line in lines if line["record"] == "warning"]
    assert warnings, "more than 5% of attempts skipped: a warning is due"
    assert sum(item["count"] for item in warnings[-1]["overflows"]) == warnings[-1]["skipped"]


NUMBERS = ("weight_norm", "weight_largest", "gradient_norm", "gradient_largest", "update_norm", "update_largest",
           "update_ratio")


def check_traced(line, shapes):
    """Rows of all tensors and products, whose numbers agree with what else is known of them."""
    trace = line["trace"]
    skipped = line["outcome"] == "skipped"
    assert len(trace["tensors"]) == shapes["parameter_tensors"]
    for tensor in trace["tensors"]:
        for name in NUMBERS:
            missing = skipped and name.startswith(("gradient", "update"))
            assert (tensor[name] is None) == missing, (name, tensor)
        assert tensor["weight_norm"] >= tensor["weight_largest"]
    if not skipped:
        squares = sum(tensor["gradient_norm"] ** 2 for tensor in trace["tensors"])
        assert abs(squares ** 0.5 / line["gradient_norm"] - 1) < 1e-12
    assert len(trace["operations"]) == 8 * shapes["layers"] + 1, "seven products and attention in a layer, and the head"
    for operation in trace["operations"]:
        assert len(operation["operands"]) == (4 if operation["operation"].endswith("attention") else 3), operation
        for operand in operation["operands"]:
            counts = [operand[name] for name in ("to_zero", "to_subnormal", "to_infinity", "nonfinite")]
            assert sum(counts) <= operand["elements"] > 0, operand
            assert not operand["to_infinity"] or skipped, operand


def check_traces(validator, trainer):
    """Every second step has statistics, skips too; without --trace there are none, and the weights are the same."""
    for precision in ("fp16", "bf16"):
        arguments = ("--precision", precision, "--loss-scale", "16777216", "--max-loss-scale", "16777216")
        plain = train(validator, trainer, f"{precision} without trace", *arguments)
        lines = train(validator, trainer, f"{precision} with trace", *arguments, "--trace", "2")
        assert plain[-1]["weights_checksum"] == lines[-1]["weights_checksum"], "statistics changed the weights"
        for line in lines:
            if line["record"] == "update":
                assert ("trace" in line) == (line["step"] % 2 == 0)
                assert "work" not in line, "a processor moves nothing across a bus"
                if "trace" in line:
                    check_traced(line, lines[0]["model"])
        assert not any("trace" in line for line in plain)
    traced = next(line for line in lines if "trace" in line)
    for change in ({"tensors": []}, {"surplus": 1}):
        broken = copy.deepcopy(traced)
        broken["trace"] = {**broken["trace"], **change} if "surplus" in change else change
        assert refuses(validator, broken), change
    lines = train(validator, trainer, "f64 with trace", "--precision", "f64", "--trace", "1")
    assert all(line["trace"]["operations"] == [] for line in lines if line["record"] == "update"), "f64 rounds nothing"


def check_early_ends(validator, trainer):
    """Runs that stop by themselves say so, and are valid to their last line."""
    lines = train(validator, trainer, "too many skips", "--precision", "fp16", "--loss-scale", "16777216",
                  "--min-loss-scale", "16777216", "--max-loss-scale", "16777216", status=1)
    assert lines[-1]["outcome"] == "too-many-skips" and lines[-1]["totals"]["skipped"] == 32, lines[-1]
    lines = train(validator, trainer, "diverged", "--precision", "fp16", "--learning-rate", "1000000",
                  "--warmup-steps", "0", "--schedule", "constant", status=1)
    assert lines[-1]["outcome"] == "diverged", lines[-1]


def check_stray_bytes(validator, trainer):
    """A path and a text that are not UTF-8 still give valid lines, with the original bytes beside them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(os.fsencode(folder), b"text-\xe9")
        with open(path, "wb") as file:
            file.write(bytes(range(256)) * 20)
        lines = train(validator, trainer, "stray bytes", "--data", path)
    source = lines[0]["data"][0]
    assert bytes.fromhex(source["name_bytes"]) == path, source
    assert source["name"].endswith("text-\ufffd"), source
    sample = next(line for line in lines if line["record"] == "sample")
    assert ("text_bytes" in sample) == ("\ufffd" in sample["text"]), sample


def refuses(validator, value):
    return next(validator.iter_errors(value), None) is not None


def check_schema_bites(validator, lines):
    """A schema that accepts anything would pass every test above."""
    seen = {}
    for line in lines:
        seen.setdefault(line["record"], line)
    for kind, line in seen.items():
        assert refuses(validator, {**line, "surplus": 1}), kind
        assert refuses(validator, {**line, "record": "other"}), kind
        assert refuses(validator, {**line, "schema": "halfstep.records/0"}), kind
        for name in line:
            if not name.endswith(("_bytes", "_nonfinite")):
                assert refuses(validator, {key: line[key] for key in line if key != name}), (kind, name)
    skipped = next(line for line in lines if line.get("outcome") == "skipped")
    assert refuses(validator, {**seen["evaluation"], "loss": None})
    assert refuses(validator, {**seen["evaluation"], "loss_nonfinite": "nan"})
    check(validator, {**seen["evaluation"], "loss": None, "loss_nonfinite": "nan"}, "a loss that is no number")
    assert refuses(validator, {**skipped, "gradient_norm": 1.0})
    run = copy.deepcopy(seen["run"])
    run["model"]["surplus"] = 1
    assert refuses(validator, run)
    for text in ('{"a": NaN}', '{"a": -Infinity}', '{"a": 1, "a": 2}'):
        try:
            strict.loads(text)
        except ValueError:
            continue
        raise AssertionError(f"the strict parser took {text}")


def check_demonstration(validator, trainer):
    for precision in ("fp16", "bf16", "f64"):
        record = strict.loads(call(trainer, "--precision", precision))
        check(validator, record, f"demonstration {precision}")
        assert refuses(validator, {**record, "surplus": 1})
        for name in record:
            assert refuses(validator, {key: record[key] for key in record if key != name}), name


def check_examples(validator, source):
    """The example lines of docs/records.md are real, so they must pass as well; every kind has one."""
    shown = []
    text = (source / "docs" / "records.md").read_text(encoding="utf-8")
    for block in text.split("```json\n")[1:]:
        line = strict.loads(block.split("\n```")[0])
        check(validator, line, "example in docs/records.md")
        shown.append(line["record"])
    assert sorted(set(shown)) == sorted(KINDS), shown


def main():
    trainer, source = sys.argv[1], pathlib.Path(sys.argv[2])
    records = load_schema(source / "docs" / "records.schema.json")
    demonstration = load_schema(source / "docs" / "demonstration.schema.json")
    skipping = train(records, trainer, "fp16 with skips", "--precision", "fp16", "--loss-scale", "16777216",
                     "--max-loss-scale", "16777216", "--dump-overflow", "1")
    assert sum(line["record"] == "dump" for line in skipping) == 1
    check_skips(skipping)
    check_schema_bites(records, skipping)
    for precision in ("bf16", "f64"):
        lines = train(records, trainer, precision, "--precision", precision)
        assert all(line["outcome"] == "applied" for line in lines if line["record"] == "update")
        assert any(line["record"] == "evaluation" for line in lines)
        assert any(line["record"] == "sample" for line in lines)
    mixed = train(records, trainer, "a mixture", "--precision-for", "head=f64,blocks.0.*=fp16")
    assert mixed[0]["precision_for"] == [{"operations": "head", "precision": "f64"},
                                         {"operations": "blocks.0.*", "precision": "fp16-fp32"}], mixed[0]
    check_traces(records, trainer)
    check_early_ends(records, trainer)
    check_stray_bytes(records, trainer)
    check_standard_output(records, trainer)
    check_demonstration(demonstration, trainer)
    check_examples(records, source)
    print("ok")


if __name__ == "__main__":
    main()
