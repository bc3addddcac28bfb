#!/usr/bin/env bash
# Opens a folder in a headless Neovim with Prism's plugin, and ends it when stdin does.
#   nvim/open.sh FOLDER
# NVIM names the program (default: what nvim/install.sh has). The daemon is found by PRISM_HOME. Nothing of the person's is read
# or written: settings, swap and history have a folder of their own.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
folder="$(realpath "${1:?usage: nvim/open.sh FOLDER}")" || exit 2
nvim="${NVIM:-$("$here/install.sh")}" || exit 2
work="$(mktemp -d "${TMPDIR:-/tmp}/nvim-XXXXXX")" || exit 2
cache="${YARDSTICK_CACHE:-$HOME/.cache/yardstick}"
export XDG_CONFIG_HOME="$work" XDG_DATA_HOME="$work" XDG_STATE_HOME="$work"
export XDG_CACHE_HOME="$work" XDG_RUNTIME_DIR="$work"
export PATH="$cache/editor/node_modules/.bin:$PATH"
cd "$folder" || exit 2
# It stays in the group of whoever started this, so that ending the group ends it at once; language servers end with
# their stdin.
"$nvim" --headless -u "$here/init.lua" -i NONE </dev/null >"$work/out" 2>&1 &
editor=$!
finish() {
  kill "$editor" 2>/dev/null
  for _ in $(seq 40); do kill -0 "$editor" 2>/dev/null || break; sleep 0.05; done
  kill -KILL "$editor" 2>/dev/null
  grep -v 'SIGTERM\|preserving files\|Finished' "$work/out" >&2
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP
# Whoever started this holds stdin; if Neovim dies first, that is told.
while kill -0 "$editor" 2>/dev/null; do
  read -r -t 0.2 _
  [ $? != 1 ] || break
done
kill -0 "$editor" 2>/dev/null || { echo "nvim/open.sh: Neovim has ended" >&2; exit 1; }
