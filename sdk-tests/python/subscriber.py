"""A subscriber for `make chaos`: `centrifuge-python` with its defaults, one client per channel.

    python subscriber.py ENDPOINT CHANNEL…

Each event is a line of JSON on stdout. The program that starts this one checks the numbers in
publications.
"""

import asyncio
import json
import sys

import centrifuge

BACK_AFTER_S = 0.2


class Client(centrifuge.ClientEventHandler):
    """A client with one subscription. Repeats what the SDK has permanently stopped doing."""

    def __init__(self, endpoint, channel):
        self._channel = channel
        self._client = centrifuge.Client(
            endpoint, events=self, proxy=None, min_reconnect_delay=0.1, max_reconnect_delay=0.5
        )
        self._subscription = self._client.new_subscription(
            channel, events=Subscription(self), min_resubscribe_delay=0.1, max_resubscribe_delay=0.5
        )

    async def start(self):
        await self._subscription.subscribe()
        await self._client.connect()

    def tell(self, event, **details):
        line = {"channel": self._channel, "event": event, **details}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    async def on_connecting(self, context):
        self.tell("connecting", code=context.code)

    async def on_connected(self, context):
        self.tell("connected")

    async def on_disconnected(self, context):
        self.tell("disconnected", code=context.code)
        again(self._client.connect)

    async def on_error(self, context):
        self.tell("error", code=context.code)

    def subscribe_again(self):
        again(self._subscription.subscribe)


class Subscription(centrifuge.SubscriptionEventHandler):
    """The events of a client's subscription."""

    def __init__(self, client):
        self._client = client

    async def on_subscribing(self, context):
        self._client.tell("subscribing", code=context.code)

    async def on_subscribed(self, context):
        self._client.tell("subscribed", was_recovering=context.was_recovering, recovered=context.recovered)

    async def on_unsubscribed(self, context):
        self._client.tell("unsubscribed", code=context.code)
        self._client.subscribe_again()

    async def on_publication(self, context):
        self._client.tell("publication", number=context.pub.data["n"], offset=context.pub.offset)

    async def on_error(self, context):
        self._client.tell("error", code=context.code)


def again(act):
    asyncio.get_running_loop().call_later(BACK_AFTER_S, lambda: asyncio.ensure_future(act()))


async def main(endpoint, channels):
    for channel in channels:
        await Client(endpoint, channel).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
