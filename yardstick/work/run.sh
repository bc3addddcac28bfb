#!/usr/bin/env bash
# Real work in the sandbox: an agent with a grant, without network, builds, tests and looks for errors with the tools that people
# use; what they have downloaded before is there, and what needs the network says so.
#   work/run.sh PRISM
# The table goes to $WORK_TABLE (default: target/work/table.md) as well. A tool that is not installed is a row that is skipped.
# Exit 0: everything works. 1: it does not. 2: could not run. 77: there is no sandbox here.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="$(realpath "${1:-}" 2>/dev/null)"
[ -x "$prism" ] || die "usage: work/run.sh PRISM"
command -v bwrap >/dev/null || { echo "work: install bubblewrap" >&2; exit 77; }
dir="$(yard_npm work)" || exit 2
# Language servers, and an environment of Python outside of every project: those of the editor's yardstick.
servers="$(yard_npm editor)" || exit 2
python="$(yard_venv editor/python)" || exit 2
missing="$(yard_rust)" || export WORK_LACKS_RUST="$missing"
WORK_CHROMIUM="$(yard_chromium 2>/dev/null)"
export WORK_CHROMIUM WORK_VENV="${python%/bin/python}" WORK_KEPT="$CACHE/work-kept"
table="${WORK_TABLE:-$YARD/../target/work/table.md}"
mkdir -p "$(dirname "$table")" "$WORK_KEPT" || exit 2
work="$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/work-XXXXXX")")" || exit 2
# Everything that was started here has this home, or was started by somebody who had it.
yard_end_with "$work" "^(PRISM_HOME=$work/home|PRISM_CHILD_OF=$work/home\|.*)$"
mkdir -m 700 "$work/home" || exit 2
# A project's own settings, and nobody else's, decide where cargo builds, and where go keeps what it has built.
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR GOCACHE GOMODCACHE GOFLAGS GOPROXY
PATH="$servers/node_modules/.bin:$PATH" timeout 420 node "$dir/work.mjs" "$prism" "$work" "$table"
