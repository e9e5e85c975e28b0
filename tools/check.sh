#!/usr/bin/env bash
# Installs what the tests need, builds with gcc, clang and the sanitizers, and runs every test. Any failure ends it with
# a nonzero status; the last lines of a good run are ctest's own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
source tools/packages.sh

say() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }

# Different versions of clang-format lay out the same file differently; one of them has to be the judge.
format_version=14

check_format() {
    local version
    version=$(clang-format --version | sed -E 's/.*version ([0-9]+).*/\1/')
    if [[ $version -ne $format_version ]]; then
        printf 'Not checked: the layout is that of clang-format %s, and here is version %s.\n' "$format_version" "$version"
        return 0
    fi
    find precision optim engine cpu vulkan tools tests examples -name '*.[ch]' -print0 |
        xargs -0 clang-format --dry-run --Werror
}

# configure PRESET-OR-OPTIONS...: tests on, warnings are errors.
configure() { cmake "$@" -DHALFSTEP_TESTS=ON -DHALFSTEP_WERROR=ON; }

ensure_packages "$build_packages$test_packages"

say 'Layout of the sources'
check_format

say 'gcc, optimised'
CC=gcc configure --preset release
cmake --build build/release

say 'clang, optimised'
configure -S . -B build/clang -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang
cmake --build build/clang

say 'gcc, AddressSanitizer and UndefinedBehaviorSanitizer'
CC=gcc configure --preset debug
cmake --build build/debug

say 'clang, ThreadSanitizer'
configure -S . -B build/thread -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang \
    -DHALFSTEP_SANITIZE=thread -DHALFSTEP_VULKAN=OFF
cmake --build build/thread --target test_threads_contexts test_threads_races

export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}

say 'Tests, gcc'
ctest --preset release

say 'Tests, clang'
ctest --test-dir build/clang --output-on-failure --label-exclude long

say 'Tests, ThreadSanitizer'
ctest --test-dir build/thread --output-on-failure

say 'Tests, sanitizers'
ctest --preset debug
