#!/usr/bin/env bash
# fuzz.sh [SECONDS]: runs every fuzz target with libFuzzer for so long (600 by default), one after the other. What the
# runs find is kept in build/fuzz/corpus/NAME and built upon by the next; an input that ends a target is left in
# build/fuzz/crash-NAME-... and named in the output.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-600}

cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang -DHALFSTEP_TESTS=ON >/dev/null
mapfile -t names < <(sed -nE 's/^halfstep_fuzz\(([a-z]+).*/\1/p' tests/fuzz/CMakeLists.txt)
cmake --build build/fuzz --target "${names[@]/#/fuzz_}" "${names[@]/#/libfuzzer_}"

for name in "${names[@]}"; do
    mkdir -p "build/fuzz/corpus/$name"
    "build/fuzz/tests/fuzz_$name" --examples "build/fuzz/corpus/$name"
    printf '== %s, %s s\n' "$name" "$seconds"
    "build/fuzz/tests/libfuzzer_$name" "build/fuzz/corpus/$name" -max_total_time="$seconds" -max_len=16384 \
        -rss_limit_mb=4096 -timeout=10 -artifact_prefix="build/fuzz/crash-$name-" -print_final_stats=1 2>&1 |
        grep -vE '^#[0-9]+[[:space:]]+(NEW|REDUCE|pulse|RELOAD)|NEW_FUNC'
done
