"""strands: its MCPClient, without an agent. It has no way for sampling or a log."""
import asyncio
import logging
import threading
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import SimpleNamespace

from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult
from strands.tools.mcp import MCPClient
from strands.types.exceptions import MCPClientInitializationError

import checks

logging.disable(logging.CRITICAL)


def client_of(target, **more):
    if target["how"] == "http":
        return MCPClient(url=target["url"], headers=target["headers"], **more)
    if target["how"] == "sse":
        return MCPClient(lambda: sse_client(target["url"], headers=target["headers"]), **more)
    return MCPClient(lambda: stdio_client(StdioServerParameters(
        command=target["command"][0], args=target["command"][1:], env=target["env"])), **more)


@asynccontextmanager
async def connected(target, seen):
    async def elicit(context, params):
        seen.asked += 1
        return ElicitResult(action="accept", content={"colour": "blue"})

    def changed(before, now):
        seen.changed += 1

    more = {"elicitation_callback": elicit, "startup_timeout": 30}
    try:
        client = client_of(target, on_tools_changed=changed, **more)
        await asyncio.to_thread(client.start)
    except MCPClientInitializationError as error:
        if "Method not found" not in checks.why(error.__cause__ or error):
            raise
        client = client_of(target, **more)  # it does without a server that does not let it listen
        await asyncio.to_thread(client.start)
    try:
        async def call(name, arguments, notes):
            async def note(progress, total, text):
                notes(progress)
            return said(await client.call_tool_async("1", name, arguments, progress_callback=note if notes else None))

        def said(result):
            return "\n".join(part.get("text", "") for part in result["content"]), result["status"] == "error"

        async def cancelled(name, arguments, when):
            signal = threading.Event()
            task = asyncio.create_task(client.call_tool_async("2", name, arguments, cancel_signal=signal))
            try:
                await when()
            finally:
                signal.set()
                await asyncio.wait({task}, timeout=3)

        async def tools():
            return [tool.mcp_tool.name for tool in await asyncio.to_thread(client.list_tools_sync)]

        protocol = getattr(client._background_thread_session, "protocol_version", None)
        yield SimpleNamespace(can={"progress", "elicitation", "list_changed"}, protocol=str(protocol), listens=True, tools=tools, call=call,
                              cancelled=cancelled)
    finally:
        await asyncio.to_thread(client.stop, None, None, None)


checks.main("strands", version("strands-agents"), connected)
