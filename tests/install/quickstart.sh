#!/usr/bin/env bash
# What tools/quickstart.sh in the source tree $3 builds is all that an installation asks for. A fresh build without tests
# is only planned: the files that its commands name are taken from the build in $2, all others stay missing.
source "$(dirname "$0")/common.sh" "$1"
build=$2 sources=$3
line=$(sed -n 's/^cmake --build build\/release --target //p' "$sources/tools/quickstart.sh")
[[ -n $line ]] || fail 'quickstart.sh names no targets'
read -ra targets <<<"$line"

cmake -S "$sources" -B fresh -G Ninja -DCMAKE_BUILD_TYPE=Release -DHALFSTEP_TESTS=OFF >log || fail "$(cat log)"
ninja -C fresh -t commands "${targets[@]}" | tr ' ' '\n' | sed "s|^$work/fresh/||" | sort -u >words
find fresh -name cmake_install.cmake -exec grep -ohE "\"$work/fresh/[^\"]*\"" {} + | tr -d '"' | sort -u |
    sed "s|^$work/fresh/||" | grep -xFf words >planned || fail 'nothing that is installed would be built'
while read -r file; do
    mkdir -p "fresh/$(dirname "$file")"
    cp -P "$build/$file" "fresh/$file"
done <planned
cmake --install fresh --prefix "$work/installed" >log 2>&1 || fail "$(cat log)"
