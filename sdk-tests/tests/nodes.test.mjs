// Two nodes on one broker are one service.

import assert from "node:assert/strict";
import { BROKERS } from "../support/brokers.mjs";
import { startProxy } from "../support/proxy.mjs";
import { overEveryTransportOnTwoNodes } from "../support/suite.mjs";

/** Returns a client of the other node. */
const elsewhere = (bench, options) => bench.connected({ url: bench.other.url, ...options });

const TESTS = {
  async "publications on one node arrive on the other, in order"(bench) {
    for (const namespace of ["shared", "live"]) {
      const channel = bench.channel(namespace);
      const { client } = await elsewhere(bench);
      const { journal } = await bench.subscribed(client, channel);
      await bench.server.publish(channel, 1, 2, 3);
      assert.deepEqual(await bench.payloads(journal, 3), [1, 2, 3]);
    }
  },

  async "a client's publications arrive at clients of both nodes"(bench) {
    const channel = bench.channel("shared");
    const { client } = await bench.connected({ user: "ann" });
    const here = await bench.subscribed(client, channel);
    const bob = await elsewhere(bench, { user: "bob" });
    const there = await bench.subscribed(bob.client, channel);
    await there.subscription.publish(bench.transport.encode({ from: "bob" }));
    for (const { journal } of [here, there]) {
      const { data, info } = await journal.next("publication");
      assert.deepEqual([bench.transport.decode(data), info.user], [{ from: "bob" }, "bob"]);
    }
  },

  async "after a lost connection a client recovers on the other node"(bench) {
    const proxy = await startProxy(bench.server.url);
    try {
      const { client, journal: journalOfClient } = await bench.connected({ url: proxy.url });
      const channel = bench.channel("shared");
      const { journal } = await bench.subscribed(client, channel);
      await bench.server.publish(channel, 1, 2);
      assert.deepEqual(await bench.payloads(journal, 2), [1, 2]);
      proxy.cut();
      await journalOfClient.next("connecting");
      await bench.server.publish(channel, 3, 4);
      await bench.other.publish(channel, 5);
      proxy.lead(bench.other.url);
      proxy.mend();
      const { wasRecovering, recovered } = await journal.next("subscribed");
      assert.deepEqual([wasRecovering, recovered], [true, true]);
      await bench.server.publish(channel, 6);
      assert.deepEqual(await bench.payloads(journal, 4), [3, 4, 5, 6]);
    } finally {
      proxy.stop();
    }
  },

  async "the clients of a node that dies recover on another one"(bench) {
    const dying = await bench.startNode();
    const proxy = await startProxy(dying.url);
    try {
      const { client, journal: journalOfClient } = await bench.connected({ url: proxy.url });
      const channel = bench.channel("shared");
      const { journal } = await bench.subscribed(client, channel);
      await bench.server.publish(channel, 1);
      assert.deepEqual(await bench.payloads(journal, 1), [1]);
      await dying.stop();
      await journalOfClient.next("connecting");
      await bench.other.publish(channel, 2, 3);
      proxy.lead(bench.other.url);
      const { recovered } = await journal.next("subscribed");
      assert.equal(recovered, true);
      await bench.server.publish(channel, 4);
      assert.deepEqual(await bench.payloads(journal, 3), [2, 3, 4]);
    } finally {
      proxy.stop();
      await dying.stop();
    }
  },

  async "deltas and channel IDs are of the node that a client is at"(bench) {
    const proxy = await startProxy(bench.server.url);
    try {
      const { client, journal: journalOfClient } = await bench.connected({ url: proxy.url });
      const channel = bench.channel("shared-delta");
      const options = { delta: "fossil" };
      const { subscription, journal } = await bench.subscribed(client, channel, options);
      const state = (number) => ({ text: "a text of some length", number });
      await bench.server.publish(channel, ...[1, 2].map(state));
      await bench.other.publish(channel, state(3));
      assert.deepEqual(await bench.payloads(journal, 3), [1, 2, 3].map(state));
      proxy.cut();
      await journalOfClient.next("connecting");
      await bench.server.publish(channel, ...[4, 5].map(state));
      proxy.lead(bench.other.url);
      proxy.mend();
      assert.equal((await journal.next("subscribed")).recovered, true);
      await bench.server.publish(channel, ...[6, 7].map(state));
      assert.deepEqual(await bench.payloads(journal, 4), [4, 5, 6, 7].map(state));
      const { numFullPayloads, numDeltaPayloads } = subscription.deltaStats();
      assert.deepEqual([numFullPayloads, numDeltaPayloads], [3, 4]);
    } finally {
      proxy.stop();
    }
  },

  async "a cache is the same on both nodes"(bench) {
    const channel = bench.channel("shared-state");
    await bench.server.publish(channel, 1, 2);
    await bench.other.publish(channel, 3);
    for (const connect of [() => bench.connected(), () => elsewhere(bench)]) {
      const { client } = await connect();
      const { journal, context } = await bench.subscribed(client, channel, { since: {} });
      assert.equal(context.recovered, true);
      assert.deepEqual(await bench.payloads(journal, 1), [3]);
    }
  },

  async "history is the same on both nodes"(bench) {
    const channel = bench.channel("shared");
    await bench.server.publish(channel, 1, 2);
    await bench.other.publish(channel, 3);
    const { client } = await elsewhere(bench);
    await bench.subscribed(client, channel);
    const { publications, offset } = await client.history(channel, { limit: 10 });
    const payloads = publications.map(({ data }) => bench.transport.decode(data));
    assert.deepEqual([payloads, offset], [[1, 2, 3], 3]);
  },

  async "presence, joins and leaves are known on both nodes"(bench) {
    const channel = bench.channel("shared");
    const { client } = await bench.connected({ user: "ann" });
    const { journal } = await bench.subscribed(client, channel, { joinLeave: true });
    const bob = await elsewhere(bench, { user: "bob" });
    await bench.subscribed(bob.client, channel);
    const isBob = ({ info }) => info.user === "bob";
    await journal.next("join", isBob);
    for (const one of [client, bob.client]) {
      const { clients } = await one.presence(channel);
      const users = Object.values(clients).map(({ user }) => user);
      assert.deepEqual(users.sort(), ["ann", "bob"]);
    }
    bob.client.disconnect();
    await journal.next("leave", isBob);
  },

  async "the server API reaches clients of the other node"(bench) {
    const { client, journal } = await elsewhere(bench);
    const channel = bench.channel("shared");
    const subscription = await bench.subscribed(client, channel);
    await bench.server.api("unsubscribe", { user: bench.user, channel });
    assert.equal((await subscription.journal.next("unsubscribed")).code, 2000);
    await bench.server.api("disconnect", { user: bench.user });
    assert.equal((await journal.next("disconnected")).code, 3503);
  },
};

for (const broker of BROKERS) {
  overEveryTransportOnTwoNodes(broker, TESTS);
}
