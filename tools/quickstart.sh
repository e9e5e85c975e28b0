#!/usr/bin/env bash
# From a fresh checkout to a trained model: installs what the build needs, builds all that an installation takes, and
# trains the built-in corpus in bf16.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
source tools/packages.sh

ensure_packages "$build_packages"

# A tree that was configured with its tests keeps them; a fresh one needs no test packages.
tests=OFF
if grep -qs '^HALFSTEP_TESTS:BOOL=ON' build/release/CMakeCache.txt; then
    tests=ON
fi
cmake --preset release -DHALFSTEP_TESTS=$tests
cmake --build build/release --target trainer halfstep_shared halfstep_static man

out=runs/quickstart-$(date +%Y%m%d-%H%M%S)
build/release/bin/trainer train --precision bf16 --out "$out"
printf '\nLet the model write:          build/release/bin/trainer sample %s --prompt 12+34=\n' "$out"
printf 'Train on a text of your own:  build/release/bin/trainer train --data FILE\n'
