"""Drives `recollex mcp` with the official Python client, which checks every answer against the tool's schema.

    python3 mcp_client.py RECOLLEX WORKSPACE CACHE

Prints one JSON document of what it saw. The workspace holds the sample conversation.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def told(result):
    return {
        "error": bool(result.is_error),
        "answer": result.structured_content,
        "text": "".join(block.text for block in result.content),
    }


async def main(recollex, workspace, cache):
    server = StdioServerParameters(
        command=recollex,
        args=["mcp", "--workspace", workspace],
        env={"XDG_CACHE_HOME": cache, "HOME": workspace},
    )
    seen = {}
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        about = await session.initialize()
        seen["server"] = about.server_info.name
        seen["instructions"] = about.instructions
        seen["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input": tool.input_schema,
                "output": tool.output_schema,
                "hints": tool.annotations.model_dump(),
            }
            for tool in (await session.list_tools()).tools
        ]

        async def call(name, **arguments):
            return told(await session.call_tool(name, arguments))

        seen["search"] = await call("memory_search", query="keel bolts", top_k=2)
        seen["next"] = await call("memory_search", query="keel bolts", top_k=2, cursor=seen["search"]["answer"]["cursor"])
        seen["get"] = await call("memory_get", target=seen["search"]["answer"]["results"][0]["id"])
        seen["page"] = await call("memory_get", target=seen["get"]["answer"]["path"], lines=3)
        seen["rest"] = await call(
            "memory_get", target=seen["get"]["answer"]["path"], lines=3, cursor=seen["page"]["answer"]["cursor"]
        )
        seen["browse"] = await call("memory_browse", path_prefix="sources")
        seen["grep"] = await call("memory_grep", pattern="keel", max=1)
        seen["status"] = await call("memory_status")
        seen["nothing"] = await call("memory_search", query="xylophone")
        seen["backwards"] = await call("memory_search", query="keel", **{"from": "2026", "to": "2025"})
        seen["absent"] = await call("memory_get", target="no/such/record")
        seen["unknown"] = await call("memory_search", query="keel", colour="red")
        seen["both"] = await call("memory_get", target="a", block="b")
        seen["together"] = [
            one["answer"]["results"][0]["id"]
            for one in await asyncio.gather(*(call("memory_search", query="keel bolts", top_k=1) for _ in range(8)))
        ]
        try:
            await session.call_tool("memory_delete", {})
        except Exception as error:
            seen["no_tool"] = str(error)
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
