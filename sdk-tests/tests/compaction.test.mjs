// Channels that pushes name by an ID. SDKs ask for it by themselves.

import assert from "node:assert/strict";
import { behindProxy, overEveryTransport } from "../support/suite.mjs";

/** Returns the number that the SDK knows the channel by; 0 if it knows it by its name. */
const idOf = (subscription) => Number(`${subscription._id}`);

overEveryTransport({
  async "publications of several channels reach their subscriptions"(bench) {
    const { client } = await bench.connected();
    const channels = ["a", "b", "c"].map((suffix) => `${bench.channel("compact")}-${suffix}`);
    const subscriptions = [];
    for (const channel of channels) {
      subscriptions.push(await bench.subscribed(client, channel));
    }
    const ids = subscriptions.map(({ subscription }) => idOf(subscription));
    if (bench.transport.name.includes("Protobuf")) {
      assert.deepEqual(ids, [0, 0, 0]);
    } else {
      assert.ok(ids.every((id) => id > 0) && new Set(ids).size === 3, `${ids}`);
    }
    for (const [index, channel] of channels.entries()) {
      await bench.server.publish(channel, index, [channel]);
    }
    for (const [index, { journal }] of subscriptions.entries()) {
      assert.deepEqual(await bench.payloads(journal, 2), [index, [channels[index]]]);
    }
  },

  async "an ID ends with its subscription"(bench) {
    const { client } = await bench.connected();
    const channels = ["a", "b"].map((suffix) => `${bench.channel("compact")}-${suffix}`);
    for (let round = 0; round < 3; round++) {
      for (const channel of channels) {
        const { subscription, journal } = await bench.subscribed(client, channel);
        await bench.server.publish(channel, [round, channel]);
        assert.deepEqual(await bench.payloads(journal, 1), [[round, channel]]);
        subscription.unsubscribe();
        client.removeSubscription(subscription);
      }
    }
  },

  async "others in the channel are known by its name"(bench) {
    const channel = bench.channel("compact");
    const { client } = await bench.connected();
    const { journal } = await bench.subscribed(client, channel, { joinLeave: true });
    const { client: other } = await bench.connected({ user: "other" });
    const { subscription } = await bench.subscribed(other, channel);
    const isOther = ({ info }) => info.user === "other";
    await journal.next("join", isOther);
    subscription.unsubscribe();
    await journal.next("leave", isOther);
  },

  "IDs are new after a lost connection, and so are deltas": (bench) =>
    behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
      const channel = bench.channel("compact");
      await bench.subscribed(client, `${channel}-before`);
      const { journal } = await bench.subscribed(client, channel, { delta: "fossil" });
      const payload = (number) => ({ text: "a text of some length", number });
      await bench.server.publish(channel, payload(1), payload(2));
      assert.deepEqual(await bench.payloads(journal, 2), [1, 2].map(payload));
      proxy.cut();
      await journalOfClient.next("connecting");
      await bench.server.publish(channel, payload(3));
      proxy.mend();
      assert.equal((await journal.next("subscribed")).recovered, true);
      await bench.server.publish(channel, payload(4), payload(5));
      assert.deepEqual(await bench.payloads(journal, 3), [3, 4, 5].map(payload));
    }),
});
