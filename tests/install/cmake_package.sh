#!/usr/bin/env bash
# A project of its own finds the package, links either library, and both programs train.
source "$(dirname "$0")/common.sh" "$1"
cp "$2" fixture.c
cat >CMakeLists.txt <<'PROJECT'
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(halfstep 0.1 REQUIRED COMPONENTS static)
add_executable(with_shared fixture.c)
target_link_libraries(with_shared PRIVATE halfstep::halfstep)
add_executable(with_static fixture.c)
target_link_libraries(with_static PRIVATE halfstep::halfstep_static)
PROJECT
cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >log || fail "$(cat log)"
cmake --build build >log || fail "$(cat log)"
unset LD_LIBRARY_PATH

[[ $(ldd build/with_shared) == *libhalfstep.so* ]] || fail 'halfstep::halfstep is not the shared library'
[[ $(ldd build/with_static) != *libhalfstep* ]] || fail 'halfstep::halfstep_static is not the static library'
for program in with_shared with_static; do
    "build/$program" >output
    judge_fixture output
done
