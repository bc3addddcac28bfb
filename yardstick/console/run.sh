#!/usr/bin/env bash
# The console in a real browser: a person who decides, and a real sub-agent at the other end of a WebSocket.
#   console/run.sh PRISM
# Screenshots of every page, light and dark, wide and phone-sized, go to $CONSOLE_SHOTS (default: target/console).
# CHROMIUM=FILE names the browser. Exit 0: everything works. 1: it does not. 2: could not run.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="$(realpath "${1:-}" 2>/dev/null)"
[ -x "$prism" ] || die "usage: console/run.sh PRISM"
chromium="$(yard_chromium)" || exit 2
dir="$(yard_npm console)" || exit 2
shots="${CONSOLE_SHOTS:-$YARD/../target/console}"
rm -rf "$shots" && mkdir -p "$shots" || exit 2
work="$(mktemp -d "${TMPDIR:-/tmp}/console-XXXXXX")" || exit 2
# Everything that was started here has this home.
yard_end_with "$work" "^PRISM_HOME=$work/home$"
mkdir -m 700 "$work/home" && mkdir "$work/project" || exit 2
timeout 300 node "$dir/console.mjs" "$prism" "$chromium" "$work" "$shots"
