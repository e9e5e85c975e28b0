#!/usr/bin/env bash
# The same example against the archive, with what pkg-config --static says. The shared library is left out of the
# copied installation, so that the linker has no choice.
source "$(dirname "$0")/common.sh" "$1"
cp -r "$prefix" copy
find copy -name 'libhalfstep.so*' -delete
PKG_CONFIG_PATH=$(dirname "$(find "$PWD/copy" -name halfstep.pc)")
cp "$2" fixture.c

# shellcheck disable=SC2046 # the flags are words
cc fixture.c $(pkg-config --static --cflags --libs halfstep) -o fixture
[[ $(ldd ./fixture) != *libhalfstep* ]] || fail 'the example still wants the shared library'
./fixture >output
judge_fixture output
