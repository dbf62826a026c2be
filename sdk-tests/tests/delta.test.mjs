// Publications as deltas from those before them.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { Journal } from "../support/journal.mjs";
import { behindProxy, flood, overEveryTransport } from "../support/suite.mjs";

const FOSSIL = { delta: "fossil" };

/** A payload that resembles the others, with characters of one to four bytes. */
function score(number) {
  const players = ["Åsa Lindström", "Renée €", "王伟 🏀"].map((name, id) => ({
    id,
    name,
    points: 7,
  }));
  players[number % 3].points = number;
  return { match: "Berlin – Paris", clock: `${number}:00`, players, note: '"quoted"\n' };
}

function scores(from, to) {
  return Array.from({ length: to - from }, (_, index) => score(from + index));
}

/** Returns how many publications were whole and how many were deltas. */
function kinds(subscription) {
  const { numFullPayloads, numDeltaPayloads } = subscription.deltaStats();
  return [numFullPayloads, numDeltaPayloads];
}

/** A stalled client cannot answer pings either. */
const ENVIRONMENT = { LINERATE_CLIENT_PONG_TIMEOUT_S: "60" };

overEveryTransport(
  {
    async "publications are deltas after the first, and take less"(bench) {
      const channel = bench.channel("delta");
      const { client } = await bench.connected();
      const { subscription, journal } = await bench.subscribed(client, channel, FOSSIL);
      await bench.server.publish(channel, ...scores(0, 10));
      assert.deepEqual(await bench.payloads(journal, 10), scores(0, 10));
      assert.deepEqual(kinds(subscription), [1, 9]);
      const { bytesReceived, bytesDecoded } = subscription.deltaStats();
      assert.ok(bytesReceived < bytesDecoded / 2, `${bytesReceived} of ${bytesDecoded} bytes`);
    },

    async "a payload that does not resemble the one before it arrives whole"(bench) {
      const channel = bench.channel("delta");
      const { client } = await bench.connected();
      const { subscription, journal } = await bench.subscribed(client, channel, FOSSIL);
      const payloads = [score(1), 2, "three", null, [score(4)], score(5), {}, score(6)];
      await bench.server.publish(channel, ...payloads);
      assert.deepEqual(await bench.payloads(journal, payloads.length), payloads);
      assert.deepEqual(kinds(subscription), [7, 1]);
    },

    async "subscribers with and without deltas receive the same"(bench) {
      const channel = bench.channel("delta");
      const journals = [];
      for (const options of [FOSSIL, {}, FOSSIL]) {
        const { client } = await bench.connected();
        const { subscription, journal } = await bench.subscribed(client, channel, options);
        journals.push({ journal, subscription });
        await bench.server.publish(channel, score(journals.length));
      }
      await bench.server.publish(channel, ...scores(4, 8));
      for (const [index, { journal }] of journals.entries()) {
        assert.deepEqual(await bench.payloads(journal, 7 - index), scores(1 + index, 8));
      }
      const each = journals.map(({ subscription }) => kinds(subscription));
      assert.deepEqual(each, [
        [1, 6],
        [0, 0],
        [1, 4],
      ]);
    },

    async "a channel that does not allow deltas sends none"(bench) {
      const channel = bench.channel("open");
      const { client } = await bench.connected();
      const { subscription, journal } = await bench.subscribed(client, channel, FOSSIL);
      await bench.server.publish(channel, ...scores(0, 3));
      assert.deepEqual(await bench.payloads(journal, 3), scores(0, 3));
      assert.deepEqual(kinds(subscription), [0, 0]);
    },

    "what was missed is recovered as deltas after the first": (bench) =>
      behindProxy(bench, async (proxy, { client, journal: journalOfClient }) => {
        const channel = bench.channel("delta");
        const { subscription, journal } = await bench.subscribed(client, channel, FOSSIL);
        await bench.server.publish(channel, ...scores(0, 3));
        await bench.payloads(journal, 3);
        proxy.cut();
        await journalOfClient.next("connecting");
        await bench.server.publish(channel, ...scores(3, 8));
        proxy.mend();
        const { recovered } = await journal.next("subscribed");
        assert.equal(recovered, true);
        await bench.server.publish(channel, ...scores(8, 10));
        assert.deepEqual(await bench.payloads(journal, 7), scores(3, 10));
        // Whole are the first of each connection, and the first live one after a recovery.
        assert.deepEqual(kinds(subscription), [3, 7]);
      }),

    async "a history holds whole payloads"(bench) {
      const channel = bench.channel("delta");
      const { client } = await bench.connected();
      const { subscription, journal } = await bench.subscribed(client, channel, FOSSIL);
      await bench.server.publish(channel, ...scores(0, 3));
      await bench.payloads(journal, 3);
      const { publications } = await subscription.history({ limit: 10 });
      const payloads = publications.map(({ data }) => bench.transport.decode(data));
      assert.deepEqual(payloads, scores(0, 3));
    },

    "a slow client is told of the gap, and recovers whole payloads and deltas": (bench) =>
      behindProxy(bench, async (proxy, { client }) => {
        const channel = bench.channel("delta-hasty");
        const { subscription, journal } = await bench.subscribed(client, channel, FOSSIL);
        const publications = new Journal(subscription, ["publication"]);
        await bench.subscribed(client, bench.channel("live"));
        await bench.server.publish(channel, score(0));
        await journal.next("publication");
        proxy.stall();
        await flood(bench, bench.channel("live"));
        await bench.server.publish(channel, ...scores(1, 20));
        proxy.flow();
        await journal.next("subscribing", ({ code }) => code === 2500);
        assert.deepEqual(await bench.payloads(publications, 20), scores(0, 20));
        const [whole, deltas] = kinds(subscription);
        assert.ok(whole <= 4 && deltas >= 16, `${whole} whole, ${deltas} deltas`);
      }),

    async "only the newest publication of a batch is sent, as a delta from the one before it"(
      bench,
    ) {
      const channel = bench.channel("delta-latest");
      await bench.server.publish(channel, ...scores(0, 3));
      const { client } = await bench.connected();
      const options = { since: {}, ...FOSSIL };
      const { subscription, journal, context } = await bench.subscribed(client, channel, options);
      assert.deepEqual([context.recovered, context.hasRecoveredPublications], [true, true]);
      assert.deepEqual(await bench.payloads(journal, 1), [score(2)]);
      for (const last of [20, 30, 40]) {
        await bench.server.publish(channel, ...scores(last - 3, last + 1));
        const numbers = (await newest(bench, journal, score(last))).length;
        assert.ok(numbers <= 3, `${numbers} of 4 publications`);
        await pause(250);
      }
      const [whole, deltas] = kinds(subscription);
      assert.equal(whole, 2);
      assert.ok(deltas >= 2 && deltas <= 7, `${deltas} deltas`);
    },
  },
  ENVIRONMENT,
);

/** Returns the payloads up to `last`. */
async function newest(bench, journal, last) {
  const payloads = [];
  do {
    payloads.push(...(await bench.payloads(journal, 1)));
  } while (JSON.stringify(payloads.at(-1)) !== JSON.stringify(last));
  return payloads;
}
