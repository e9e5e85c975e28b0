#!/usr/bin/env bash
# Every program of the folder $2 builds against the installation alone, without a warning, and shows what it is there to
# show. Each has its judge below; one without a judge fails.
source "$(dirname "$0")/common.sh" "$1"
folder=$2

# at_least PATTERN COUNT: so many lines of the output have it.
at_least() { [[ $(grep -cE "$1" output) -ge $2 ]] || fail "$name: fewer than $2 lines with '$1'"; }

# The perceptron: the loss falls, nearly all points are right, and so are the cells of the drawing.
judge_mlp() {
    awk '/^step/ { if (last != "" && $4 + 0 >= last + 0) exit bad = 1; last = $4; count++ } END { exit bad || count < 5 }' \
        output || fail 'mlp: the loss does not fall'
    awk '/^right:/ { exit !($2 >= 0.97 * $4) }' output || fail 'mlp: too many points are wrong'
    grep -E '^[.#]+$' output | awk '
        { row[++rows] = $0 }
        END {
            columns = length(row[1])
            for (i = 1; i <= rows; i++)
                for (j = 1; j <= columns; j++) {
                    x = (2 * j - 1) / columns - 1
                    y = (2 * i - 1) / rows - 1
                    right += substr(row[i], j, 1) == (x * x + y * y < 0.5 ? "#" : ".")
                }
            exit !(rows > 10 && columns > 20 && right >= 0.95 * rows * columns)
        }' || fail 'mlp: the drawing is not of a disc'
}

# Numbers: those of the policy's section 1. Products: bf16 keeps its bits at every size; fp16 has more of them where the
# numbers suit it, overflows where sums are beyond 65504, and loses all where operands round to 0.
judge_products() {
    at_least '^1 [+] 2\^-10 .* 0x3c01 .* 0x3f80 1$' 1
    at_least '^1 [+] 2\^-11 .* 0x3c00 1 .* 0x3f80 1$' 1
    at_least '^largest of fp16 .* 0x7bff 65504 .* 0x4780 65536$' 1
    at_least '^just beyond it .* 0x7c00 inf .* 0x4780 65536$' 1
    awk '
        /^product/ { table = 1; next }
        table && $1 == 100 { if ($0 !~ / infinite .* off by/) bad = 1; rows++; next }
        table && NF > 6 {
            fp16 = $5; bf16 = $8; rows++
            if (bf16 + 0 > 0.01 || bf16 + 0 < 1e-4) bad = 1
            if ($1 == 1 && fp16 * 4 >= bf16) bad = 1
            if ($1 == 1e-05 && fp16 + 0 != 1) bad = 1
        }
        END { exit bad || rows != 4 }' output || fail 'products: the table shows something else'
}

# Overflow: the first attempts are skipped, each names its operation and keeps the weights, the scale halves with each
# and is kept or doubles with the others, and no step is left out.
judge_overflow() {
    at_least '^  why: .* is (inf|nan) at element [0-9]+' 1
    at_least '^       writes .* [1-9][0-9]* of [0-9]+ not finite$' 1
    awk '
        $1 == "attempt" {
            count++
            skipped = $0 ~ /skipped: /
            if ($2 != count || $6 != (count == 1 ? 16777216 : next_scale) || $4 != step + 1) exit bad = 1
            if (skipped && ($8 != $6 / 2 || $0 !~ /skipped: [a-z0-9._]+, (inf|nan); weights unchanged$/)) exit bad = 1
            if (!skipped && ($0 !~ /applied: / || ($8 != $6 && $8 != 2 * $6))) exit bad = 1
            skips += skipped
            step += !skipped
            next_scale = $8
        }
        END { exit bad || step != 5 || skips < 5 }' output || fail 'overflow: an attempt is not as it should be'
}

for source in "$folder"/*.c; do
    name=$(basename "$source" .c)
    cp "$source" "$name.c"
    # shellcheck disable=SC2046 # the flags are words
    cc -std=c17 -Wall -Wextra -Wpedantic -Werror "$name.c" $(pkg-config --cflags --libs halfstep) -o "$name"
    "./$name" >output || fail "$name ends with $?"
    cat output
    if [[ $name == fixture ]]; then
        judge_fixture output
    else
        "judge_$name"
    fi
done
