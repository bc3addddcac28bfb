#!/usr/bin/env bash
# The agents that people use, as npm has them, against Prism, with a model on loopback and without an account: each finds
# Prism by what `prism install` wrote into its config, and nothing else. Then each sits idle at a terminal, and a signal is
# sent to it by every way that Prism has (needs tmux). They are large (1.2 GB) and not free software, so this runs only where
# PRISM_REAL_CLIENTS=1 says so.
#   real-clients/run.sh PRISM [AGENT...]     agents: claude-code codex opencode     (default: all)
# Exit 0: every agent did everything. 1: some did not. 2: could not run.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="${1:-}"
[ -x "$prism" ] || die "usage: real-clients/run.sh PRISM [AGENT...]"
shift
[ "${PRISM_REAL_CLIENTS:-}" = 1 ] || die "set PRISM_REAL_CLIENTS=1 to fetch and run the real agents"
command -v tmux >/dev/null || die "tmux is needed"
[ $# -gt 0 ] || set -- claude-code codex opencode
for a in "$@"; do
  case "$a" in claude-code | codex | opencode) ;; *) die "unknown agent $a" ;; esac
done
dir="$(yard_npm real-clients)" || exit 2
prism="$(realpath "$prism")"
failed=0
node "$dir/real-clients.mjs" "$prism" "$@" || failed=$?
[ "$failed" -le 1 ] || exit "$failed"
node "$dir/wake.mjs" "$prism" "$@" || failed=$?
exit "$failed"
