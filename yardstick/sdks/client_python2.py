"""Python SDK 2.x, as it is by default: it asks server/discover first."""
import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from types import SimpleNamespace

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

import checks


async def transport(target, stack):
    if target["how"] == "stdio":
        return StdioServerParameters(command=target["command"][0], args=target["command"][1:], env=target["env"])
    if target["how"] == "sse":
        return sse_client(target["url"], headers=target["headers"])
    http = await stack.enter_async_context(httpx2.AsyncClient(
        headers=target["headers"], follow_redirects=True, timeout=httpx2.Timeout(30, read=300)))
    return streamable_http_client(target["url"], http_client=http)


@asynccontextmanager
async def connected(target, seen):
    async def sample(context, params):
        seen.sampled += 1
        return types.CreateMessageResult(role="assistant", model="yard", content=types.TextContent(type="text", text="sampled"))

    async def elicit(context, params):
        seen.asked += 1
        return types.ElicitResult(action="accept", content={"colour": "blue"})

    async def log(params):
        seen.logged.append(str(params.data))

    async def message(note):
        if getattr(getattr(note, "root", note), "method", "") == "notifications/tools/list_changed":
            seen.changed += 1

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(
            await transport(target, stack), log_level="debug", sampling_callback=sample, elicitation_callback=elicit,
            logging_callback=log, message_handler=message, cache=None))
        protocol = str(client.protocol_version)
        if protocol >= "2026":  # where changes are told to those who ask, if the server lets them
            with suppress(MCPError):
                changes = await stack.enter_async_context(client.listen(tools_list_changed=True))

                async def listen():
                    async for _ in changes:
                        seen.changed += 1
                stack.callback(asyncio.create_task(listen()).cancel)

        async def call(name, arguments, notes):
            async def note(progress, total, text):
                notes(progress)
            return checks.text_of(await client.call_tool(name, arguments, progress_callback=note if notes else None))

        async def tools():
            return [tool.name for tool in (await client.list_tools()).tools]

        can = {"progress", "log", "elicitation", "sampling", "list_changed"}
        yield SimpleNamespace(
            can=can, protocol=protocol, listens=True, tools=tools, call=call,
            cancelled=lambda name, arguments, when: checks.cancel_the_task(client.call_tool(name, arguments), when))


checks.main("python-2", version("mcp"), connected)
