"""Reading run records (docs/records.md)."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from halfstep.errors import InputFileError

_NONFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _restore(value: Any) -> Any:
    """Numbers that JSON has no words for get their values back."""
    if isinstance(value, list):
        return [_restore(item) for item in value]
    if not isinstance(value, dict):
        return value
    restored = {name: _restore(item) for name, item in value.items()}
    for name in [name for name in restored if name.endswith("_nonfinite")]:
        field = name[: -len("_nonfinite")]
        if field in restored and restored[field] is None and restored[name] in _NONFINITE:
            restored[field] = _NONFINITE[restored.pop(name)]
    return restored


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def read_records(path: str | os.PathLike[str], kind: str | None = None) -> list[dict[str, Any]]:
    """The records of a run in their order, or those of one kind, such as "update".

    `path` is a file of records or the folder of a run. A number that was not finite is an infinity or NaN again.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "records.jsonl"
    records: list[dict[str, Any]] = []
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputFileError(f"{file} cannot be read: {problem}") from None
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):  # behind the last line feed
            break
        try:
            record = json.loads(line, parse_constant=_refuse)
            schema, is_kind = record["schema"], record["record"]
        except (ValueError, TypeError, KeyError) as problem:
            raise InputFileError(f"{file}, line {number} is no record: {problem!r}") from None
        if not str(schema).startswith("halfstep.records/1"):
            raise InputFileError(f"{file}, line {number} is of the schema {schema!r}; this reads halfstep.records/1")
        if kind is None or is_kind == kind:
            records.append(_restore(record))
    return records


def configuration(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The options that a run was last configured with, by name: those of its `run` record, and what every `resume`
    since has changed."""
    runs = [record for record in records if record["record"] == "run"]
    if not runs:
        raise InputFileError("there is no run record among them: give all that read_records returns")
    options = dict(runs[0]["configuration"])
    for record in records:
        for change in record.get("changes", []) if record["record"] == "resume" else []:
            options[change["option"]] = change["after"]
    return options
