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
configure() { cmake "$@" -DHALFSTEP_TESTS=ON -DHALFSTEP_WERROR=ON -DHALFSTEP_PYTHON="$python"; }

ensure_packages "$build_packages$test_packages"

say 'Layout of the sources'
check_format

# Vulkan's tests run on a newer driver too; where that does not come, the rest still does, and a notice says so.
say 'A newer Vulkan driver'
driver=$PWD/build/vulkan-driver
driver_is_there=yes
tools/vulkan-driver.sh "$driver" || driver_is_there=no

# The glslang that comes with it compiles all shaders of this build, those that Debian 12's does not know included.
# Without it what an earlier run took from there is forgotten.
shader_tools=(-UGLSLANG_VALIDATOR -USPIRV_VAL)
if [[ $driver_is_there == yes ]]; then
    shader_tools=("-DGLSLANG_VALIDATOR=$PWD/tools/vulkan-driver.sh;$driver;--run;glslangValidator"
        "-DSPIRV_VAL=$PWD/tools/vulkan-driver.sh;$driver;--run;spirv-val")
fi

# What we write is read back with the packages that others read it with. Without them two tests leave that out, and say so.
say 'Packages of Python'
python=$PWD/build/test-python/bin/python3
packages=(numpy ml_dtypes safetensors xxhash)
python3 -m venv build/test-python && "$python" -m pip install --quiet --retries 1 --timeout 20 "${packages[@]}" ||
    python=python3

say 'gcc, optimised'
CC=gcc configure --preset release -DHALFSTEP_VULKAN_DRIVER="$driver" "${shader_tools[@]}"
cmake --build build/release

say 'clang, optimised'
configure -S . -B build/clang -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang \
    -DHALFSTEP_VULKAN_DRIVER=
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

# Said before the last tests, so that the end is the judgement of ctest and nothing else.
if [[ $driver_is_there == no ]]; then
    cat <<'MISSING'

!! NOT TESTED: Vulkan on the newer driver. It could not be fetched (see "A newer Vulkan driver" above), and the tests
!! vulkan_new_* show as skipped. All else is tested. Try again:  tools/vulkan-driver.sh && ctest --preset release -L vulkan-new
MISSING
fi

say 'Tests, sanitizers'
ctest --preset debug
