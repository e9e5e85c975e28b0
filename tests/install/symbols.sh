#!/usr/bin/env bash
# The shared library exports the functions that the headers declare and that the list $2 holds, under its version, and
# nothing else; the static one has no name that a program might have too.
source "$(dirname "$0")/common.sh" "$1"
list=$2

nm -D --defined-only "$libdir/libhalfstep.so" | awk '{ print $NF }' >defined
version=$(sed -n 's/#define HSTEP_VERSION "\([0-9]*[.][0-9]*\)[.].*"/\1/p' "$prefix/include/halfstep/halfstep.h")
sed -n "s/@@HALFSTEP_$version\$//p" defined | sort -u >exported
# The version is itself a name.
grep -v -e "@@HALFSTEP_$version\$" -e "^HALFSTEP_$version\$" defined && fail 'the names above have no version'
readelf -d "$libdir/libhalfstep.so" | grep -qF "[libhalfstep.so.$version]" || fail "the soname is not of version $version"

# The function's name is the first hstep_ word that an opening parenthesis follows.
grep -hv '^#' "$prefix"/include/halfstep/*.h | tr '\n' ' ' | grep -oE 'HSTEP_API [^;]*;' |
    sed -E 's/^[^(]*[ *](hstep_[a-z0-9_]+)\(.*/\1/' | sort -u >declared
[[ $(wc -l <declared) -gt 50 ]] || fail 'the headers could not be read: too few functions found'
diff declared exported || fail 'headers (<) and exported symbols (>) differ'
grep -v '^#' "$list" >listed
diff listed exported || fail "exported symbols (>) differ from $list (<): a function that comes or goes, comes or goes there"

# The locks that clang's OpenMP makes for reductions are the compiler's, and the same in all programs.
nm -A -g --defined-only "$libdir/libhalfstep.a" | awk '$NF !~ /^(hs|hstep)_/ && $NF !~ /^[.]gomp_critical_/' >foreign
[[ ! -s foreign ]] || fail "global names of the static library without its prefix: $(cat foreign)"
