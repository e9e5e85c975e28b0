#!/usr/bin/env bash
# Every C block of the document $2 is a program: it compiles without a warning, runs, and prints what stands in the text
# block after it.
source "$(dirname "$0")/common.sh" "$1"
awk '
    /^```c$/    { name = sprintf("example%d.c", ++count); next }
    /^```text$/ { name = sprintf("example%d.txt", count); next }
    /^```/      { name = ""; next }
    name != ""  { print >name }' "$2"

[[ -e example2.c ]] || fail 'at least two programs were expected'
for source in example*.c; do
    name=${source%.c}
    # shellcheck disable=SC2046 # the flags are words
    cc -std=c17 -Wall -Wextra -Wpedantic -Werror "$source" $(pkg-config --cflags --libs halfstep) -o "$name"
    "./$name" >"$name.out"
    diff "$name.txt" "$name.out" || fail "$source prints other lines (>) than the document shows (<)"
done
