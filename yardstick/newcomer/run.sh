#!/usr/bin/env bash
# What a new user types, from an empty home to a tool call with what is then in Cursor's and in Claude Code's config.
#   newcomer/run.sh PRISM
# Prints the transcript, then what a client gets that reads those configs as the two programs do.
# Exit 0: it works. 1: it does not. 2: could not run.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
prism="$(realpath "${1:-}" 2>/dev/null)"
[ -x "$prism" ] || die "usage: newcomer/run.sh PRISM"
dir="$(yard_npm clients)" || exit 2

typed=(
  "prism add demo -- prism demo-server"
  "prism install cursor claude-code"
  "prism serve --detach"
)
most=3 width=80

work="$(mktemp -d "${TMPDIR:-/tmp}/new-XXXXXX")" || exit 2
mkdir -p "$work/bin" "$work/home"
ln -s "$prism" "$work/bin/prism"
node="$(command -v node)"
# Of the person's environment only what every shell has: no PRISM_*, no XDG_*.
as_user() { (cd "$work/home" && exec env -i HOME="$work/home" PATH="$work/bin:$PATH" TMPDIR="${TMPDIR:-/tmp}" LANG=C.UTF-8 "$@"); }
# Everything that was started here has this home.
left() { grep -lzx "HOME=$work/home" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
finish() {
  as_user timeout 60 prism stop >/dev/null 2>&1
  for pid in $(left); do kill "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 2' INT TERM

# Users have the port that is in the docs. Where somebody else has it, this daemon needs another, and a file that says so.
free() { "$node" -e 'require("net").createServer().on("error", () => process.exit(1)).listen(+process.argv[1], "127.0.0.1", function () { console.log(this.address().port); this.close(); })' "$1"; }
if free 7420 >/dev/null; then
  echo "# an empty home, every default (port 7420 is free)"
else
  port="$(free 0)"
  mkdir -m 700 "$work/home/.prism" && echo "port = $port" >"$work/home/.prism/prism.toml"
  echo "# an empty home, but for one line: port 7420 is taken on this machine, so prism.toml says port = $port"
fi

checks=0 passed=0
check() { # check WHAT COMMAND...
  local what="$1" mark=FAIL
  shift
  checks=$((checks + 1))
  if "$@"; then mark="ok  " passed=$((passed + 1)); fi
  verdicts+="$mark $what"$'\n'
}
verdicts=""
for line in "${typed[@]}"; do
  echo "\$ $line"
  # Split at blanks as a shell would: nothing here is quoted.
  # shellcheck disable=SC2086
  as_user timeout 60 $line 2>&1
  check "exit 0: $line" test "$?" = 0
done
check "${#typed[@]} commands, $most at most" test "${#typed[@]}" -le "$most"
longest="$(printf '%s\n' "${typed[@]}" | wc -L)"
check "none longer than a line: $longest characters" test "$longest" -le "$width"

answers() { # answers CLIENT FILE: lists and calls, and gets back what it said
  local phrase="hello from $1" answer
  answer="$(as_user timeout 60 "$node" "$dir/configured.mjs" "$1" "$2" demo__echo "$phrase" 2>&1)" || { echo "$answer"; return 1; }
  "$node" -e '
    const [client, file, phrase, answer] = process.argv.slice(1), { url, tools, said } = JSON.parse(answer);
    console.log(`${client}, by ~/${file}: ${url}, ${tools.length} tools; demo__echo says ${JSON.stringify(said)}`);
    process.exit(tools.includes("demo__echo") && said === phrase ? 0 : 1);
  ' "$1" "$2" "$phrase" "$answer"
}
check "a call with Cursor's config" answers cursor-vscode .cursor/mcp.json
check "a call with Claude Code's config" answers claude-code .claude.json
echo "\$ prism stop"
check "exit 0: prism stop" as_user timeout 60 prism stop
for _ in $(seq 100); do [ -n "$(left)" ] || break; sleep 0.05; done
check "no process is left" test -z "$(left)"
echo
printf '%s' "$verdicts"
echo "newcomer: $passed/$checks checks passed, ${#typed[@]} commands to a working call"
[ "$passed" = "$checks" ]
