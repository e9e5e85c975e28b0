#!/usr/bin/env bash
# Doxygen, with the configuration $1, finds nothing in the public headers to warn of; and it does see what is undocumented.
set -euo pipefail
if ! command -v doxygen >/dev/null; then
    printf 'skipped: doxygen is not installed\n'
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed "s|^OUTPUT_DIRECTORY .*|OUTPUT_DIRECTORY = $work|" "$1" >"$work/Doxyfile"
doxygen "$work/Doxyfile"
[[ -s $work/html/trainer_8h.html ]] || { printf 'FAILED: no reference was written\n' >&2; exit 1; }

mkdir "$work/planted"
printf '/** @file planted.h */\nint hstep_planted(int x);\n' >"$work/planted/planted.h"
sed "s|^INPUT .*|INPUT = $work/planted|" "$work/Doxyfile" >"$work/Planted"
if doxygen "$work/Planted" >"$work/said" 2>&1 || ! grep -q 'hstep_planted.*not documented' "$work/said"; then
    printf 'FAILED: an undocumented function passes\n' >&2
    exit 1
fi
