"""Python SDK 1.x."""
import asyncio
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import SimpleNamespace

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

import checks


def transport(target):
    if target["how"] == "stdio":
        return stdio_client(StdioServerParameters(command=target["command"][0], args=target["command"][1:], env=target["env"]))
    connect = streamablehttp_client if target["how"] == "http" else sse_client
    return connect(target["url"], headers=target["headers"])


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
        if isinstance(note, types.ServerNotification) and isinstance(note.root, types.ToolListChangedNotification):
            seen.changed += 1

    async with transport(target) as (read, write, *_):
        async with ClientSession(read, write, sampling_callback=sample, elicitation_callback=elicit, logging_callback=log,
                                 message_handler=message) as session:
            agreed = await session.initialize()

            async def call(name, arguments, notes):
                async def note(progress, total, text):
                    notes(progress)
                return checks.text_of(await session.call_tool(name, arguments, progress_callback=note if notes else None))

            async def cancelled(name, arguments, when):
                # This SDK has no verb for it: an application sends the note for the id that the call has.
                number = session._request_id
                task = asyncio.create_task(session.call_tool(name, arguments))
                await when()
                params = types.CancelledNotificationParams(requestId=number, reason="the user")
                await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
                await asyncio.wait({task}, timeout=3)
                task.cancel()

            async def tools():
                return [tool.name for tool in (await session.list_tools()).tools]

            can = {"progress", "log", "elicitation", "sampling", "list_changed"}
            yield SimpleNamespace(can=can, protocol=str(agreed.protocolVersion), listens=True, tools=tools, call=call, cancelled=cancelled)


checks.main("python-1", version("mcp"), connected)
