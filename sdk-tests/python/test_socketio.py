"""Tests the published client `python-socketio` with `linerate serve`."""

import asyncio
import unittest

import socketio
from server import Server, token

ENVIRONMENT = {
    "LINERATE_PROTOCOLS_SOCKETIO": "true",
    "LINERATE_SOCKETIO_NAMESPACES": "/,/chat",
    "LINERATE_SOCKETIO_ROOMS": "all,/chat:all",
}


class SocketIoTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = await Server.start(**ENVIRONMENT)
        self.addAsyncCleanup(self.server.stop)

    async def connect(self, transports=("websocket",), **claims):
        """Connects to both namespaces, and returns the client with a queue of its events."""
        client = socketio.AsyncClient(reconnection_delay=0.05, reconnection_delay_max=0.2)
        events = asyncio.Queue()

        async def note(event, namespace, *arguments):
            await events.put((namespace, event, *arguments))

        client.on("*", note, namespace="*")
        self.addAsyncCleanup(client.disconnect)
        await client.connect(
            self.server.url,
            auth={"token": token(sub="ann", **claims)},
            namespaces=["/", "/chat"],
            transports=transports,
        )
        return client, events

    async def next(self, events):
        return await asyncio.wait_for(events.get(), 30)

    async def test_publications_are_events(self):
        client, events = await self.connect(channels=["news", "/chat:lobby"])
        await self.server.api("publish", channel="news", data={"id": 1}, tags={"event": "created"})
        self.assertEqual(await self.next(events), ("/", "created", {"id": 1}))
        await self.server.api("publish", channel="/chat:lobby", data={"event": "said", "args": ["a", 2]})
        self.assertEqual(await self.next(events), ("/chat", "said", "a", 2))
        await self.server.api("publish", channel=client.get_sid("/chat"), b64data="/wA=")
        self.assertEqual(await self.next(events), ("/", "message", b"\xff\x00"))

    async def test_polls_carry_events_in_both_directions(self):
        client, events = await self.connect(transports=["polling"], channels=["news"])
        for number in range(20):
            await self.server.api("publish", channel="news", data=number)
        for number in range(20):
            self.assertEqual(await self.next(events), ("/", "message", number))
        await self.server.api("publish", channel="news", b64data="/wA=")
        self.assertEqual(await self.next(events), ("/", "message", b"\xff\x00"))
        await client.emit("drawn", {"bytes": b"\xff" * 10_000}, namespace="/chat")
        self.assertEqual((await self.next(events))[:2], ("/chat", "linerate:error"))
        self.assertEqual(client.transport(), "polling")

    async def test_a_client_that_polls_upgrades_to_a_websocket(self):
        client, events = await self.connect(transports=None, channels=["news"])
        await self.server.api("publish", channel="news", data=1)
        self.assertEqual(await self.next(events), ("/", "message", 1))
        while client.transport() != "websocket":
            await asyncio.sleep(0.05)
        await self.server.api("publish", channel="news", data=2)
        self.assertEqual(await self.next(events), ("/", "message", 2))

    async def test_events_that_nothing_handles_are_reported(self):
        client, events = await self.connect()
        await client.emit("drawn", {"bytes": b"\xff"}, namespace="/chat")
        namespace, event, error = await self.next(events)
        self.assertEqual((namespace, event, error["code"]), ("/chat", "linerate:error", 108))
        self.assertEqual(error["event"], "drawn")

    async def test_a_wrong_token_is_refused(self):
        client = socketio.AsyncClient(reconnection=False)
        errors = asyncio.Queue()
        client.on("connect_error", errors.put)
        with self.assertRaises(socketio.exceptions.ConnectionError):
            await client.connect(self.server.url, auth={"token": "wrong"}, transports=["websocket"])
        error = await self.next(errors)
        self.assertRegex(error["message"], "^invalid token")
        self.assertEqual(error["data"], {"code": 3500})


if __name__ == "__main__":
    unittest.main()
