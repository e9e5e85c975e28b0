#!/usr/bin/env bash
# The installed manual pages are shown without a warning, say all that the installed trainer's --help says, and name the
# library's headers and no function that there is none of.
source "$(dirname "$0")/common.sh" "$1"
trainer=$prefix/bin/trainer man=$(dirname "$(find "$prefix" -path '*/man1/trainer.1')")/..
pages=("$man/man1/trainer.1" "$man/man3/halfstep.3")

renderers=0
for page in "${pages[@]}"; do
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W warning "$page" || fail "mandoc does not like $page"
        renderers=$((renderers + 1))
    fi
    if command -v groff >/dev/null; then
        groff -man -T utf8 -ww -z "$page" >said 2>&1 || true
        [[ ! -s said ]] || fail "groff does not like $page: $(cat said)"
        renderers=$((renderers + 1))
    fi
done
if [[ $renderers -eq 0 ]]; then
    printf 'skipped: neither mandoc nor groff is installed\n'
    exit 77
fi

# show PAGE: the page as one long line of words, as a reader sees it.
show() {
    if command -v mandoc >/dev/null; then
        mandoc -T utf8 -O width=500 "$1"
    else
        groff -man -T utf8 -rHY=0 -rLL=2000n -P -cbou "$1"
    fi | sed $'s/.\b//g' | tr -s '[:space:]' ' '
}

show "${pages[0]}" >shown
"$trainer" --help | sed -n 's/^\([a-z][a-z-]*\)  .*/\1/p' >commands
[[ $(wc -l <commands) -ge 9 ]] || fail 'trainer --help names too few commands'
{ printf '\n' && cat commands; } | while read -r command; do
    # Without the usage, which stands at the top of the page; paragraph by paragraph.
    # shellcheck disable=SC2086 # no command is no word
    "$trainer" $command --help | sed '1,/^$/d' | awk '
        /^$|^  --|^[a-z-]+  +/ { print paragraph; paragraph = "" }
        { paragraph = paragraph " " $0 }
        END { print paragraph }' | tr -s ' ' | sed 's/^ //; s/ $//; /^$/d; s/^\([A-Z][A-Za-z ]*\):$/\1/' >paragraphs
    while IFS= read -r paragraph; do
        grep -qF -e "$paragraph" shown || fail "trainer.1 does not say what trainer $command --help says: $paragraph"
    done <paragraphs
done
"$trainer" --help | sed '/^$/,$d; s/^Usage: //' | tr -s ' ' | sed 's/^ //' >usages
while IFS= read -r usage; do
    grep -qF -e "$usage" shown || fail "the usage is not in trainer.1: $usage"
done <usages

show "${pages[1]}" >shown
for header in "$prefix"/include/halfstep/*.h; do
    grep -qF "halfstep/$(basename "$header")" shown || fail "halfstep.3 does not name $(basename "$header")"
done
cat "$prefix"/include/halfstep/*.h >headers
grep -oE 'hstep_[a-z0-9_]+\(\)' shown | tr -d '()' | sort -u >named
[[ $(wc -l <named) -gt 10 ]] || fail 'halfstep.3 names too few functions'
while read -r name; do
    grep -qE "[ *]$name\(" headers || fail "halfstep.3 names $name, which no header declares"
done <named
