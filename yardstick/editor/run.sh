#!/usr/bin/env bash
# The checklist of a sub-agent's life (E-04), item by item: sub-agents over real WebSockets, in a project of Rust, one of Python and
# one of TypeScript, with the real language servers.
#   editor/run.sh PRISM
# The table verb × language in milliseconds goes to $EDITOR_TABLE (default: target/editor/table.md) as well.
# Exit 0: everything works. 1: it does not. 2: could not run.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="$(realpath "${1:-}" 2>/dev/null)"
[ -x "$prism" ] || die "usage: editor/run.sh PRISM"
command -v git >/dev/null || die "git is needed"
dir="$(yard_npm editor)" || exit 2
languages=typescript
skipped() { echo "editor: $1 is skipped: $2"; }
if python="$(yard_venv editor/python)"; then
  languages="$languages python"
  PATH="$(dirname "$python"):$PATH"
else skipped Python "pytest cannot be installed"; fi
if missing="$(yard_rust)"; then languages="rust $languages"; else skipped Rust "type: $missing"; fi
table="${EDITOR_TABLE:-$YARD/../target/editor/table.md}"
mkdir -p "$(dirname "$table")" || exit 2
work="$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/editor-XXXXXX")")" || exit 2
# Everything that was started here has this home, or was started by somebody who had it.
yard_end_with "$work" "^(PRISM_HOME=$work/home|PRISM_CHILD_OF=$work/home\|.*)$"
mkdir -m 700 "$work/home" || exit 2
# A project's own settings, and nobody else's, decide where cargo builds.
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR
export EDITOR_READABLE="$dir/node_modules:$CACHE/venv-python"
PATH="$dir/node_modules/.bin:$PATH" timeout 300 node "$dir/editor.mjs" "$prism" "$work" "$table" $languages
