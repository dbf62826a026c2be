// Recovery of missed publications: after the network was cut, and by slow clients.

import assert from "node:assert/strict";
import { Journal } from "../support/journal.mjs";
import { behindProxy, flood, overEveryTransport } from "../support/suite.mjs";

/** A stalled client cannot answer pings either. Replies are short. */
const ENVIRONMENT = {
  LINERATE_CLIENT_PONG_TIMEOUT_S: "60",
  LINERATE_CLIENT_REPLY_BYTES_MAX: "100000",
};

overEveryTransport(
  {
    "after a lost connection nothing is missing or duplicated": (bench) =>
      behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
        const channel = bench.channel("open");
        const { journal } = await bench.subscribed(client, channel);
        await bench.server.publish(channel, 1, 2);
        assert.deepEqual(await bench.payloads(journal, 2), [1, 2]);
        proxy.cut();
        await journalOfClient.next("connecting");
        await bench.server.publish(channel, 3, 4, 5);
        proxy.mend();
        const { wasRecovering, recovered } = await journal.next("subscribed");
        assert.deepEqual([wasRecovering, recovered], [true, true]);
        await bench.server.publish(channel, 6);
        assert.deepEqual(await bench.payloads(journal, 4), [3, 4, 5, 6]);
      }),

    "more than fits into a reply is recovered, even after repeated cuts": (bench) =>
      behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
        const channel = bench.channel("open");
        const { journal } = await bench.subscribed(client, channel);
        const filler = "x".repeat(20_000);
        const numbers = Array.from({ length: 20 }, (_, index) => index);
        for (let round = 0; round < 2; round++) {
          proxy.cut();
          await journalOfClient.next("connecting");
          await bench.server.publish(channel, ...numbers.map((number) => [round, number, filler]));
          proxy.mend();
          const { wasRecovering, recovered } = await journal.next("subscribed");
          assert.deepEqual([wasRecovering, recovered], [true, true]);
          await bench.server.publish(channel, [round, "live"]);
          const payloads = await bench.payloads(journal, numbers.length + 1);
          const seen = payloads.map(([of, number]) => [of, number]);
          assert.deepEqual(
            seen,
            [...numbers, "live"].map((number) => [round, number]),
          );
        }
      }),

    "publications that the channel no longer keeps are not reported as recovered": (bench) =>
      behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
        const channel = bench.channel("short");
        const { journal } = await bench.subscribed(client, channel);
        await bench.server.publish(channel, 1);
        await journal.next("publication");
        proxy.cut();
        await journalOfClient.next("connecting");
        await bench.server.publish(channel, 2, 3, 4, 5, 6);
        proxy.mend();
        const { wasRecovering, recovered } = await journal.next("subscribed");
        assert.deepEqual([wasRecovering, recovered], [true, false]);
        await bench.server.publish(channel, 7);
        const isNewest = ({ data }) => bench.transport.decode(data) === 7;
        await journal.next("publication", isNewest);
      }),

    "a slow network does not keep many channels from being recovered at once": (bench) =>
      behindProxy(
        bench,
        async (proxy, { client, journal: journalOfClient }) => {
          const channels = Array.from(
            { length: 40 },
            (_, index) => `${bench.channel("open")}-${index}`,
          );
          const journals = [];
          for (const channel of channels) {
            journals.push((await bench.subscribed(client, channel)).journal);
          }
          proxy.cut();
          await journalOfClient.next("connecting");
          const filler = "x".repeat(10_000);
          for (let number = 1; number <= 20; number++) {
            await bench.server.api("broadcast", { channels, data: [number, filler] });
          }
          proxy.throttle(4_000_000);
          proxy.mend();
          for (const journal of journals) {
            assert.equal((await journal.next("subscribed")).recovered, true);
            const payloads = await bench.payloads(journal, 20);
            assert.deepEqual(payloads.at(-1), [20, filler]);
          }
          // An error is an attempt during the cut.
          const names = journalOfClient.names().filter((name) => name !== "error");
          assert.deepEqual(names, ["connecting", "connected", "connecting", "connected"]);
        },
        { timeout: 30_000 },
      ),

    async "a client with a position receives what followed it"(bench) {
      const channel = bench.channel("open");
      const { client } = await bench.connected();
      const { subscription, context } = await bench.subscribed(client, channel);
      await bench.server.publish(channel, 1, 2, 3);
      const { epoch } = context.streamPosition;
      subscription.unsubscribe();
      client.removeSubscription(subscription);
      const since = { epoch, offset: 1 };
      const { journal } = await bench.subscribed(client, channel, { since });
      assert.deepEqual(await bench.payloads(journal, 2), [2, 3]);
    },

    "a slow client is told of the gap, subscribes again and recovers": (bench) =>
      behindProxy(bench, async (proxy, { client }) => {
        const channel = bench.channel("hasty");
        const { subscription, journal } = await bench.subscribed(client, channel);
        const publications = new Journal(subscription, ["publication"]);
        await bench.subscribed(client, bench.channel("live"));
        proxy.stall();
        await flood(bench, bench.channel("live"));
        const published = Array.from({ length: 20 }, (_, index) => index);
        await bench.server.publish(channel, ...published);
        proxy.flow();
        const { code, reason } = await journal.next("subscribing", ({ code }) => code !== 0);
        assert.deepEqual([code, reason], [2500, "insufficient state"]);
        assert.deepEqual(await bench.payloads(publications, published.length), published);
      }),

    "a slow client is disconnected with 3008 if the channel is configured so": (bench) =>
      behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
        const channel = bench.channel("strict");
        await bench.subscribed(client, channel);
        proxy.stall();
        await flood(bench, channel);
        proxy.flow();
        const { code } = await journalOfClient.next("connecting", ({ code }) => code !== 0);
        assert.equal(code, 3008);
        await journalOfClient.next("connected");
      }),
  },
  ENVIRONMENT,
);
