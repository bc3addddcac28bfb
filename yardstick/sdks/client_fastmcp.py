"""FastMCP 2 and 4, which differ in what they are built on."""
import asyncio
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import SimpleNamespace

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

import checks

MAJOR = version("fastmcp").split(".")[0]


def transport(target):
    if target["how"] == "stdio":
        return StdioTransport(target["command"][0], target["command"][1:], env=target["env"], keep_alive=False)
    kind = StreamableHttpTransport if target["how"] == "http" else SSETransport
    return kind(target["url"], headers=target["headers"])


@asynccontextmanager
async def connected(target, seen):
    async def sample(messages, params, context):
        seen.sampled += 1
        return "sampled"

    async def elicit(message, response_type, params, context):
        seen.asked += 1
        return ElicitResult(action="accept", content={"colour": "blue"})

    async def log(message):
        seen.logged.append(str(message.data))

    async def message(note):
        if getattr(getattr(note, "root", note), "method", "") == "notifications/tools/list_changed":
            seen.changed += 1

    async with Client(transport(target), sampling_handler=sample, elicitation_handler=elicit, log_handler=log,
                      message_handler=message) as client:
        async def call(name, arguments, notes):
            async def note(progress, total, text):
                notes(progress)
            return checks.text_of(await client.call_tool_mcp(name, arguments, progress_handler=note if notes else None))

        async def cancelled(name, arguments, when):
            if MAJOR != "2":
                return await checks.cancel_the_task(client.call_tool_mcp(name, arguments), when)
            number = client.session._request_id
            task = asyncio.create_task(client.call_tool_mcp(name, arguments))
            await when()
            await client.cancel(number, "the user")
            await asyncio.wait({task}, timeout=3)
            task.cancel()

        async def tools():
            return [tool.name for tool in await client.list_tools()]

        can = {"progress", "log", "elicitation", "sampling", "list_changed"}
        agreed = str(client.protocol_version if MAJOR != "2" else client.initialize_result.protocolVersion)
        yield SimpleNamespace(can=can, protocol=agreed, listens=agreed < "2026", tools=tools, call=call, cancelled=cancelled)


checks.main(f"fastmcp-{MAJOR}", version("fastmcp"), connected)
