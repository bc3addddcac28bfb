"""A server of the older era that ends in the middle of a call. Standard library only, since it is started often."""
import json
import os
import sys

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [{"name": name, "inputSchema": TEXT} for name in ("echo", "die")]


def answer(method, params):
    if method == "initialize":
        info = {"name": "ends", "version": "1"}
        return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/call":
        if params["name"] == "die":
            os._exit(3)
        return {"result": {"content": [{"type": "text", "text": params["arguments"]["text"]}]}}
    return {"error": {"code": -32601, "message": f"unknown method {method}"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        said = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"], message.get("params", {}))}
        print(json.dumps(said), flush=True)
