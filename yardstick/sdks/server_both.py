"""A server of both eras, on FastMCP 4.   server_both.py stdio|http|sse FOLDER [SOCKET]"""
import asyncio
import sys

import mcp.types as types
from fastmcp import Context, FastMCP
from pydantic import BaseModel

import offer

how, folder, *door = sys.argv[1:]
server = FastMCP("both")
tool = server.tool(output_schema=None)


class Colour(BaseModel):
    colour: str


@tool
async def echo(text: str) -> str:
    return text


@tool
async def big(length: int) -> str:
    return "0123456789" * (length // 10)


@tool
async def steps(count: int, ctx: Context) -> str:
    for i in range(count):
        await ctx.report_progress(i + 1, count, f"step {i + 1}")
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    return "stepped"


@tool
async def say(text: str, ctx: Context) -> str:
    await ctx.info(text)
    await asyncio.sleep(0.03)
    return "said"


@tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Which colour?", response_type=Colour)
    return f"{answer.action}: {answer.data.colour}" if answer.action == "accept" else answer.action


@tool
async def sample(ctx: Context) -> str:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say something"))
    answer = await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id)
    return answer.content.text


@tool
async def grow(name: str, ctx: Context) -> str:
    async def grown() -> str:
        return name

    server.tool(grown, name=name, output_schema=None)
    await ctx.send_notification(types.ToolListChangedNotification())
    return "grown"


@tool
async def wait(key: str, seconds: float) -> str:
    return await offer.wait(folder, key, seconds)


@tool
async def fail() -> str:
    raise ValueError("the disk is full")


if how == "stdio":
    offer.to_each_that_comes(lambda: server.run(transport="stdio", show_banner=False, log_level="ERROR"), *door)
elif how == "http":
    offer.at_a_port(server.http_app(), "/mcp")
else:
    offer.at_a_port(server.http_app(transport="sse"), "/sse")
