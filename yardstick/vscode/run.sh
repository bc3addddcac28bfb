#!/usr/bin/env bash
# The extension in real windows of VS Code 1.99.3 (what Void is made of) and 1.139.1: the person's part, both typing, what breaks, and
# the contract.
#   vscode/run.sh PRISM
# CONTRACT=FILE is the workspace's built test program `it`; without it the contract is left out. CHROMIUM=FILE names the browser.
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
rm -rf "$shots" && mkdir -p "$shots" || exit 2
work="$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/v-XXXXXX")")" || exit 2
extension="$(realpath "$YARD/../editors/vscode")"

# Everything that was started here has a folder of ours in its environment.
left() { grep -lzF "$work/" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
finish() {
  for pid in $(left); do kill "$pid" 2>/dev/null; done
  for _ in $(seq 100); do [ -n "$(left)" ] || break; sleep 0.05; done
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 2' INT TERM

# Folders have short names: a socket's path has 107 letters.
scenarios() { # VERSION PROGRAM SCENARIO…
  local own
  own="$(mktemp -d "$work/XXX")" && mkdir -m 700 "$own/home" || return 2
  TMPDIR="$own" timeout 240 node "$dir/vscode.mjs" "$prism" "$own" "$shots" "$chromium" "$extension" "$2" "$1" "${@:3}"
}

contract() { # VERSION
  [ -n "${CONTRACT:-}" ] || { echo "the contract with VS Code $1 is left out: CONTRACT names no test program"; return; }
  local own
  own="$(mktemp -d "$work/XXX")" || return 2
  TMPDIR="$own" PRISM_EDITOR="vscode-$1" PRISM_EDITOR_COMMAND="'$YARD/vscode/window.sh' $1" PRISM_TESTED_BINARY="$prism" \
    timeout 400 "$CONTRACT" --nocapture contract::a_real_editor_keeps_the_contract
}

# How soon an agent hears of a key is measured with nothing beside it. After that each version goes on by itself.
first() {
  local status=0
  scenarios 1.99.3 "$old" typing breaking || status=1
  contract 1.99.3 || status=1
  return "$status"
}
second() {
  local status=0
  scenarios 1.139.1 "$new" person || status=1
  contract 1.139.1 || status=1
  return "$status"
}
first >"$work/first" 2>&1 &
one=$!
until grep -q 'cursor event' "$work/first" || ! kill -0 "$one" 2>/dev/null; do sleep 0.1; done
second >"$work/second" 2>&1 &
other=$!
status=0
wait "$one" || status=1
cat "$work/first"
wait "$other" || status=1
cat "$work/second"
echo "screenshots: $(find "$shots" -name '*.png' | wc -l)"
passed="$(cat "$work/first" "$work/second" | sed -n 's/^vscode [0-9.]*: \([0-9]*\)\/\([0-9]*\) checks passed$/\1 \2/p' | awk '{ passed += $1; all += $2 } END { print passed "/" all }')"
kept="$(cat "$work/first" "$work/second" | grep -c '^test contract::a_real_editor_keeps_the_contract ... ok$')"
echo "vscode: $passed checks passed, the contract is kept by $kept of 2 versions"
exit "$status"
