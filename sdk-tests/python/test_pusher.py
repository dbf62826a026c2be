"""Tests the published package `pusher`, a backend's, with `linerate serve`."""

import asyncio
import queue
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import centrifuge
import pusher
from server import Server, token
from test_core import Journal

APP = {"app_id": "7", "key": "app-key", "secret": "the secret of the app"}

ENVIRONMENT = {
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
        self.backend = pusher.Pusher(**APP, host=address.hostname, port=address.port, ssl=False)

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

    async def test_a_wrong_secret_is_refused(self):
        address = urlsplit(self.server.url)
        app = {**APP, "secret": "another secret"}
        backend = pusher.Pusher(**app, host=address.hostname, port=address.port, ssl=False)
        with self.assertRaises(pusher.errors.PusherBadAuth):
            await asyncio.to_thread(backend.trigger, "private-news", "created", {})


if __name__ == "__main__":
    unittest.main()
