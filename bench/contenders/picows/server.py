"""An echo server on picows' core API, based on the library's documentation."""

import argparse
import asyncio
import multiprocessing
import ssl

import uvloop
from picows import WSListener, WSMsgType, ws_create_server

FRAME_BYTES_MAX = 64 << 20


class Messages(WSListener):
    """Assembles fragments, answers a Close frame, and passes whole messages to `on_message`.

    The library answers pings.
    """

    def __init__(self):
        self.fragments = None
        self.fragments_type = None

    def on_ws_frame(self, transport, frame):
        if frame.msg_type == WSMsgType.TEXT or frame.msg_type == WSMsgType.BINARY:
            # The library owns the memory, which is valid until this method returns: `send` copies
            # what it cannot write at once.
            if frame.fin:
                self.on_message(transport, frame.msg_type, frame.get_payload_as_memoryview())
            else:
                self.fragments = bytearray(frame.get_payload_as_memoryview())
                self.fragments_type = frame.msg_type
        elif frame.msg_type == WSMsgType.CONTINUATION:
            self.fragments += frame.get_payload_as_memoryview()
            if frame.fin:
                message, self.fragments = self.fragments, None
                self.on_message(transport, self.fragments_type, message)
        elif frame.msg_type == WSMsgType.CLOSE:
            transport.send_close(frame.get_close_code(), frame.get_close_message())
            transport.disconnect()


class Acknowledge(Messages):
    def on_message(self, transport, message_type, payload):
        transport.send(WSMsgType.TEXT, b"%d" % len(payload))


class Echo(Messages):
    def on_message(self, transport, message_type, payload):
        transport.send(message_type, payload)


class Fanout(Messages):
    transports = set()

    def on_ws_connected(self, transport):
        self.transports.add(transport)

    def on_ws_disconnected(self, transport):
        self.transports.remove(transport)

    def on_message(self, transport, message_type, payload):
        for subscriber in self.transports:
            subscriber.send(message_type, payload)


SERVICES = {"acknowledge": Acknowledge, "echo": Echo, "fanout": Fanout}


async def run(arguments, reuse_port):
    tls = None
    if arguments.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*arguments.tls)
    # A worker ends with its parent.
    if parent := multiprocessing.parent_process():
        asyncio.get_running_loop().add_reader(parent.sentinel, asyncio.current_task().cancel)
    listener = SERVICES[arguments.service]
    server = await ws_create_server(
        lambda _request: listener(),
        "127.0.0.1",
        arguments.port,
        max_frame_size=FRAME_BYTES_MAX,
        reuse_port=reuse_port,
        ssl=tls,
    )
    await server.serve_forever()


def work(arguments, reuse_port):
    try:
        uvloop.run(run(arguments, reuse_port))
    except asyncio.CancelledError:
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--service", choices=SERVICES, default="echo")
    parser.add_argument("--tls", nargs=2)
    arguments = parser.parse_args()

    processes = 1 if arguments.service == "fanout" else arguments.threads
    for _ in range(processes - 1):
        multiprocessing.Process(target=work, args=(arguments, True)).start()
    work(arguments, processes > 1)


main()
