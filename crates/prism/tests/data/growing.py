"""A server on stdio whose tool `grow` adds a tool to what this process lists, says so, and answers the process id.

It speaks the older era, or with the argument `both` 2026-07-28, too. `initialize` binds a process to the older.
"""

import json
import os
import sys

META = "io.modelcontextprotocol/"
ABOUT = {"capabilities": {"tools": {"listChanged": True}}}
INFO = {"name": "growing", "version": "1"}
CHANGED = {"method": "notifications/tools/list_changed"}

both = sys.argv[1:] == ["both"]
older, tools, listens = False, ["grow"], []


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tagged(note, listen, **params):
    say(**note, params={**params, "_meta": {META + "subscriptionId": listen}})


for line in sys.stdin:
    asked = json.loads(line)
    method, params, number = asked.get("method"), asked.get("params") or {}, asked.get("id")
    if method == "initialize":
        older = True
        result = {"protocolVersion": "2025-11-25", "serverInfo": INFO, **ABOUT}
    elif method == "server/discover" and both:
        result = {"supportedVersions": ["2026-07-28"], "_meta": {META + "serverInfo": INFO}, **ABOUT}
    elif method == "subscriptions/listen" and both:
        listens.append(number)
        heard = {"toolsListChanged": True}
        tagged({"method": "notifications/subscriptions/acknowledged"}, number, notifications=heard)
        continue
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    elif method == "tools/call":
        tools.append(f"grown{len(tools)}")
        if older:
            say(**CHANGED)
        for listen in listens:
            tagged(CHANGED, listen)
        result = {"content": [{"type": "text", "text": str(os.getpid())}]}
    elif number is None:
        if method == "notifications/cancelled" and params.get("requestId") in listens:
            listens.remove(params["requestId"])
        continue
    else:
        say(id=number, error={"code": -32601, "message": "method not found"})
        continue
    say(id=number, result=result if older else {"resultType": "complete", **result})
