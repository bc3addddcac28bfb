#!/usr/bin/env bash
# Clients on the SDKs that people use, by every way to servers of both eras, and directly: what is whole directly is whole by Prism.
#   sdks/run.sh PRISM [CLIENT...]     clients: python-1 python-2 fastmcp-2 fastmcp-4 openai-agents strands ts-1 ts-2   (default: all)
# OUT=FILE keeps the JSON lines. Exit 0: everything is whole. 1: it is not. 2: could not run.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="$(realpath "${1:-}" 2>/dev/null)"
[ -x "$prism" ] || die "usage: sdks/run.sh PRISM [CLIENT...]"
shift
[ $# -gt 0 ] || set -- openai-agents strands fastmcp-4 fastmcp-2 python-2 python-1 ts-2 ts-1
YARD_OLD="$(yard_venv clients/py-v1)" && YARD_BOTH="$(yard_venv peers/fastmcp)" || exit 2
export YARD_OLD YARD_BOTH PYTHONDONTWRITEBYTECODE=1
here="$YARD/sdks"
commands=()
for client in "$@"; do
  case "$client" in
    python-1) command="$YARD_OLD $here/client_python1.py" ;;
    python-2) py="$(yard_venv clients/py-v2)" && command="$py $here/client_python2.py" ;;
    fastmcp-2) py="$(yard_venv sdks/fastmcp2)" && command="$py -W ignore $here/client_fastmcp.py" ;;
    fastmcp-4) command="$YARD_BOTH -W ignore $here/client_fastmcp.py" ;;
    openai-agents) py="$(yard_venv sdks/openai)" && command="$py $here/client_openai.py" ;;
    strands) py="$(yard_venv sdks/strands)" && command="$py $here/client_strands.py" ;;
    ts-1) dir="$(yard_npm sdks)" && command="node $dir/client-v1.mjs" ;;
    ts-2) dir="$(yard_npm sdks)" && command="node $dir/client-v2.mjs" ;;
    *) die "unknown client $client" ;;
  esac || exit 2
  commands+=("$client=$command")
done
work="$(mktemp -d "${TMPDIR:-/tmp}/sdks-XXXXXX")" || exit 2
# Everything that is started here has this home, or that of the other daemon.
yard_end_with "$work" "^PRISM_HOME=$work/home"
PRISM_HOME="$work/home" timeout 900 python3 "$here/sdks.py" "$prism" "$work" "${commands[@]}"
