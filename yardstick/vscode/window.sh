#!/usr/bin/env bash
# Opens a folder in a real VS Code, with Prism's extension, and stays until stdin ends.
#   PRISM_HOME=HOME vscode/window.sh VERSION FOLDER
# Hands for its window: see window.mjs. CHROMIUM=FILE names the browser; EXTENSION=FOLDER another extension than this tree's;
# SIZE=1280x860 is the window's, which is small if nobody says so: what is not looked at need not be painted.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
[ $# = 2 ] && [ -d "$2" ] && [ -n "${PRISM_HOME:-}" ] || die "usage: PRISM_HOME=HOME vscode/window.sh VERSION FOLDER"
chromium="$(yard_chromium)" || exit 2
code="$("$YARD/vscode/install.sh" "$1")" || exit 2
dir="$(yard_npm vscode)" || exit 2
exec node "$dir/window.mjs" --code "$code" --chromium "$chromium" --home "$PRISM_HOME" \
  --extension "${EXTENSION:-$YARD/../editors/vscode}" --size "${SIZE:-640x420}" "$2"
