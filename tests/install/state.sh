#!/usr/bin/env bash
# The library has no writable state but what the list $2 explains: no object in a section that is written after loading
# (.data.rel.ro is not) or that each thread has of its own.
source "$(dirname "$0")/common.sh" "$1"
list=$2

# written_in FILE: "OBJECT-FILE NAME" for each, without the numbers that compilers put behind names of functions' own.
written_in() {
    objdump -t "$1" | awk '
        /file format/ { object = $1; sub(/:$/, "", object); next }
        {
            tab = index($0, "\t")
            section = substr($0, 1, tab - 1)
            sub(/.* /, "", section)
            name = $NF
            sub(/[.][0-9]+$/, "", name)
            # Locks of reductions are made by clang, for its OpenMP.
            if (section ~ /^[.]data[.]rel[.]ro/ || name == section || name ~ /^[.]gomp_critical_/)
                next
            if (section ~ /^([.]l?data|[.]l?bss|[.]tdata|[.]tbss|[*]COM[*])/)
                print object, name
        }' | sort -u
}

# The instrument first: it has to see state of every kind, and no constants.
cat >state.c <<'PROGRAM'
int shared = 1;
static int zeroed;
static _Thread_local int apart = 2;
const char *const constants[] = {"a", "b"};
int *hs_state(int which);
int *hs_state(int which) {
    static int inside = 3;
    return which == 0 ? &zeroed : which == 1 ? &apart : which == 2 ? &inside : &shared;
}
PROGRAM
cc -std=c17 -fPIC -c state.c
written_in state.o | sed 's/.* //; s/.*[.]//' >seen
diff <(printf '%s\n' apart inside shared zeroed) <(sort seen) || fail 'the state of a program made for it is not seen'

written_in "$libdir/libhalfstep.a" >written
grep -v '^#' "$list" | sort -u >explained
comm -13 explained written >unexplained
[[ ! -s unexplained ]] || fail "writable state that $list does not explain: $(cat unexplained)"

# What is explained is there, unless this build leaves out the whole object.
ar t "$libdir/libhalfstep.a" | sort >objects
comm -23 explained written | sort | join objects - >stale
[[ ! -s stale ]] || fail "explained in $list, and no state any more: $(cat stale)"
