"""A language server that does what it is told to do wrong. Its first argument says what, the second is a folder where it
leaves word of what it has seen: one line for each message in `log`, one for each start in `starts`."""
import json, os, sys, threading, time

mode, notes = sys.argv[1], sys.argv[2]
out = sys.stdout.buffer
texts, versions = {}, {}
writing = threading.Lock()


def note(name, line):
    with open(os.path.join(notes, name), "a") as file:
        file.write(line + "\n")


def seen(name):
    try:
        with open(os.path.join(notes, name)) as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0


def send(message):
    body = json.dumps(dict(message, jsonrpc="2.0")).encode()
    with writing:
        out.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        out.flush()


def receive():
    length = None
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line == b"\r\n":
            break
        name, value = line.split(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length))


def place(line, start, end):
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def found(uri):
    """An error for each line with `bad` in it."""
    lines = texts.get(uri, "").split("\n")
    return [
        {"range": place(i, 0, 3), "severity": 1, "message": "bad: " + line, "source": "script", "code": "E1"}
        for i, line in enumerate(lines)
        if "bad" in line
    ]


def guessed(uri):
    """As rust-analyzer does without the standard library: false errors of meaning, and true ones of syntax."""
    said = [("bad", "E0599"), ("broken", "syntax-error")]
    return [{"range": place(0, 0, 3), "severity": 1, "message": word, "source": "rust-analyzer", "code": code} for word, code in said]


def publish(uri):
    params = {"uri": uri, "diagnostics": found(uri)}
    if mode != "unversioned":
        params["version"] = versions[uri]
    send({"method": "textDocument/publishDiagnostics", "params": params})


def initialize():
    capabilities = {"textDocumentSync": 1}
    if mode not in ("push", "unversioned", "register", "late"):
        capabilities["diagnosticProvider"] = {"interFileDependencies": False, "workspaceDiagnostics": False}
    for name in ("definition", "references", "rename", "codeAction", "documentFormatting", "completion", "documentSymbol"):
        capabilities[name + "Provider"] = True
    if mode == "utf8":
        capabilities["positionEncoding"] = "utf-8"
    return {"capabilities": capabilities}


def edit(uri):
    """Replaces the first line."""
    return [{"range": place(0, 0, len(texts[uri].split("\n")[0])), "newText": "new"}]


def answer(message):
    method, params = message["method"], message.get("params") or {}
    uri = params.get("textDocument", {}).get("uri")
    beside = uri and uri.rsplit("/", 1)[0] + "/other.md"
    outside = "file://" + os.path.join(notes, "outside.md")
    if method == "textDocument/diagnostic":
        if mode in ("loads", "stalls") and seen("pulled") == 1:
            return {"kind": "full", "items": []}
        if mode == "lacks":
            return {"kind": "full", "items": guessed(uri)}
        return {"kind": "full", "items": [] if mode == "busy" and seen("pulled") < 2 else found(uri)}
    if method in ("textDocument/definition", "textDocument/references"):
        return [{"uri": where, "range": place(0, 0, 3)} for where in (uri, beside, outside, "untitled:1")]
    if method == "textDocument/rename":
        name = params["newName"]
        if name == "outside":
            return {"changes": {uri: edit(uri), outside: [{"range": place(0, 0, 1), "newText": "x"}]}}
        if name == "file":
            return {"documentChanges": [{"kind": "rename", "oldUri": uri, "newUri": beside}]}
        if name == "stale":
            return {"documentChanges": [{"textDocument": {"uri": uri, "version": versions[uri] - 1}, "edits": edit(uri)}]}
        if name == "nowhere":
            return {"changes": {uri: [{"range": place(0, 3, 1), "newText": "x"}]}}
        changes = [{"textDocument": {"uri": uri, "version": versions[uri]}, "edits": edit(uri)}]
        changes.append({"textDocument": {"uri": beside, "version": None}, "edits": [{"range": place(0, 0, 0), "newText": name}]})
        return {"documentChanges": changes}
    if method == "textDocument/codeAction":
        return [
            {"title": "edit", "kind": "quickfix", "isPreferred": True, "edit": {"changes": {uri: edit(uri)}}},
            {"title": "command", "command": {"title": "run", "command": "rm"}},
            {"title": "old command", "command": "rm", "arguments": []},
            {"title": "disabled", "disabled": {"reason": "no"}},
        ]
    if method == "textDocument/formatting":
        return edit(uri) if texts[uri].split("\n")[0] != "new" else []
    return None


def changed(params, text):
    uri = params["textDocument"]["uri"]
    texts[uri], versions[uri] = text, params["textDocument"]["version"]
    if mode in ("push", "unversioned"):
        publish(uri)


note("starts", str(os.getpid()))
if mode == "peeks":
    for what in (lambda: open(os.path.join(notes, "../secret")), lambda: open("inside"), lambda: os.execv("evil", ["evil"])):
        try:
            what()
            note("peeked", "yes")
        except OSError as error:
            note("peeked", type(error).__name__)
if mode == "dies_at_start":
    sys.exit("no toolchain")
if mode == "dies_twice" and seen("starts") <= 2:
    sys.exit("not yet")
while True:
    message = receive()
    method = message.get("method")
    note("log", method or "answer " + json.dumps([message.get("id"), message.get("result"), message.get("error")]))
    if method == "initialize":
        if mode == "never_begins":
            continue
        send({"id": message["id"], "result": initialize()})
    elif method == "initialized" and mode == "never_reads":
        # Asks on and on, and takes no answer.
        number = 0
        while True:
            number += 1
            send({"id": number, "method": "workspace/configuration", "params": {"items": [{}] * 1000}})
    elif method == "initialized":
        if mode == "garbage":
            out.write(b"panic: this is no LSP\n\n" * 10)
            out.flush()
        if mode in ("register", "asks"):
            send({"id": "c", "method": "workspace/configuration", "params": {"items": [{"section": "a.b"}, {}]}})
            send({"id": "e", "method": "workspace/applyEdit", "params": {"edit": {"changes": {}}}})
            send({"id": 7, "method": "window/workDoneProgress/create", "params": {"token": 1}})
            send({"id": 8, "method": "no/such", "params": {}})
            register = {"id": "r", "method": "textDocument/diagnostic", "registerOptions": {"identifier": "script"}}
            send({"id": 9, "method": "client/registerCapability", "params": {"registrations": [register]}})
        if mode == "lacks":
            why = "Workspace `/a` has sysroot errors: can't load standard library from sysroot\n/t\ntry installing `rust-src`"
            send({"method": "experimental/serverStatus", "params": {"health": "warning", "quiescent": True, "message": why}})
        if mode == "busy":
            send({"method": "$/progress", "params": {"token": "t", "value": {"kind": "begin", "title": "indexing"}}})
        if mode == "floods":
            def flood():
                while True:
                    send({"method": "window/logMessage", "params": {"type": 4, "message": "x" * 10_000}})
            threading.Thread(target=flood, daemon=True).start()
    elif method == "textDocument/didOpen":
        changed(message["params"], message["params"]["textDocument"]["text"])
    elif method == "textDocument/didChange":
        changed(message["params"], message["params"]["contentChanges"][0]["text"])
    elif method == "shutdown" and mode != "never_ends":
        send({"id": message["id"], "result": None})
    elif method == "exit" and mode != "never_ends":
        sys.exit(0)
    elif method and "id" in message:
        note("pulled", method)
        if mode == "stalls" and seen("pulled") == 2:
            continue
        if mode == "mute" or (mode == "mute_once" and seen("pulled") == 1):
            continue
        if mode == "dies_always" or (mode == "dies_once" and seen("starts") == 1):
            os._exit(1)
        if mode == "modified" and seen("pulled") <= 2:
            send({"id": message["id"], "error": {"code": -32801, "message": "content modified"}})
            continue
        send({"id": message["id"], "result": answer(message)})
        if mode in ("loads", "stalls") and seen("pulled") == 1:
            send({"method": "experimental/serverStatus", "params": {"health": "ok", "quiescent": True}})
        if mode == "busy" and seen("pulled") == 1:
            send({"method": "$/progress", "params": {"token": "t", "value": {"kind": "end"}}})
