#!/usr/bin/env bash
# The packages that halfstep needs, for tools/quickstart.sh and tools/check.sh to share. Sourced by bash, not run.
# Each row: the Debian package, and how to see on any system that what it brings is there.

build_packages='
gcc                 command gcc
libc6-dev           header stdio.h
cmake               command cmake
ninja-build         command ninja
pkg-config          command pkg-config
libjansson-dev      module jansson
libxxhash-dev       module libxxhash
libfp16-dev         header fp16.h
libvulkan-dev       header vulkan/vulkan.h
glslang-tools       command glslangValidator
'

test_packages='
g++                 command g++
clang               command clang
libomp-dev          clang-header omp.h
clang-format        command clang-format
doxygen             command doxygen
mandoc              command mandoc
libcriterion-dev    module criterion
mesa-vulkan-drivers file /usr/share/vulkan/icd.d/lvp_icd.*.json
vulkan-validationlayers file /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
spirv-tools         command spirv-val
python3             command python3
python3-jsonschema  python jsonschema
python3-numpy       system-python numpy
python3-cffi        system-python cffi
python3-pip         system-python pip
python3-venv        system-python ensurepip
python3-setuptools  system-python setuptools
python3-wheel       system-python wheel
mypy                command mypy
'

# Functions of the probes' names: true when the thing is there.
is_there() {
    case $1 in
    command) command -v "$2" >/dev/null ;;
    module) command -v pkg-config >/dev/null && pkg-config --exists "$2" ;;
    header) command -v gcc >/dev/null && gcc -E -x c - <<<"#include <$2>" >/dev/null 2>&1 ;;
    clang-header) command -v clang >/dev/null && clang -fopenmp -E -x c - <<<"#include <$2>" >/dev/null 2>&1 ;;
    file) compgen -G "$2" >/dev/null ;;
    # Of the system's own Python, which the tests of the package fall back to.
    system-python) is_there python "$2" || /usr/bin/python3 -c "import $2" >/dev/null 2>&1 ;;
    python) command -v python3 >/dev/null && python3 -c "import $2" >/dev/null 2>&1 ;;
    esac
}

# Prints the package of every row whose thing is missing.
missing_of() {
    local package kind name
    while read -r package kind name; do
        if [[ -n $package ]] && ! is_there "$kind" "$name"; then
            printf '%s\n' "$package"
        fi
    done <<<"$1"
}

# ensure_packages ROWS: installs what is missing with apt-get, or says what is missing and fails.
ensure_packages() {
    local missing as_root=()
    missing=$(missing_of "$1")
    if [[ -z $missing ]]; then
        return 0
    fi
    if ! command -v apt-get >/dev/null; then
        printf 'Missing, by their Debian names:\n%s\n' "$missing" >&2
        printf 'This is no Debian or Ubuntu system: please install what brings these, then run this script again.\n' >&2
        return 1
    fi
    if [[ $(id -u) -ne 0 ]]; then
        if ! command -v sudo >/dev/null; then
            printf 'Missing packages:\n%s\nPlease install them as root, or run this script as root.\n' "$missing" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    printf 'Installing: %s\n' "${missing//$'\n'/ }"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086 # one word for each package
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
    missing=$(missing_of "$1")
    if [[ -n $missing ]]; then
        printf 'Installed, but still not found: %s\n' "${missing//$'\n'/ }" >&2
        return 1
    fi
}
