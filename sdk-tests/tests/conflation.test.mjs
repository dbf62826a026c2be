// Batches and conflation, which SDKs cannot ask for: the options of the channel decide.

import assert from "node:assert/strict";
import { behindProxy, overEveryTransport } from "../support/suite.mjs";

overEveryTransport({
  async "all publications of a batch arrive in order"(bench) {
    const channel = bench.channel("batch");
    const { client } = await bench.connected();
    const { journal, context } = await bench.subscribed(client, channel);
    assert.deepEqual([context.positioned, context.recoverable], [true, true]);
    const numbers = Array.from({ length: 50 }, (_, number) => number);
    await bench.server.publish(channel, ...numbers);
    const contexts = await journal.take("publication", numbers.length);
    assert.deepEqual(
      contexts.map(({ offset, data }) => [offset, bench.transport.decode(data)]),
      numbers.map((number) => [number + 1, number]),
    );
  },

  async "only the newest publication of each key arrives"(bench) {
    const channel = bench.channel("keys");
    const { client } = await bench.connected();
    const { journal, context } = await bench.subscribed(client, channel);
    // Offsets that are left out are not gaps.
    assert.deepEqual([context.positioned, context.recoverable], [false, true]);
    const of = (key) => (_, n) => ({ key, n });
    const [a, b] = ["a", "b"].map((key) => Array.from({ length: 20 }, of(key)));
    await broadcast(bench, channel, [...a, ...b]);
    const seen = await until(bench, journal, b.at(-1));
    assert.ok(seen.length < 20, `${seen.length} of 40 publications`);
    assert.deepEqual(newestOf(seen), { a: 19, b: 19 });
  },

  "what newer publications have replaced is not recovered": (bench) =>
    behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
      const channel = bench.channel("keys");
      const { journal } = await bench.subscribed(client, channel);
      await bench.server.publish(channel, { key: "a", n: 0 });
      await until(bench, journal, { key: "a", n: 0 });
      proxy.cut();
      await journalOfClient.next("connecting");
      const missed = ["a", "b", "a", "c", "b"].map((key, n) => ({ key, n: n + 1 }));
      await bench.server.publish(channel, ...missed);
      proxy.mend();
      const { wasRecovering, recovered } = await journal.next("subscribed");
      assert.deepEqual([wasRecovering, recovered], [true, true]);
      assert.deepEqual(await bench.payloads(journal, 3), [
        { key: "a", n: 3 },
        { key: "c", n: 4 },
        { key: "b", n: 5 },
      ]);
      // The position is that of the newest publication.
      proxy.cut();
      await journalOfClient.next("connecting");
      await bench.server.publish(channel, { key: "d", n: 6 });
      proxy.mend();
      assert.equal((await journal.next("subscribed")).recovered, true);
      assert.deepEqual(await bench.payloads(journal, 1), [{ key: "d", n: 6 }]);
    }),
});

/** Publishes all payloads at about the same time, in order. */
async function broadcast(bench, channel, payloads) {
  const commands = payloads.map((data) => ({ publish: { channel, data } }));
  await bench.server.api("batch", { commands });
}

/** Returns the payloads up to `last`. */
async function until(bench, journal, last) {
  const payloads = [];
  do {
    payloads.push(...(await bench.payloads(journal, 1)));
  } while (JSON.stringify(payloads.at(-1)) !== JSON.stringify(last));
  return payloads;
}

/** Returns the last number of each key. */
function newestOf(payloads) {
  return Object.fromEntries(payloads.map(({ key, n }) => [key, n]));
}
