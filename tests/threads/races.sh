#!/usr/bin/env bash
# ThreadSanitizer speaks where there is a race, between threads and within OpenMP regions, and is silent where OpenMP's
# barriers keep threads apart: otherwise its silence elsewhere would mean nothing.
set -u
for race in threads openmp; do
    if output=$("$1" "$race" 2>&1) || [[ $output != *'WARNING: ThreadSanitizer: data race'* ]]; then
        printf 'FAILED: no race reported: %s\n' "$race" >&2
        exit 1
    fi
done
"$1" none
