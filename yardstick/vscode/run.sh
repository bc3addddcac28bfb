#!/usr/bin/env bash
# The extension in real windows of VS Code 1.99.3 (what Void is made of) and 1.139.1: the person's part, both typing, what breaks, and
# the contract.
#   vscode/run.sh PRISM
# CONTRACT=FILE is the workspace's built test program `it`: then the contract is played, and nothing else. CHROMIUM=FILE names the browser.
# Screenshots, light and dark, go to $VSCODE_SHOTS (default: target/vscode). PERSON_ONLY: see vscode.mjs.
# Exit 0: everything works. 1: it does not. 2: could not run. 77: an editor cannot be had here, and why.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="$(realpath "${1:-}" 2>/dev/null)"
[ -x "$prism" ] || die "usage: vscode/run.sh PRISM"
chromium="$(yard_chromium)" || exit 77
code="$("$YARD/vscode/install.sh")" || exit 77
old="$(head -1 <<<"$code")" new="$(tail -1 <<<"$code")"
dir="$(yard_npm vscode)" || exit 2
shots="${VSCODE_SHOTS:-$YARD/../target/vscode}"
[ -n "${CONTRACT:-}" ] || { rm -rf "$shots" && mkdir -p "$shots"; } || exit 2
work="$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/v-XXXXXX")")" || exit 2
extension="$(realpath "$YARD/../editors/vscode")"

# Everything that was started here has a folder of ours in its environment.
yard_end_with "$work" "$work/"

# Folders have short names: a socket's path has 107 letters.
scenarios() { # VERSION PROGRAM SCENARIO…
  local own
  own="$(mktemp -d "$work/XXX")" && mkdir -m 700 "$own/home" || return 2
  TMPDIR="$own" timeout 240 node "$dir/vscode.mjs" "$prism" "$own" "$shots" "$chromium" "$extension" "$2" "$1" "${@:3}"
}

contract() { # VERSION
  local own
  own="$(mktemp -d "$work/XXX")" || return 2
  TMPDIR="$own" PRISM_EDITOR="vscode-$1" PRISM_EDITOR_COMMAND="'$YARD/vscode/window.sh' $1" PRISM_TESTED_BINARY="$prism" \
    timeout 400 "$CONTRACT" --nocapture contract::a_real_editor_keeps_the_contract
}

# How soon an agent hears of a key is measured with nothing beside it. After that both go on at once, and share the person's part.
typing_and_breaking() {
  PERSON_ONLY="${PERSON_ONLY-where an agent edits|the tree|the keyboard}" \
    scenarios 1.99.3 "$old" typing breaking person
}
deciding() {
  PERSON_ONLY="${PERSON_ONLY-request|accident|elsewhere|at once|types|confirmed|runs is seen|config waits}" \
    scenarios 1.139.1 "$new" person
}
is_measured() { grep -qs 'cursor event' "$work/out-1" || ! kill -0 "$1" 2>/dev/null; }

running=()
begin() { # COMMAND…
  "$@" >"$work/out-$((${#running[@]} + 1))" 2>&1 &
  running+=($!)
}
if [ -n "${CONTRACT:-}" ]; then
  begin contract 1.99.3
  begin contract 1.139.1
else
  begin typing_and_breaking
  until is_measured "${running[0]}"; do sleep 0.1; done
  begin deciding
fi
status=0
for i in "${!running[@]}"; do
  wait "${running[i]}" || status=1
  cat "$work/out-$((i + 1))"
done
if [ -n "${CONTRACT:-}" ]; then
  kept="$(cat "$work"/out-* | grep -c '^test contract::a_real_editor_keeps_the_contract ... ok$')"
  echo "vscode: the contract is kept by $kept of 2 versions"
else
  passed="$(cat "$work"/out-* | sed -n 's/^vscode [0-9.]*: \([0-9]*\)\/\([0-9]*\) checks passed$/\1 \2/p' | awk '{ passed += $1; all += $2 } END { print passed "/" all }')"
  echo "vscode: $passed checks passed; $(find "$shots" -name '*.png' | wc -l) screenshots"
fi
exit "$status"
