"""openai-agents: its classes for MCP servers, without an agent. They have no way for questions, progress or a log of their own; what
comes by itself is given to their `message_handler`."""
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import SimpleNamespace

from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp

import checks


def server(target, message):
    more = {"cache_tools_list": False, "client_session_timeout_seconds": 60, "message_handler": message}
    if target["how"] == "stdio":
        return MCPServerStdio({"command": target["command"][0], "args": target["command"][1:], "env": target["env"]}, **more)
    kind = MCPServerStreamableHttp if target["how"] == "http" else MCPServerSse
    return kind({"url": target["url"], "headers": target["headers"], "timeout": 60}, **more)


@asynccontextmanager
async def connected(target, seen):
    async def message(note):
        note = getattr(note, "root", note)
        method = getattr(note, "method", "")
        if method == "notifications/tools/list_changed":
            seen.changed += 1
        if method == "notifications/message":
            seen.logged.append(str(note.params.data))

    async with server(target, message) as opened:
        async def call(name, arguments, notes):
            return checks.text_of(await opened.call_tool(name, arguments))

        async def tools():
            return [tool.name for tool in await opened.list_tools()]

        agreed = str(opened.session.protocol_version)
        # In 2026-07-28 there is a log for those who name a level, and these classes name none.
        can = {"log", "list_changed"} if agreed < "2026" else {"list_changed"}
        yield SimpleNamespace(
            can=can, protocol=agreed, listens=agreed < "2026", tools=tools, call=call,
            cancelled=lambda name, arguments, when: checks.cancel_the_task(opened.call_tool(name, arguments), when))


checks.main("openai-agents", version("openai-agents"), connected)
