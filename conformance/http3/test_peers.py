"""`linerate echo` and `linerate connect` over HTTP/3 against aioquic, in both roles."""

import asyncio
import json
import os
import random
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from wsproto.events import CloseConnection, Message, Ping, Pong

import peer

BINARY = os.environ["LINERATE_BIN"]
# Generous because the machine may be small and busy; only a failure takes this long.
PATIENCE_S = 60


class Clients(unittest.IsolatedAsyncioTestCase):
    """aioquic's client against our server."""

    async def asyncSetUp(self):
        self.process = await asyncio.create_subprocess_exec(
            BINARY, "echo", "--listen", "127.0.0.1:0", "--tls-self-signed", "--http3", stdout=subprocess.PIPE
        )
        line = (await self.process.stdout.readline()).decode()
        self.port = int(re.search(r":(\d+)$", line.strip())[1])

    async def asyncTearDown(self):
        self.process.terminate()
        self.assertEqual(await self.process.wait(), 0)

    def headers(self, *more):
        return peer.connect_headers(f"127.0.0.1:{self.port}", "/", *more)

    async def test_messages_of_any_size_are_echoed(self):
        numbers = random.Random(7)
        async with asyncio.timeout(PATIENCE_S), peer.client(self.port) as connection:
            stream, answer = await connection.open(self.headers())
            self.assertEqual(answer[":status"], "200")
            for message in ["größer €", "", b"", "s" * 70_000, *map(numbers.randbytes, [1, 125, 126, 65_536, 3_000_000])]:
                stream.send(Message(data=message))
                self.assertEqual(await stream.receive(), message)

    async def test_pings_are_answered(self):
        async with asyncio.timeout(PATIENCE_S), peer.client(self.port) as connection:
            stream, _ = await connection.open(self.headers())
            stream.send(Ping(payload=b"are you there"))
            self.assertEqual(await stream.receive(), Pong(payload=bytearray(b"are you there")))

    async def test_a_close_is_answered_and_ends_only_the_stream(self):
        async with asyncio.timeout(PATIENCE_S), peer.client(self.port) as connection:
            stream, _ = await connection.open(self.headers())
            stream.send(CloseConnection(code=4_321, reason="bye"), end_stream=True)
            closed = await stream.receive()
            self.assertIsInstance(closed, CloseConnection)
            self.assertEqual(closed.code, 4_321)
            self.assertIsNone(await stream.receive())
            other, _ = await connection.open(self.headers())
            other.send(Message(data="still here"))
            self.assertEqual(await other.receive(), "still here")

    async def test_many_streams_share_a_connection(self):
        async with asyncio.timeout(PATIENCE_S), peer.client(self.port) as connection:

            async def talk(number):
                stream, _ = await connection.open(self.headers())
                for round_ in range(10):
                    stream.send(Message(data=f"{number}.{round_}"))
                    self.assertEqual(await stream.receive(), f"{number}.{round_}")

            await asyncio.gather(*map(talk, range(50)))

    async def test_invalid_requests_are_refused(self):
        async with asyncio.timeout(PATIENCE_S), peer.client(self.port) as connection:
            headers = dict(self.headers())
            for name, value, status in [(":protocol", "webtransport", "501"), ("sec-websocket-version", "12", "426")]:
                _, answer = await connection.open(list({**headers, name: value}.items()))
                self.assertEqual(answer[":status"], status)
            del headers[":protocol"]
            headers[":method"] = "GET"
            _, answer = await connection.open(list(headers.items()))
            self.assertEqual(answer[":status"], "400")

    async def test_a_violation_of_the_protocol_resets_its_stream(self):
        async with asyncio.timeout(PATIENCE_S), peer.client(self.port) as connection:
            headers = [field for field in self.headers() if field[0] != ":scheme"]
            with self.assertRaisesRegex(peer.Lost, "0x10e"):
                await connection.open(headers)
            stream, _ = await connection.open(self.headers())
            stream.send(Message(data="still here"))
            self.assertEqual(await stream.receive(), "still here")


class Servers(unittest.IsolatedAsyncioTestCase):
    """Our client against aioquic's server."""

    async def asyncSetUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.certificate, key = (Path(self.directory.name) / name for name in ["certificate.pem", "key.pem"])
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
             "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", self.certificate],
            check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.server, self.port = await peer.server(self.certificate, key)

    async def asyncTearDown(self):
        self.server.close()
        self.directory.cleanup()

    async def connect(self, path, *flags, lines=()):
        """Runs `linerate connect`; returns its exit status, the events of its transcript, and its
        errors."""
        process = await asyncio.create_subprocess_exec(
            BINARY, "connect", f"wss://localhost:{self.port}{path}", "--http3", "--no-proxy", "--json",
            "--tls-ca", self.certificate, *flags,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE_S):
            output, complaints = await process.communicate("".join(f"{line}\n" for line in lines).encode())
        return process.returncode, [json.loads(line) for line in output.splitlines()], complaints.decode()

    async def test_messages_are_echoed_and_the_close_is_clean(self):
        lines = ["größer €", "x" * 200_000, "last"]
        status, events, complaints = await self.connect("/echo", "--subprotocol", "wamp", lines=lines)
        self.assertEqual(status, 0, complaints)
        self.assertEqual(events[0]["subprotocol"], "wamp")
        self.assertEqual([event["text"] for event in events if event["event"] == "message"], lines)
        self.assertEqual((events[-1]["event"], events[-1]["code"], events[-1]["clean"]), ("close", 1000, True))

    async def test_a_refusal_is_reported(self):
        status, _, complaints = await self.connect("/elsewhere")
        self.assertEqual(status, 1)
        self.assertIn("404", complaints)


if __name__ == "__main__":
    unittest.main()
