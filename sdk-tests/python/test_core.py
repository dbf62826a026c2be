"""Tests the published package `centrifuge-python` with `linerate serve`, in JSON and Protobuf."""

import asyncio
import json
import time
import unittest

import centrifuge
from server import Server, token

# Generous because the machine may be small and busy; only a failure takes this long.
PATIENCE_S = 30

# The reason with which SDKs report that they cannot get a token.
UNAUTHORIZED = 1


class Journal(centrifuge.ClientEventHandler, centrifuge.SubscriptionEventHandler):
    """Records the events of a client or a subscription, in order."""

    def __init__(self):
        self._events = asyncio.Queue()

    async def next(self, name):
        """Returns the context of the next event of that name, and skips others before it."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found, context = await self._events.get()
                if found == name:
                    return context


    def rest(self):
        """Returns the names of unread events."""
        return [self._events.get_nowait()[0] for _ in range(self._events.qsize())]


def _keep(name):
    async def handler(self, context):
        self._events.put_nowait((name, context))

    return handler


for event in ["connecting", "connected", "disconnected", "error"]:
    setattr(Journal, f"on_{event}", _keep(event))
for event in ["subscribing", "subscribed", "unsubscribed", "publication", "join", "leave"]:
    setattr(Journal, f"on_{event}", _keep(event))


class Core:
    """The tests, independent of the format."""

    use_protobuf: bool

    async def asyncSetUp(self):
        self.server = await Server.start()
        self.clients = []

    async def asyncTearDown(self):
        for client in self.clients:
            await client.disconnect()
        await self.server.stop()

    def encode(self, value):
        return json.dumps(value).encode() if self.use_protobuf else value

    def decode(self, data):
        return json.loads(data) if self.use_protobuf else data

    async def connected(self, user="ann", **options):
        journal = Journal()
        client = centrifuge.Client(
            self.server.endpoint,
            events=journal,
            use_protobuf=self.use_protobuf,
            proxy=None,
            **{"token": token(sub=user), "min_reconnect_delay": 0.05, "max_reconnect_delay": 1, **options},
        )
        self.clients.append(client)
        await client.connect()
        await journal.next("connected")
        return client, journal

    async def subscribed(self, client, channel, **options):
        journal = Journal()
        subscription = client.new_subscription(channel, events=journal, **options)
        await subscription.subscribe()
        context = await journal.next("subscribed")
        return subscription, journal, context

    async def values(self, journal, count):
        contexts = [await journal.next("publication") for _ in range(count)]
        return [self.decode(context.pub.data) for context in contexts]

    async def publish(self, channel, *payloads):
        for data in payloads:
            await self.server.api("publish", channel=channel, data=data)

    async def test_publications_arrive_in_order(self):
        client, _ = await self.connected()
        _, journal, _ = await self.subscribed(client, "open:1")
        published = [{"a": 1.5}, "ü\n", [None, True], "x" * 100_000]
        await self.publish("open:1", *published)
        self.assertEqual(await self.values(journal, len(published)), published)

    async def test_a_client_publishes_and_is_named(self):
        ann, _ = await self.connected("ann")
        bob, _ = await self.connected("bob")
        _, journal, _ = await self.subscribed(ann, "open:1")
        await bob.publish("open:1", self.encode({"price": 190}))
        publication = (await journal.next("publication")).pub
        self.assertEqual(self.decode(publication.data), {"price": 190})
        self.assertEqual((publication.info.user, publication.offset), ("bob", 1))

    async def test_presence_join_and_leave(self):
        ann, _ = await self.connected("ann")
        subscription, journal, _ = await self.subscribed(ann, "open:1", join_leave=True)
        bob, _ = await self.connected("bob")
        await self.subscribed(bob, "open:1")
        while (await journal.next("join")).info.user != "bob":
            pass
        presence = await subscription.presence()
        self.assertEqual(sorted(info.user for info in presence.clients.values()), ["ann", "bob"])
        stats = await subscription.presence_stats()
        self.assertEqual((stats.num_clients, stats.num_users), (2, 2))
        await bob.disconnect()
        self.assertEqual((await journal.next("leave")).info.user, "bob")

    async def test_history(self):
        client, _ = await self.connected()
        subscription, _, _ = await self.subscribed(client, "open:1")
        await self.publish("open:1", 1, 2, 3)
        history = await subscription.history(limit=2, reverse=True)
        self.assertEqual([self.decode(pub.data) for pub in history.publications], [3, 2])
        self.assertEqual(history.offset, 3)

    async def test_missed_publications_are_recovered(self):
        client, journal = await self.connected(min_reconnect_delay=1)
        _, publications, _ = await self.subscribed(client, "open:1")
        await self.publish("open:1", 1)
        self.assertEqual(await self.values(publications, 1), [1])
        await self.server.api("disconnect", user="ann", disconnect={"code": 4000, "reason": "come back"})
        self.assertEqual((await journal.next("connecting")).code, 4000)
        await self.publish("open:1", 2, 3, 4)
        context = await publications.next("subscribed")
        self.assertTrue(context.was_recovering and context.recovered)
        self.assertEqual(await self.values(publications, 3), [2, 3, 4])

    async def test_tokens_are_refreshed(self):
        asked = asyncio.Event()

        async def get_token():
            asked.set()
            return token(sub="ann")

        short = token(sub="ann", exp=int(time.time()) + 2)
        client, _ = await self.connected(token=short, get_token=get_token)
        async with asyncio.timeout(PATIENCE_S):
            await asked.wait()
        await asyncio.sleep(1.5)
        await self.subscribed(client, "open:1")

    async def test_a_client_disconnected_for_memory_reconnects_and_misses_nothing(self):
        client, journal = await self.connected(min_reconnect_delay=1)
        _, publications, _ = await self.subscribed(client, "open:1")
        told = {"code": 3011, "reason": "server overloaded, try again later"}
        await self.server.api("disconnect", user="ann", disconnect=told)
        self.assertEqual((await journal.next("connecting")).code, 3011)
        await self.publish("open:1", 1, 2, 3)
        self.assertTrue((await publications.next("subscribed")).recovered)
        self.assertEqual(await self.values(publications, 3), [1, 2, 3])

    async def test_a_revoked_token_is_replaced_and_nothing_is_missed(self):
        asked = []

        async def get_token():
            asked.append(1)
            return token(sub="ann")

        client, journal = await self.connected(token=token(sub="ann", jti="bad"), get_token=get_token)
        _, publications, _ = await self.subscribed(client, "open:1")
        await self.server.api("revoke_token", uid="bad")
        self.assertEqual((await journal.next("connecting")).code, 3005)
        await self.publish("open:1", 1)
        await journal.next("connected")
        self.assertTrue((await publications.next("subscribed")).recovered)
        self.assertEqual(await self.values(publications, 1), [1])
        self.assertEqual(len(asked), 1)

    async def test_without_another_token_a_client_stops(self):
        _, journal = await self.connected(token=token(sub="ann", jti="bad"))
        await self.server.api("revoke_token", uid="bad")
        self.assertEqual((await journal.next("disconnected")).code, UNAUTHORIZED)
        await asyncio.sleep(3)
        self.assertEqual(journal.rest(), [], "it stays away")

    async def test_a_revoked_token_for_a_channel_is_replaced_or_ends_the_subscription(self):
        async def get_token(_):
            return token(sub="ann", channel="private:1")

        client, _ = await self.connected()
        bad = [token(sub="ann", channel=f"private:{number}", jti=f"bad-{number}") for number in (1, 2)]
        _, replaced, _ = await self.subscribed(client, "private:1", token=bad[0], get_token=get_token)
        _, ended, _ = await self.subscribed(client, "private:2", token=bad[1])
        for number in (1, 2):
            await self.server.api("revoke_token", uid=f"bad-{number}")
        self.assertEqual((await replaced.next("subscribing")).code, 2501)
        await replaced.next("subscribed")
        self.assertEqual((await ended.next("unsubscribed")).code, UNAUTHORIZED)

    async def test_errors_have_their_codes(self):
        client, _ = await self.connected()
        journal = Journal()
        subscription = client.new_subscription("private:1", events=journal)
        await subscription.subscribe()
        self.assertEqual((await journal.next("unsubscribed")).code, 103)
        with self.assertRaises(centrifuge.ReplyError) as caught:
            await client.publish("live:1", self.encode(1))
        self.assertEqual(caught.exception.code, 103)

    async def test_an_idle_client_stays_connected_and_a_disconnected_one_stops(self):
        _, journal = await self.connected()
        await asyncio.sleep(3.5)
        await self.server.api("disconnect", user="ann")
        self.assertEqual((await journal.next("disconnected")).code, 3503)


class Json(Core, unittest.IsolatedAsyncioTestCase):
    use_protobuf = False


class Protobuf(Core, unittest.IsolatedAsyncioTestCase):
    use_protobuf = True


if __name__ == "__main__":
    unittest.main()
