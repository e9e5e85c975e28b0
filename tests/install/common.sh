#!/usr/bin/env bash
# Shared by the tests of this folder, which source it: an empty working folder outside the source tree, an environment
# that finds the installation in $1 and nothing of the tree, and the judge of the example's output.
set -euo pipefail
prefix=$1
libdir=$(dirname "$(find "$prefix" -name libhalfstep.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
unset CPATH C_INCLUDE_PATH LIBRARY_PATH DESTDIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# judge_fixture FILE: the first loss is the one that the numeric policy fixes for these weights and this text, every
# attempt commits, the loss ends lower, and the scale, which doubles after every four updates, has done so three times.
judge_fixture() {
    cat "$1"
    awk '
        $1 == "step" { losses[++count] = $4; if ($9 != "applied") bad = "an attempt was not applied: " $0; last = $8 }
        END {
            if (bad != "") print bad
            else if (count != 12) print "12 updates were expected, not " count
            else if (losses[1] != "5.5620425") print "the first loss is " losses[1] ", not 5.5620425"
            else if (losses[count] + 0 >= losses[1] - 0.01) print "the loss did not fall"
            else if (last != "1024") print "the scale ends at " last ", not 1024"
            else exit 0
            exit 1
        }' "$1" >verdict || fail "$(cat verdict)"
}
