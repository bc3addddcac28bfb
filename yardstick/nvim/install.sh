#!/usr/bin/env bash
# Brings a Neovim of 0.10 or later onto the machine and prints its path.
#   nvim/install.sh [system|SUITE]
# `system` (the default) is the one on PATH, else the distribution's package, or where both are too old, trixie's. SUITE
# is another release of the distribution (trixie has 0.10, sid 0.12): its packages are unpacked below the cache and run
# with their own C library, and the system stays as it is. The mirror is the one that the machine uses already.
# Exit 0: it is there. 2: it cannot be had here, and why.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
which="${1:-system}"

is_new_enough() { "$1" --version 2>/dev/null | head -1 | grep -qE '^NVIM v(0\.[1-9][0-9]|[1-9])'; }

system() {
  local nvim candidate
  nvim="$(command -v nvim)"
  if [ -n "$nvim" ] && is_new_enough "$nvim"; then echo "$nvim"; return; fi
  candidate="$(apt-cache policy neovim 2>/dev/null | sed -n 's/^ *Candidate: *//p')"
  if [ -z "$nvim" ] && [ "$(id -u)" = 0 ] && dpkg --compare-versions "${candidate:-0}" ge 0.10; then
    quiet timeout 300 apt-get install -y --no-install-recommends neovim || die "the package neovim cannot be installed"
    command -v nvim
  else
    unpacked trixie
  fi
}

# A private apt: its own lists, its own state, nothing installed.
private_apt() {
  timeout 300 apt-get -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$dir/sources" \
    -o Dir::State::Lists="$dir/lists" -o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" "$@"
}

unpacked() {
  local suite="$1" dir="$CACHE/nvim-$1" mirror source package loader
  [[ "$suite" =~ ^[a-z-]+$ ]] || die "usage: nvim/install.sh [system|SUITE]"
  yard_lock
  if [ ! -e "$dir/.installed" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "this needs a Debian"
    source=/etc/apt/sources.list.d/debian.sources
    mirror="$(sed -n 's/^URIs: *//p' "$source" 2>/dev/null | head -1)"
    [ -n "$mirror" ] || die "$source names no mirror"
    rm -rf "$dir"
    mkdir -p "$dir"/{sources,lists/partial,cache/archives/partial,root}
    : >"$dir/status"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$mirror" "$suite" \
      "$(sed -n 's/^Signed-By: *//p' "$source" | head -1)" >"$dir/sources/suite.sources"
    quiet private_apt update || die "the suite $suite cannot be reached"
    quiet private_apt -y --no-install-recommends --download-only install neovim ||
      die "$suite has no neovim for this machine"
    for package in "$dir"/cache/archives/*.deb; do
      dpkg-deb -x "$package" "$dir/root" || die "$package cannot be unpacked"
    done
    loader="$(find "$dir/root" -name 'ld-linux*' -path '*-linux-gnu*' | head -1)"
    [ -n "$loader" ] || die "$suite has another C library than is known here"
    cat >"$dir/nvim" <<RUN
#!/bin/sh
# Neovim of $suite, with the libraries that it was built with.
lib="$(dirname "$loader")"
export VIMRUNTIME="$dir/root/usr/share/nvim/runtime" LUA_CPATH="\$lib/lua/5.1/?.so;;"
exec "$loader" --library-path "\$lib:$dir/root/usr/lib" "$dir/root/usr/bin/nvim" "\$@"
RUN
    chmod +x "$dir/nvim"
    rm -rf "$dir/lists" "$dir/cache"
    "$dir/nvim" --version >/dev/null || die "the Neovim of $suite does not run here"
    : >"$dir/.installed"
  fi
  yard_unlock
  echo "$dir/nvim"
}

if [ "$which" = system ]; then system; else unpacked "$which"; fi
