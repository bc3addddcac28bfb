"""Real clients on real servers, by every way that there is to them, and directly; the table says what is whole.

    sdks.py PRISM WORK CLIENT=COMMAND...       see run.sh

A check that fails counts where the same client has it whole on the same server directly: by the way that it comes (HTTP, SSE or
stdio), and by the way that Prism goes to the server. What only Prism can do (`lost`, `restart`) always counts.
"""
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = ("old", "both")
WAYS = {"url": "http", "hub": "http", "sse": "sse", "stdio": "stdio"}
CHECKS = {
    "list": "l", "call": "c", "unicode": "u", "900kB": "9", "progress": "p", "log": "g", "elicitation": "e", "sampling": "s",
    "list_changed": "n", "cancel": "x", "fail": "f", "lost": "t", "restart": "r",
}
# A hub's first list waits for a server that starts on a busy machine.
HUB_PATIENCE = 'patience = "30s"'
# When a call is given up, at the daemon that is asked for it.
LIMITS = 'request_timeout = "2s"\nmax_request_time = "4s"'
ONLY_PRISMS = ("lost", "restart")
# Clients at the same time, each with all of its cells; seconds until they come to the restart, and from there to the end.
CLIENTS_AT_ONCE = int(os.environ.get("YARD_CLIENTS", 3))
WORK_S, REST_S = 240, 120


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """A program that runs at two URLs, and on stdio for whoever starts `on_stdio`."""

    def __init__(self, name, python, folder, log):
        self.name = name
        door = f"{folder}/{name}.sock"
        self.on_stdio = [sys.executable, "-IS", str(HERE / "on_stdio.py"), door]
        words = [python, "-B", str(HERE / f"server_{name}.py")]
        self.processes = {how: subprocess.Popen(
            [*words, how, folder, *([door] if how == "stdio" else [])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
            text=True) for how in ("http", "sse", "stdio")}
        self.urls = {how: process.stdout.readline().strip() for how, process in self.processes.items()}
        if not all(self.urls.values()):
            raise SystemExit(f"sdks: the server {name} does not start")


class Daemon:
    """A Prism with a home and a port of its own."""

    def __init__(self, prism, home, settings):
        self.prism, self.home, port = prism, home, free_port()
        self.url = f"http://127.0.0.1:{port}"
        home.mkdir(mode=0o700)
        (home / "prism.toml").write_text(f"port = {port}\n{settings}")
        (home / "prism.toml").chmod(0o600)
        self.say("serve", "--detach")
        self.token = (home / "http-mcp-token").read_text().strip()

    def say(self, *words):
        env = {**os.environ, "PRISM_HOME": str(self.home)}
        done = subprocess.run([self.prism, *words], env=env, cwd=self.home, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise SystemExit(f"sdks: prism {' '.join(words)}: {done.stderr.strip()[-600:]}")

    def target(self, name, way):
        headers = {"Authorization": f"Bearer {self.token}"}
        if way == "stdio":
            env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PRISM_HOME": str(self.home)}
            return {"how": "stdio", "command": [self.prism, "stdio", name], "env": env}
        path = {"url": f"/{name}/mcp", "hub": f"/mcp?only={name}", "sse": f"/{name}/sse"}[way]
        return {"how": WAYS[way], "url": self.url + path, "headers": headers}


def config(places, settings=""):
    """A prism.toml with these servers: commands, or URLs."""
    lines = [settings, "max_sessions = 1000", "[hub]", HUB_PATIENCE]
    for name, place in places.items():
        key = "url" if isinstance(place, str) else "command"
        lines += [f"[server.{name}]", f"{key} = {json.dumps(place)}", "legacy_sse = true"]
    return "\n".join(lines)


def cells_of(client, servers, daemon, short, folder):
    """Every way to every server, and the same directly."""
    cells = []

    def add(server, way, direct, **more):
        key = f"{client}-{server}-{way}{'-direct' if direct else ''}".replace("-", "_")
        cells.append({"server": server, "way": way, "direct": direct, "key": key, "folder": folder, **more})

    for server in servers:
        for how in ("http", "sse", "stdio"):
            env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PRISM_HOME": os.environ["PRISM_HOME"]}
            at = {"command": server.on_stdio, "env": env} if how == "stdio" else {"url": server.urls[how], "headers": {}}
            add(server.name, how, True, target={"how": how, **at})
        for way in WAYS:
            lost = {"target": daemon.target(f"ends-{client}-{server.name}-{way}", way), "tool": "die"}
            add(server.name, way, False, target=daemon.target(server.name, way), lost=lost)
            name = f"{server.name}-http"
            lost = {"target": short.target(name, way), "tool": "wait"}
            add(name, way, False, target=daemon.target(name, way), lost=lost)
    return cells


class Client:
    """A client's process, which plays all of its cells."""

    def __init__(self, name, command, cells, log):
        self.name, self.cells, self.lines = name, cells, []
        self.is_ready = threading.Event()
        self.process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
        self.process.stdin.write(json.dumps(cells) + "\n")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                if said.get("ready"):
                    self.is_ready.set()
                else:
                    self.lines.append(said)
        self.is_ready.set()

    def go_on(self):
        try:
            self.process.stdin.write("go\n")
        except OSError:
            pass  # it has ended, which its missing cells will say

    def end(self, deadline):
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(2)
        told = {(line["server"], line["way"], line["direct"]) for line in self.lines}
        for cell in self.cells:
            key = cell["server"], cell["way"], cell["direct"]
            if key not in told:
                lost = {"server": key[0], "way": key[1], "direct": key[2], "checks": {}, "errors": {"run": "the client did not end"}}
                self.lines.append({"client": self.name, "version": "?", **lost})
        return self.lines


def play(prism, work, commands):
    folder = work / "words"
    folder.mkdir()
    log = open(work / "said.log", "w")
    servers = [Server(name, os.environ[f"YARD_{name.upper()}"], str(folder), log) for name in PROGRAMS]
    by_url = {f"{server.name}-http": server.urls["http"] for server in servers}
    # One for each cell: a server that ends four times in a minute is given up, and its sessions with it (B-08).
    ends = {f"ends-{name}-{server.name}-{way}": [sys.executable, str(HERE / "server_ends.py")]
            for name in commands for server in servers for way in WAYS}
    daemon = Daemon(prism, work / "home", config({server.name: server.on_stdio for server in servers} | by_url | ends))
    short = Daemon(prism, work / "home-short", config(by_url, LIMITS))
    lines, names = [], list(commands)
    for start in range(0, len(names), CLIENTS_AT_ONCE):
        begun = time.monotonic()
        clients = [Client(name, commands[name], cells_of(name, servers, daemon, short, str(folder)), log)
                   for name in names[start:start + CLIENTS_AT_ONCE]]
        for client in clients:
            client.is_ready.wait(max(0.1, begun + WORK_S - time.monotonic()))
        worked = time.monotonic()
        daemon.say("restart")
        for client in clients:
            client.go_on()
        deadline = time.monotonic() + REST_S
        for client in clients:
            lines += client.end(deadline)
        print(f"... {', '.join(client.name for client in clients)}: {worked - begun:.0f} s, restart {time.monotonic() - worked:.0f} s",
              file=sys.stderr, flush=True)
    daemon.say("stop")
    short.say("stop")
    return lines


def whole(value, way):
    return value in (True, "n/a", "later") or (value == "again" and way == "sse")


def judge(lines):
    """Gives each cell of Prism what it owes and what is nobody's."""
    direct = {(line["client"], line["server"], line["way"]): line["checks"] for line in lines if line["direct"]}
    for line in lines:
        if line["direct"]:
            line["owed"] = []
            continue
        program, back = line["server"].removesuffix("-http"), "http" if line["server"].endswith("-http") else "stdio"
        failed = [name for name in CHECKS if not whole(line["checks"].get(name, False), line["way"])]
        yards = [direct.get((line["client"], program, how), {}) for how in (WAYS[line["way"]], back)]
        line["owed"] = [name for name in failed
                        if name in ONLY_PRISMS or all(yard.get(name) in (True, "later") for yard in yards) or not any(yards)]
        line["spared"] = [name for name in failed if name not in line["owed"]]
        # Clients of both eras take the newer one where it is offered, and are then told what that era tells.
        is_newer = (line.get("protocol") or "") >= "2026"
        line["other"] = [name for name in CHECKS if is_newer and line["checks"].get(name) in ("later", "n/a")
                         and all(yard.get(name) is True for yard in yards)]


def shown(line, names):
    return "".join(CHECKS[name] for name in CHECKS if name in names)


def table(lines):
    print("\nletters: " + ", ".join(f"{letter} {name}" for name, letter in CHECKS.items()))
    print("a letter is a check that fails; (in brackets) where it fails directly too; + is whole; direct: what fails without Prism;")
    print("{in braces} what a client of both eras hears directly in the older one, and by Prism takes the newer one without asking for it\n")
    columns = ("direct http", "direct sse", "direct stdio", *WAYS)
    print(f"{'client':<22}{'server':<11}" + "".join(f"{column:<14}" for column in columns))
    clients = list(dict.fromkeys(line["client"] for line in lines))
    for client in clients:
        for server in ("old", "old-http", "both", "both-http"):
            cells = []
            for column in columns:
                is_direct, way = column.startswith("direct"), column.removeprefix("direct ")
                at = server.removesuffix("-http") if is_direct else server
                line = next((one for one in lines if (one["client"], one["server"], one["way"], one["direct"])
                             == (client, at, way, is_direct)), None)
                if line is None:
                    cells.append("?")
                elif is_direct:
                    needed = [name for name in CHECKS if name not in ONLY_PRISMS]
                    cells.append(shown(line, [name for name in needed if line["checks"].get(name) not in (True, "n/a", "later")]) or "+")
                else:
                    spared, other = shown(line, line["spared"]), shown(line, line["other"])
                    cells.append((shown(line, line["owed"]) or "+") + (f" ({spared})" if spared else "") + (f" {{{other}}}" if other else ""))
            version = next(line["version"] for line in lines if line["client"] == client)
            print(f"{client + ' ' + version:<22}{server:<11}" + "".join(f"{cell:<14}" for cell in cells))


def explain(lines):
    """Each fault once, with the cells that have it."""
    faults = {}
    for line in lines:
        for name in line["owed"]:
            said = line["errors"].get(name) or line.get("again") or line["errors"].get("run", "?")
            if said == "cannot open a session":
                continue  # and why not is said of the first check
            faults.setdefault((name, said), []).append(f"{line['client']} {line['server']} {line['way']}")
    for (name, said), cells in sorted(faults.items()):
        print(f"FAIL {name}: {said}\n     {', '.join(cells)}")


def main():
    prism, work, *pairs = sys.argv[1:]
    lines = play(prism, Path(work), dict(pair.split("=", 1) for pair in pairs))
    judge(lines)
    if os.environ.get("OUT"):
        Path(os.environ["OUT"]).write_text("".join(json.dumps(line) + "\n" for line in lines))
        Path(os.environ["OUT"] + ".log").write_bytes((Path(work) / "home/prism.log").read_bytes())
    table(lines)
    explain(lines)
    cells = [line for line in lines if not line["direct"]]
    good = sum(not line["owed"] for line in cells)
    print(f"sdks: {good}/{len(cells)} cells whole")
    return 0 if good == len(cells) else 1


if __name__ == "__main__":
    sys.exit(main())
