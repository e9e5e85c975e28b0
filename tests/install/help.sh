#!/usr/bin/env bash
# The document $2 shows what the installed trainer's --help says, word for word.
source "$(dirname "$0")/common.sh" "$1"
awk '
    $0 == "<!-- trainer train --help -->" { wanted = 1; next }
    wanted && /^```text$/                 { inside = 1; next }
    inside && /^```/                      { exit }
    inside' "$2" >shown
"$prefix/bin/trainer" train --help >said
[[ -s shown ]] || fail "$2 shows no help"
diff shown said || fail "$2 (<) and trainer train --help (>) differ"
