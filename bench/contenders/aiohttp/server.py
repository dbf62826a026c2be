"""An echo server on aiohttp, based on the library's documentation."""

import argparse
import asyncio
import multiprocessing
import ssl

from aiohttp import WSMsgType, web

# The library accepts messages that are shorter than its limit.
MESSAGE_BYTES_LIMIT = (64 << 20) + 1

subscribers = set()


async def echo(connection, message):
    if message.type == WSMsgType.TEXT:
        await connection.send_str(message.data)
    elif message.type == WSMsgType.BINARY:
        await connection.send_bytes(message.data)


async def acknowledge(connection, message):
    payload = message.data.encode() if message.type == WSMsgType.TEXT else message.data
    await connection.send_str(str(len(payload)))


async def fanout(_connection, message):
    for subscriber in set(subscribers):
        await echo(subscriber, message)


SERVICES = {"acknowledge": acknowledge, "echo": echo, "fanout": fanout}


def handler(arguments):
    """Returns the handler of a connection."""
    answer = SERVICES[arguments.service]
    compress = arguments.deflate is not None

    async def serve(request):
        connection = web.WebSocketResponse(compress=compress, max_msg_size=MESSAGE_BYTES_LIMIT)
        await connection.prepare(request)
        subscribers.add(connection)
        try:
            async for message in connection:
                await answer(connection, message)
        finally:
            subscribers.remove(connection)
        return connection

    return serve


async def run(arguments, reuse_port):
    tls = None
    if arguments.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*arguments.tls)
    application = web.Application()
    application.router.add_get("/{path:.*}", handler(arguments))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", arguments.port, reuse_port=reuse_port, ssl_context=tls).start()

    # A worker ends with its parent.
    parent_ended = asyncio.Event()
    if parent := multiprocessing.parent_process():
        asyncio.get_running_loop().add_reader(parent.sentinel, parent_ended.set)
    await parent_ended.wait()


def work(arguments, reuse_port):
    asyncio.run(run(arguments, reuse_port))


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


main()
