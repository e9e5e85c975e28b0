"""Strict JSON: what every reader of halfstep's records may rely on."""

import json


def _refuse_constant(name):
    raise ValueError(f"{name} is no JSON number")


def _refuse_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"a name stands twice in {names}")
    return dict(pairs)


def loads(text):
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates)
