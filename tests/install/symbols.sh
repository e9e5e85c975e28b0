#!/usr/bin/env bash
# The shared library exports every function that the headers declare, and nothing else.
source "$(dirname "$0")/common.sh" "$1"

nm -D --defined-only "$libdir/libhalfstep.so" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >exported
# The function's name is the first hstep_ word that an opening parenthesis follows.
grep -hv '^#' "$prefix"/include/halfstep/*.h | tr '\n' ' ' | grep -oE 'HSTEP_API [^;]*;' |
    sed -E 's/^[^(]*[ *](hstep_[a-z0-9_]+)\(.*/\1/' | sort -u >declared

[[ $(wc -l <declared) -gt 50 ]] || fail 'the headers could not be read: too few functions found'
diff declared exported || fail 'headers (<) and exported symbols (>) differ'
