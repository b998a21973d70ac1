"""What a Service of Kubernetes does with connections: a new one goes to an endpoint, an open one stays where it is.

A program: `python service.py FILE`. The file has for each port that it listens on the ports of the endpoints, as JSON;
it is read for each new connection.
"""

import asyncio
import json
import random
import sys
from pathlib import Path

CHUNK = 1 << 16


async def copy(reader, writer, other):
    """Hand on what arrives; an end is an end of both, and a reset is a reset of both."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.close()
    except OSError:
        writer.transport.abort()
        other.transport.abort()


async def connection(file, port, reader, writer):
    endpoints = json.loads(file.read_text())[port]
    try:
        theirs, to_them = await asyncio.open_connection("127.0.0.1", random.choice(endpoints))
    except (OSError, IndexError):
        writer.transport.abort()
        return
    await asyncio.gather(copy(reader, to_them, writer), copy(theirs, writer, to_them))


async def main(file):
    servers = [
        await asyncio.start_server(lambda *both, port=port: connection(file, port, *both), "127.0.0.1", int(port))
        for port in json.loads(file.read_text())
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
