#!/usr/bin/env bash
# Installs the build in $2 and moves the result to $1, so that a path baked in at install time would be noticed.
set -euo pipefail
prefix=$1 build=$2
rm -rf "$prefix" "$prefix.first"
cmake --install "$build" --prefix "$prefix.first" >/dev/null
mv "$prefix.first" "$prefix"

libdir=$(dirname "$(find "$prefix" -name libhalfstep.a)")
for file in "$prefix/bin/trainer" "$prefix/include/halfstep/halfstep.h" "$libdir/libhalfstep.so" \
    "$libdir/pkgconfig/halfstep.pc" "$libdir/cmake/halfstep/halfstep-config.cmake"; do
    [[ -e $file ]] || { printf 'FAILED: not installed: %s\n' "$file" >&2; exit 1; }
done
if grep -rlF -e "$prefix" -e "$build" "$libdir/pkgconfig" "$libdir/cmake" "$prefix/include"; then
    printf 'FAILED: the files above name the folder of the build or of the installation\n' >&2
    exit 1
fi
"$prefix/bin/trainer" --help >/dev/null
