"""The C declarations that cffi reads, made from the public headers: there is no second copy to keep."""

from __future__ import annotations

import re
from pathlib import Path

_CPLUSPLUS = re.compile(r"^#ifdef __cplusplus$.*?^#endif$|^#if defined\(__GNUC__\)$.*?^#endif$", re.M | re.S)
_NUMBER = re.compile(r"#define (HSTEP_\w+) \(?(-?\d+)\)?")


_INCLUDE = re.compile(r"#include <halfstep/(\w+\.h)>")


def _with_included(folder: Path, name: str, seen: list[str]) -> str:
    """A header's text behind those of the headers that it includes, each once."""
    if name in seen:
        return ""
    seen.append(name)
    text = (folder / name).read_text(encoding="utf-8")
    return "".join(_with_included(folder, included, seen) for included in _INCLUDE.findall(text)) + text


def from_headers(folder: Path) -> str:
    """Everything that halfstep.h in `folder` declares: types, functions, and names of whole numbers."""
    text = re.sub(r"/\*.*?\*/", "", _with_included(folder, "halfstep.h", []), flags=re.S)
    lines: list[str] = []
    for line in _CPLUSPLUS.sub("", text).splitlines():
        number = _NUMBER.fullmatch(line.strip())
        if number:
            lines.append(f"#define {number[1]} {number[2]}")
        elif line.strip() and not line.startswith("#"):
            lines.append(line.replace("HSTEP_API ", "").rstrip())
    return "\n".join(lines) + "\n"


def declarations() -> str:
    """What was stored beside this file when the package was built; in a source tree, the headers as they are."""
    here = Path(__file__).resolve().parent
    stored = here / "_declarations.h"
    if stored.exists():
        return stored.read_text(encoding="utf-8")
    return from_headers(here.parents[2] / "engine" / "include" / "halfstep")
