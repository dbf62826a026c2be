"""Echoes messages with websockets, as a server or as a client."""

import asyncio
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, ServerPerMessageDeflateFactory

MESSAGE_BYTES_MAX = 2 << 20


def extensions(factory, options):
    """Returns the extensions to negotiate; options are named like the parameters of
    permessage-deflate."""
    if "deflate" not in options:
        return None
    parameters = {}
    for name in ("server_no_context_takeover", "client_no_context_takeover"):
        parameters[name] = name in options
    for name in ("server_max_window_bits", "client_max_window_bits"):
        if name in options:
            parameters[name] = int(options[name])
    if factory is ClientPerMessageDeflateFactory:
        # Offers to accept any window that the server requests, as the library does by default.
        parameters.setdefault("client_max_window_bits", True)
    return [factory(**parameters)]


async def pieces(connection, message, length):
    for start in range(0, len(message), length):
        if start:
            await connection.ping()
        yield message[start : start + length]


async def echo(connection, length):
    async for message in connection:
        if length and len(message) > length:
            await connection.send(pieces(connection, message, length))
        else:
            await connection.send(message)


async def main():
    role, *words = sys.argv[1:]
    url = words.pop(0) if role == "connect" else None
    options = dict(word.split("=") for word in words)
    length = int(options.get("fragment", 0))
    settings = {"compression": None, "max_size": MESSAGE_BYTES_MAX}
    if url:
        offered = extensions(ClientPerMessageDeflateFactory, options)
        async with connect(url, extensions=offered, proxy=None, **settings) as connection:
            await echo(connection, length)
        return
    accepted = extensions(ServerPerMessageDeflateFactory, options)
    async with serve(lambda ws: echo(ws, length), "127.0.0.1", 0, extensions=accepted, **settings) as server:
        print(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


asyncio.run(main())
