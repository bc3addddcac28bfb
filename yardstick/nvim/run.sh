#!/usr/bin/env bash
# The Neovim plugin: its own tests, and a person and an agent in one Neovim on a terminal.
#   nvim/run.sh PRISM [system|SUITE]
# Exit 0: all of it works. 1: it does not. 2: could not run. 77: there is no Neovim to be had, and why.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="$(realpath "${1:-}" 2>/dev/null)"
[ -x "$prism" ] || die "usage: nvim/run.sh PRISM [system|SUITE]"
here="$(cd "$(dirname "$0")" && pwd)"
nvim="$("$here/install.sh" "${2:-system}")" || exit 77
dir="$(yard_npm editor)" || exit 2
work="$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/nvim-run-XXXXXX")")" || exit 2
# Everything that was started here has this home.
yard_end_with "$work" "^PRISM_HOME=$work/home$"
mkdir -m 700 "$work/home" || exit 2
timeout 30 "$nvim" --headless -u NONE -i NONE -c "luafile $here/self.lua" -c 'qall!' </dev/null >"$work/self" 2>&1
cat "$work/self"
echo
# An error in a script does not show in Neovim's exit code.
grep -q 'nvim: \([0-9]*\) of \1 parts are right' "$work/self" || exit 1
# One that was unpacked is run by the loader, which it takes for itself.
case "$nvim" in "$CACHE"/*) export APART=1 ;; esac
timeout 180 node "$here/person.mjs" "$dir" "$prism" "$work" "$nvim" "$here/init.lua"
