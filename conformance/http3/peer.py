"""WebSockets over HTTP/3 in both roles, with aioquic and wsproto."""

import asyncio
import contextlib
import ssl

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection, Setting
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, StreamReset
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, Message, Ping, TextMessage

# A whole message may arrive in one frame of this size.
WINDOW_BYTES = 4 << 20


class Peer(QuicConnectionProtocol):
    """One QUIC connection that speaks HTTP/3."""

    def __init__(self, *arguments, on_request=None, **named):
        super().__init__(*arguments, **named)
        self.http = None
        self.streams = {}
        self.settled = asyncio.Event()
        self.ended = asyncio.Event()
        self._on_request = on_request
        self._tasks = set()

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol in H3_ALPN:
            self.http = H3Connection(self._quic)
        if isinstance(event, StreamReset) and event.stream_id in self.streams:
            self.streams[event.stream_id].lose(event.error_code)
        if isinstance(event, ConnectionTerminated):
            self.ended.set()
            for stream in self.streams.values():
                stream.lose(event.error_code)
        if self.http is None:
            return
        for http_event in self.http.handle_event(event):
            self._http_event_received(http_event)
        if self.http.received_settings is not None:
            self.settled.set()

    def _http_event_received(self, event):
        if isinstance(event, HeadersReceived):
            headers = {name.decode(): value.decode() for name, value in event.headers}
            if event.stream_id in self.streams:
                self.streams[event.stream_id].answer.set_result(headers)
            elif self._on_request:
                stream = self.streams[event.stream_id] = Stream(self, event.stream_id, ConnectionType.SERVER)
                task = asyncio.ensure_future(self._on_request(stream, headers))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if isinstance(event, DataReceived):
            self.streams[event.stream_id].take(event.data, event.stream_ended)

    async def open(self, headers):
        """Requests a WebSocket; returns the stream and the headers of the answer."""
        await self.settled.wait()
        assert self.http.received_settings.get(Setting.ENABLE_CONNECT_PROTOCOL) == 1, self.http.received_settings
        stream_id = self._quic.get_next_available_stream_id()
        stream = self.streams[stream_id] = Stream(self, stream_id, ConnectionType.CLIENT)
        stream.send_headers(headers)
        return stream, await stream.answer


class Lost(Exception):
    """The stream was reset, or the connection has ended."""


class Stream:
    """One stream that carries the frames of a WebSocket."""

    def __init__(self, peer, stream_id, role):
        self.answer = asyncio.get_running_loop().create_future()
        self._peer = peer
        self._stream_id = stream_id
        self._websocket = Connection(role)
        self._events = asyncio.Queue()
        self._parts = []

    def send_headers(self, headers, end_stream=False):
        fields = [(name.encode(), value.encode()) for name, value in headers]
        self._peer.http.send_headers(self._stream_id, fields, end_stream)
        self._peer.transmit()

    def send(self, event, end_stream=False):
        self._peer.http.send_data(self._stream_id, self._websocket.send(event), end_stream)
        self._peer.transmit()

    def finish(self):
        self._peer.http.send_data(self._stream_id, b"", True)
        self._peer.transmit()

    def take(self, data, is_ended):
        if data:
            self._websocket.receive_data(data)
            for event in self._websocket.events():
                self._events.put_nowait(event)
        if is_ended:
            self._events.put_nowait(None)

    def lose(self, code):
        self._events.put_nowait(Lost(f"{code:#x}"))
        if not self.answer.done():
            self.answer.set_exception(Lost(f"{code:#x}"))

    async def receive(self):
        """Returns the next whole message, the end of the WebSocket, or None at the end of the
        stream."""
        while True:
            event = await self._events.get()
            if isinstance(event, Lost):
                raise event
            if isinstance(event, Ping):
                self.send(event.response())
            elif isinstance(event, (TextMessage, BytesMessage)):
                self._parts.append(event.data)
                if event.message_finished:
                    parts, self._parts = self._parts, []
                    return ("" if isinstance(event, TextMessage) else b"").join(parts)
            else:
                return event


def connect_headers(authority, path, *more):
    """Returns the headers of a request for a WebSocket (RFC 9220 §3)."""
    return [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", authority),
        (":path", path),
        ("sec-websocket-version", "13"),
        *more,
    ]


@contextlib.asynccontextmanager
async def client(port):
    """Connects to an HTTP/3 server on this machine without verifying its certificate."""
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=H3_ALPN,
        verify_mode=ssl.CERT_NONE,
        max_data=WINDOW_BYTES,
        max_stream_data=WINDOW_BYTES,
    )
    async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Peer) as peer:
        yield peer


async def echo(stream, headers):
    """Answers a request for a WebSocket, and echoes each message."""
    if headers.get(":protocol") != "websocket" or headers.get(":path") != "/echo":
        return stream.send_headers([(":status", "404")], end_stream=True)
    assert headers["sec-websocket-version"] == "13", headers
    offered = headers.get("sec-websocket-protocol")
    chosen = [("sec-websocket-protocol", offered.split(",")[0].strip())] if offered else []
    stream.send_headers([(":status", "200"), *chosen])
    while True:
        message = await stream.receive()
        if message is None:
            return stream.finish()
        if isinstance(message, CloseConnection):
            stream.send(message.response(), end_stream=True)
            return None
        stream.send(Message(data=message))


async def server(certificate, key, on_request=echo):
    """Starts a server; returns it and its port."""
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=H3_ALPN, max_data=WINDOW_BYTES, max_stream_data=WINDOW_BYTES
    )
    configuration.load_cert_chain(certificate, key)
    running = await serve(
        "127.0.0.1",
        0,
        configuration=configuration,
        create_protocol=lambda *arguments, **named: Peer(*arguments, on_request=on_request, **named),
    )
    return running, running._transport.get_extra_info("sockname")[1]
