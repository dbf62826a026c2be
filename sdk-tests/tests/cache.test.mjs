// Channels that recover the newest publication only.

import assert from "node:assert/strict";
import { behindProxy, overEveryTransport } from "../support/suite.mjs";

overEveryTransport({
  async "a new subscriber that asks to recover receives the newest publication"(bench) {
    const channel = bench.channel("state");
    await bench.server.publish(channel, 1, 2, 3);
    const { client } = await bench.connected();
    const { journal, context } = await bench.subscribed(client, channel, { since: {} });
    const { wasRecovering, recovered, streamPosition } = context;
    assert.deepEqual([wasRecovering, recovered, streamPosition.offset], [true, true, 3]);
    await bench.server.publish(channel, 4);
    assert.deepEqual(await bench.payloads(journal, 2), [3, 4]);
  },

  async "a new subscriber that does not ask to recover receives what is published next"(bench) {
    const channel = bench.channel("state");
    await bench.server.publish(channel, 1);
    const { client } = await bench.connected();
    const { journal, context } = await bench.subscribed(client, channel);
    assert.equal(context.wasRecovering, false);
    await bench.server.publish(channel, 2);
    assert.deepEqual(await bench.payloads(journal, 1), [2]);
  },

  async "an empty channel has nothing to recover"(bench) {
    const channel = bench.channel("state");
    const { client } = await bench.connected();
    const { journal, context } = await bench.subscribed(client, channel, { since: {} });
    assert.deepEqual([context.wasRecovering, context.recovered], [true, false]);
    await bench.server.publish(channel, 1);
    assert.deepEqual(await bench.payloads(journal, 1), [1]);
  },

  "after a lost connection the newest publication arrives, and only if it is new": (bench) =>
    behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
      const channel = bench.channel("state");
      const { journal } = await bench.subscribed(client, channel, { since: {} });
      await bench.server.publish(channel, 1);
      assert.deepEqual(await bench.payloads(journal, 1), [1]);
      for (const missed of [[], [2, 3, 4]]) {
        proxy.cut();
        await journalOfClient.next("connecting");
        await bench.server.publish(channel, ...missed);
        proxy.mend();
        const context = await journal.next("subscribed");
        assert.deepEqual([context.wasRecovering, context.recovered], [true, true]);
        assert.equal(context.hasRecoveredPublications, missed.length > 0);
      }
      await bench.server.publish(channel, 5);
      assert.deepEqual(await bench.payloads(journal, 2), [4, 5]);
    }),
});
