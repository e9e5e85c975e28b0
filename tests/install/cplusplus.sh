#!/usr/bin/env bash
# The header is valid C++11, its functions link from C++, and header and library say the same version.
source "$(dirname "$0")/common.sh" "$1"
cat >version.cpp <<'PROGRAM'
#include <halfstep/halfstep.h>
#include <cstring>
int main() {
    const bool rounds = hstep_encode(HSTEP_BF16, 1.0) == 0x3f80;
    return rounds && std::strcmp(hstep_version(), HSTEP_VERSION) == 0 ? 0 : 1;
}
PROGRAM
# shellcheck disable=SC2046 # the flags are words
c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror version.cpp $(pkg-config --cflags --libs halfstep) -o version
./version || fail 'the version or a conversion is wrong'
[[ $(pkg-config --modversion halfstep) == "$(sed -n 's/#define HSTEP_VERSION "\(.*\)"/\1/p' \
    "$prefix/include/halfstep/halfstep.h")" ]] || fail 'halfstep.pc and the header differ in version'

# Every header also stands alone, in both languages, their older and newer versions, and by both compilers.
compile() {
    local name
    for header in "$prefix"/include/halfstep/*.h; do
        name=$(basename "$header")
        printf '#include <halfstep/%s>\n#include <halfstep/%s>\n' "$name" "$name" |
            "$@" -Wall -Wextra -pedantic -Werror -I"$prefix/include" -fsyntax-only - || fail "$* refuses $name"
    done
}
for standard in c11 c17; do
    compile gcc -std=$standard -Wstrict-prototypes -x c
    compile clang -std=$standard -Wstrict-prototypes -x c
done
for standard in c++11 c++20; do
    compile g++ -std=$standard -x c++
    compile clang++ -std=$standard -x c++
done
