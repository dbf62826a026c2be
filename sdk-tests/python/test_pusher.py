"""Tests the published package `pusher`, a backend's, with `linerate serve`."""

import asyncio
import json
import queue
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import centrifuge
import pusher
import websockets
from server import Server, token
from test_core import Journal

APP = {"app_id": "7", "key": "app-key", "secret": "the secret of the app"}

ENVIRONMENT = {
    "LINERATE_CHANNEL_ALLOW_ANONYMOUS": "true",
    "LINERATE_CHANNEL_ALLOW_SUBSCRIBE": "true",
    "LINERATE_PROTOCOLS_PUSHER": "true",
    "LINERATE_PUSHER_APP_ID": APP["app_id"],
    "LINERATE_PUSHER_KEY": APP["key"],
    "LINERATE_PUSHER_SECRET": APP["secret"],
}


class Receiver(HTTPServer):
    """Queues the headers and the bodies of requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.requests.put((self.headers, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.requests = queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    async def request(self):
        return await asyncio.to_thread(self.requests.get, timeout=30)


class Socket:
    """A client, which speaks the protocol itself."""

    def __init__(self, connection):
        self._connection = connection

    @classmethod
    async def connect(cls, server):
        url = server.url.replace("http", "ws")
        connection = await websockets.connect(f"{url}/app/{APP['key']}?protocol=7&client=python")
        self = cls(connection)
        self.id = (await self.next("pusher:connection_established"))["socket_id"]
        return self

    async def send(self, event, data):
        await self._connection.send(json.dumps({"event": event, "data": data}))

    async def next(self, event):
        """Returns the data of the next message, which must be this event."""
        while True:
            message = json.loads(await asyncio.wait_for(self._connection.recv(), 30))
            if message["event"] != "pusher:ping":
                assert message["event"] == event, message
                data = message["data"]
                return json.loads(data) if isinstance(data, str) else data
            await self.send("pusher:pong", {})

    async def subscribe(self, channel, signed={}):
        """Subscribes with what the backend has signed."""
        signed = {key: value for key, value in signed.items() if key != "shared_secret"}
        await self.send("pusher:subscribe", {"channel": channel, **signed})
        return await self.next("pusher_internal:subscription_succeeded")

    async def close(self):
        await self._connection.close()


class PusherTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.receiver = Receiver()
        self.addCleanup(self.receiver.server_close)
        self.addCleanup(self.receiver.shutdown)
        url = f"http://127.0.0.1:{self.receiver.server_port}/"
        webhook = f'[[webhook]]\nname = "app"\nurl = "{url}"\nformat = "pusher"\n'
        self.server = await Server.start(webhook, **ENVIRONMENT)
        self.addAsyncCleanup(self.server.stop)
        address = urlsplit(self.server.url)
        self.backend = pusher.Pusher(
            **APP,
            host=address.hostname,
            port=address.port,
            ssl=False,
            encryption_master_key_base64="MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        )

    async def connect(self):
        socket = await Socket.connect(self.server)
        self.addAsyncCleanup(socket.close)
        return socket

    async def subscribe(self, channel):
        """Subscribes with the protocol of Centrifuge, and returns a journal."""

        async def channel_token(_):
            return token(sub="ann", channel=channel)

        client = centrifuge.Client(self.server.endpoint, token=token(sub="ann"))
        self.addAsyncCleanup(client.disconnect)
        await client.connect()
        journal = Journal()
        subscription = client.new_subscription(channel, get_token=channel_token, events=journal)
        await subscription.subscribe()
        await journal.next("subscribed")
        return journal

    async def test_events_reach_clients_of_another_protocol(self):
        journal = await self.subscribe("private-news")
        await asyncio.to_thread(self.backend.trigger, "private-news", "created", {"id": 1})
        batch = [{"channel": "private-news", "name": "created", "data": {"id": 2}}]
        await asyncio.to_thread(self.backend.trigger_batch, batch)
        for number in (1, 2):
            publication = (await journal.next("publication")).pub
            self.assertEqual(publication.data, {"id": number})
            self.assertEqual(publication.tags, {"event": "created"})

    async def test_channels_are_known(self):
        await self.subscribe("private-news")
        info = await asyncio.to_thread(self.backend.channels_info, "private-")
        self.assertEqual(info, {"channels": {"private-news": {}}})
        info = await asyncio.to_thread(
            self.backend.channel_info, "private-news", ["subscription_count"]
        )
        self.assertEqual(info, {"occupied": True, "subscription_count": 1})
        users = await asyncio.to_thread(self.backend.users_info, "presence-empty")
        self.assertEqual(users, {"users": []})

    async def test_webhooks_are_valid(self):
        await self.subscribe("private-news")
        headers, body = await self.receiver.request()
        key, signature = headers["X-Pusher-Key"], headers["X-Pusher-Signature"]
        webhook = self.backend.validate_webhook(key, signature, body.decode())
        occupied = {"name": "channel_occupied", "channel": "private-news"}
        self.assertEqual(webhook["events"], [occupied])
        other = body.decode().replace("private-news", "private-olds")
        self.assertIsNone(self.backend.validate_webhook(key, signature, other))

    async def test_channels_with_a_signature_are_open_to_clients_that_have_it(self):
        socket, other = await self.connect(), await self.connect()
        received = []
        for channel in ("private-news", "private-encrypted-news"):
            await socket.subscribe(channel, self.backend.authenticate(channel, socket.id))
            await asyncio.to_thread(self.backend.trigger, channel, "created", {"id": 1})
            received.append(await socket.next("created"))
        self.assertEqual(received[0], {"id": 1})
        self.assertEqual(set(received[1]), {"nonce", "ciphertext"})
        wrong = self.backend.authenticate("private-olds", other.id)
        await other.send("pusher:subscribe", {"channel": "private-news", **wrong})
        self.assertEqual((await other.next("pusher:subscription_error"))["status"], 401)

    async def test_a_presence_channel_has_users(self):
        ann, bob = await self.connect(), await self.connect()
        for user, socket in (("ann", ann), ("bob", bob)):
            member = {"user_id": user, "user_info": {"name": user}}
            signed = self.backend.authenticate("presence-room", socket.id, member)
            presence = (await socket.subscribe("presence-room", signed))["presence"]
        self.assertEqual(presence["hash"], {"ann": {"name": "ann"}, "bob": {"name": "bob"}})
        added = await ann.next("pusher_internal:member_added")
        self.assertEqual(added, {"user_id": "bob", "user_info": {"name": "bob"}})
        users = await asyncio.to_thread(self.backend.users_info, "presence-room")
        self.assertEqual(users, {"users": [{"id": "ann"}, {"id": "bob"}]})
        info = await asyncio.to_thread(self.backend.channels_info, "presence-", ["user_count"])
        self.assertEqual(info, {"channels": {"presence-room": {"user_count": 2}}})

    async def test_a_socket_does_not_receive_the_event_that_it_caused(self):
        socket = await self.connect()
        await socket.subscribe("news")
        await asyncio.to_thread(self.backend.trigger, "news", "created", 1, socket.id)
        await asyncio.to_thread(self.backend.trigger, ["news", "olds"], "created", 2)
        self.assertEqual(await socket.next("created"), 2)

    async def test_a_user_gets_events(self):
        socket = await self.connect()
        signed = self.backend.authenticate_user(socket.id, {"id": "ann"})
        await socket.send("pusher:signin", signed)
        succeeded = await socket.next("pusher:signin_success")
        self.assertEqual(json.loads(succeeded["user_data"]), {"id": "ann"})
        await socket.subscribe("#server-to-user-ann")
        await asyncio.to_thread(self.backend.send_to_user, "ann", "created", 1)
        self.assertEqual(await socket.next("created"), 1)

    async def test_a_wrong_secret_is_refused(self):
        address = urlsplit(self.server.url)
        app = {**APP, "secret": "another secret"}
        backend = pusher.Pusher(**app, host=address.hostname, port=address.port, ssl=False)
        with self.assertRaises(pusher.errors.PusherBadAuth):
            await asyncio.to_thread(backend.trigger, "private-news", "created", {})


if __name__ == "__main__":
    unittest.main()
