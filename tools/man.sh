#!/usr/bin/env bash
# man.sh FRAME PAGE VERSION [TRAINER]: makes the manual page of a frame in docs/man. Lines of it that say
#   .\" usage            become the lines of the usage that TRAINER --help begins with,
#   .\" help COMMAND     what TRAINER COMMAND --help says, so that the page says what the program says.
set -euo pipefail
frame=$1 page=$2 version=$3 trainer=${4:-}

help_of() {
    "$trainer" "$@" --help | awk -v of="$*" '
        function escape(text) {
            gsub(/\\/, "\\e", text)
            gsub(/-/, "\\-", text)
            return text ~ /^[.\047]/ ? "\\&" text : text
        }
        # An option or command in bold, what it takes in italics, and what stands behind two spaces as its text.
        function option(line,    text, words) {
            sub(/^ +/, "", line)
            text = match(line, /  +/) ? substr(line, RSTART + RLENGTH) : ""
            if (RSTART > 0)
                line = substr(line, 1, RSTART - 1)
            words = match(line, / /) ? "\\fI" escape(substr(line, RSTART + 1)) "\\fR" : ""
            sub(/ .*/, "", line)
            printf ".TP\n\\fB%s\\fR%s\n", escape(line), words != "" ? " " words : ""
            if (text != "")
                print escape(text)
        }
        /^Usage:/ { usage = 1 }
        usage && /^$/ { usage = 0; printf ".SS %s\n", of == "" ? "Without a command" : "trainer " of; fresh = 1; next }
        usage { next }
        /^$/ { apart = 1; next }
        /^  --/ { option($0); fresh = apart = 0; next }
        /^ / { sub(/^ +/, ""); print escape($0); next }
        # A row of a command and what it does.
        of == "" && /^[a-z-]+  +/ { option($0); fresh = apart = 0; next }
        {
            if (!fresh)
                print apart ? ".PP" : ""
            if (/:$/ && /^[A-Z][A-Za-z ]*:$/ && length($0) < 40) {
                print "\\fB" escape(substr($0, 1, length($0) - 1)) "\\fR"
            } else
                print escape($0)
            fresh = 0
            apart = 0
        }' | grep -v '^$'
}

while IFS= read -r line; do
    case $line in
    '.\" usage')
        "$trainer" --help | sed -n '1,/^$/ { s/^Usage: /       /; s/^       //; s/\\/\\e/g; s/-/\\-/g; /./p }'
        ;;
    '.\" help'*)
        read -ra command <<<"${line#*help}"
        help_of "${command[@]}"
        ;;
    *) printf '%s\n' "${line//@PROJECT_VERSION@/$version}" ;;
    esac
done <"$frame" >"$page"
