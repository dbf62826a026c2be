"""An echo server on websockets' asyncio API, based on the library's documentation."""

import argparse
import asyncio
import multiprocessing
import ssl

from websockets.asyncio.server import broadcast, serve
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory, enable_server_permessage_deflate

MESSAGE_BYTES_MAX = 64 << 20

subscribers = set()


async def echo(connection):
    async for message in connection:
        await connection.send(message)


async def acknowledge(connection):
    # Text is counted in bytes, so it is not decoded, and therefore not validated.
    while True:
        await connection.send(str(len(await connection.recv(decode=False))))


async def fanout(connection):
    subscribers.add(connection)
    try:
        async for message in connection:
            broadcast(subscribers, message)
    finally:
        subscribers.remove(connection)


SERVICES = {"acknowledge": acknowledge, "echo": echo, "fanout": fanout}


def extensions(deflate):
    """Returns the extensions; without `no-takeover`, with the settings of
    `compression="deflate"`."""
    if deflate is None:
        return None
    if deflate == "takeover":
        return enable_server_permessage_deflate(None)
    return [
        ServerPerMessageDeflateFactory(
            server_no_context_takeover=True,
            client_no_context_takeover=True,
            server_max_window_bits=12,
            client_max_window_bits=12,
            compress_settings={"memLevel": 5},
        )
    ]


async def run(arguments, reuse_port):
    tls = None
    if arguments.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*arguments.tls)
    # A worker ends with its parent.
    if parent := multiprocessing.parent_process():
        asyncio.get_running_loop().add_reader(parent.sentinel, asyncio.current_task().cancel)
    async with serve(
        SERVICES[arguments.service],
        "127.0.0.1",
        arguments.port,
        compression=None,
        extensions=extensions(arguments.deflate),
        max_size=MESSAGE_BYTES_MAX,
        reuse_port=reuse_port,
        ssl=tls,
    ) as server:
        await server.serve_forever()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--service", choices=SERVICES, default="echo")
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--deflate", choices=["no-takeover", "takeover"])
    arguments = parser.parse_args()

    processes = 1 if arguments.service == "fanout" else arguments.threads
    for _ in range(processes - 1):
        multiprocessing.Process(target=work, args=(arguments, True)).start()
    work(arguments, processes > 1)


def work(arguments, reuse_port):
    try:
        asyncio.run(run(arguments, reuse_port))
    except asyncio.CancelledError:
        pass


main()
