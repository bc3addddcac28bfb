#!/usr/bin/env bash
# Every revision on the client's side on every kind of server: 25 cells, nine letters each.
#   matrix/run.sh BASE_URL [--front REVISION]... [--back NAME]...
#   matrix/run.sh --direct URL --front REVISION     one front on one server, no bridge: shows that the check is right
# BASE_URL/{back}/mcp and BASE_URL/{back}/sse must front everything-server/run.sh as: stdio-legacy (--legacy-only),
# stdio-modern (--modern-only), http-legacy, http-modern (the same with --http PORT), sse (--sse PORT).
# YARD_AUTH="Bearer ..." is sent as the Authorization header.
# Exit 0: every cell is whole. 1: some are not. 2: could not run.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
[ $# -gt 0 ] || die "usage: matrix/run.sh BASE_URL [--front REVISION]... [--back NAME]... | --direct URL --front REVISION"
command -v node >/dev/null || die "node is needed"
exec node "$YARD/matrix/matrix.mjs" "$@"
