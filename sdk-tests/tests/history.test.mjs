// The history of a channel.

import assert from "node:assert/strict";
import { overEveryTransport } from "../support/suite.mjs";

overEveryTransport({
  async "history can be read from either end and from a position"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("open");
    const { subscription } = await bench.subscribed(client, channel);
    await bench.server.publish(channel, 1, 2, 3, 4, 5);
    const part = async (options) => {
      const { publications, epoch, offset } = await subscription.history(options);
      assert.equal(offset, 5);
      const values = publications.map(({ data }) => bench.transport.decode(data));
      const offsets = publications.map(({ offset }) => offset);
      assert.deepEqual(values, offsets);
      return { values, epoch };
    };
    const { epoch, values } = await part({ limit: -1 });
    assert.deepEqual(values, [1, 2, 3, 4, 5]);
    assert.deepEqual((await part({ limit: 0 })).values, []);
    assert.deepEqual((await part({ limit: 2 })).values, [1, 2]);
    const since = { offset: 3, epoch };
    assert.deepEqual((await part({ limit: 10, since })).values, [4, 5]);
    assert.deepEqual((await part({ limit: 2, reverse: true })).values, [5, 4]);
    assert.deepEqual((await part({ limit: 10, since, reverse: true })).values, [2, 1]);
  },

  async "a position in another epoch is invalid"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("open");
    const { subscription } = await bench.subscribed(client, channel);
    await bench.server.publish(channel, 1);
    const since = { offset: 0, epoch: "another" };
    await assert.rejects(subscription.history({ limit: 10, since }), { code: 112 });
  },

  async "a channel without history reports this"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("live");
    const { subscription } = await bench.subscribed(client, channel);
    const history = subscription.history({ limit: 10 });
    await assert.rejects(history, ({ code }) => [103, 108].includes(code));
  },
});
