#!/usr/bin/env bash
# The example, copied out of the tree, builds with what pkg-config says and nothing else, and trains.
source "$(dirname "$0")/common.sh" "$1"
cp "$2" fixture.c
[[ $(wc -l <fixture.c) -lt 60 ]] || fail 'the example has 60 lines or more'

# shellcheck disable=SC2046 # the flags are words
cc -std=c17 -Wall -Wextra -Wpedantic -Werror fixture.c $(pkg-config --cflags --libs halfstep) -o fixture
[[ $(ldd ./fixture) == *"$libdir/libhalfstep.so"* ]] || fail 'the example does not use the installed shared library'
./fixture >output
judge_fixture output
