#!/usr/bin/env bash
# The shell lines of the document $4 work as they stand there, for a user who has a home of his own and nothing else set:
# built in $2, with an example of the folder $3 as the program, and every program that they make trains or runs.
source "$(dirname "$0")/common.sh" "$1"
build=$2 examples=$3 document=$4
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
mkdir -p home build
cp -r "$examples" examples
ln -s "$build" build/release
cp examples/fixture.c program.c
block() { awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ { inside = 0 } inside' "$document"; }
block sh >lines
block cmake >CMakeLists.txt
[[ -s lines ]] || fail "$document shows no shell lines"
HOME=$work/home bash -eu lines >output 2>&1 || fail "$(cat output)"

count=0
for program in fixture program program_static build/program/program; do
    if [[ -x $program ]]; then
        "./$program" >output || fail "$program does not run"
        judge_fixture output
        count=$((count + 1))
    fi
done
[[ $count -eq $(grep -c -e '-o \(fixture\|program\|\$example\)' -e '^cmake --build' lines) ]] || fail 'a program is missing'
if [[ -x program_static && $(ldd ./program_static) == *libhalfstep* ]]; then
    fail 'the static program wants the shared library'
fi
