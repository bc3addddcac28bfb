#!/usr/bin/env bash
# Real servers behind one hub: server-everything, server-filesystem, server-memory (npm), mcp-server-time and
# mcp-server-git (PyPI), a sixth that cannot start and a seventh that never says a word.
#   servers/run.sh --config DIR     fills DIR with what the servers work on, and prints a prism.toml that has all seven
#   servers/run.sh URL DIR          checks the hub at URL that serves it, in both eras
# YARD_DAEMON=PID is the hub's process: the check kills one of its children. YARD_AUTH="Bearer ..." is sent as the
# Authorization header.
# Exit 0: all as it should be. 1: not all. 2: could not run.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
[ $# -eq 2 ] || die "usage: servers/run.sh --config DIR | servers/run.sh URL DIR"
command -v git >/dev/null || die "git is needed"
dir="$(yard_npm servers)" || exit 2
if [ "$1" = --config ]; then
  python="$(yard_venv servers/servers)" || exit 2
  mkdir -p "$2/files" && git init -q "$2/repository" || die "cannot fill $2"
  git -C "$2/repository" -c user.name=yard -c user.email=yard@example.com commit -q --allow-empty -m "The yard's first commit" ||
    die "cannot commit to $2/repository"
  exec node "$dir/config.mjs" "$dir/node_modules/@modelcontextprotocol" "$(dirname "$python")" "$2"
fi
[ -n "${YARD_DAEMON:-}" ] || die "YARD_DAEMON must be the hub's process id"
exec node "$dir/servers.mjs" "$1" "$2"
