// Subscribing, publishing and unsubscribing.

import assert from "node:assert/strict";
import { overEveryTransport } from "../support/suite.mjs";
import { subscriptionToken } from "../support/tokens.mjs";

const settled = () => new Promise((resolve) => setTimeout(resolve, 300));

overEveryTransport({
  async "publications arrive in order and unchanged"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("open");
    const { journal } = await bench.subscribed(client, channel);
    const published = [{ a: 1.5, b: "ü\n" }, "text", 0, null, [], false, ["x".repeat(100_000)]];
    await bench.server.publish(channel, ...published);
    assert.deepEqual(await bench.payloads(journal, published.length), published);
  },

  async "a client publishes, and all subscribers learn its identity"(bench) {
    const { client: publisher } = await bench.connected({ user: "publisher" });
    const { client } = await bench.connected();
    const channel = bench.channel("open");
    const { journal } = await bench.subscribed(client, channel);
    await publisher.publish(channel, bench.transport.encode({ price: 190 }));
    const { data, info, offset } = await journal.next("publication");
    assert.deepEqual(bench.transport.decode(data), { price: 190 });
    assert.equal(info.user, "publisher");
    assert.equal(offset, 1);
  },

  async "tags arrive with publications"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("open");
    const { journal } = await bench.subscribed(client, channel);
    await bench.server.api("publish", { channel, data: 1, tags: { symbol: "AAPL" } });
    const { tags } = await journal.next("publication");
    assert.deepEqual({ ...tags }, { symbol: "AAPL" });
  },

  async "a filter by tags excludes other publications"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("open");
    const tagsFilter = {
      op: "and",
      nodes: [
        { key: "symbol", cmp: "in", vals: ["AAPL", "MSFT"] },
        { key: "price", cmp: "gte", val: "100" },
      ],
    };
    const { journal } = await bench.subscribed(client, channel, { tagsFilter });
    const publish = (data, tags) => bench.server.api("publish", { channel, data, tags });
    await publish(1, { symbol: "AAPL", price: "99.5" });
    await publish(2, { symbol: "AAPL", price: "100" });
    await publish(3, { symbol: "IBM", price: "200" });
    await publish(4, {});
    await publish(5, { symbol: "MSFT", price: "1000" });
    assert.deepEqual(await bench.payloads(journal, 2), [2, 5]);
  },

  async "a client without permission to publish gets an error and stays connected"(bench) {
    const { client, journal } = await bench.connected();
    const publish = client.publish(bench.channel("live"), bench.transport.encode(1));
    await assert.rejects(publish, { code: 103 });
    assert.deepEqual(journal.names(), ["connecting", "connected"]);
  },

  async "many simultaneous subscriptions each receive their own publications"(bench) {
    const { client, journal: journalOfClient } = bench.client();
    const channels = Array.from({ length: 100 }, (_, index) => `${bench.channel("live")}-${index}`);
    const subscriptions = channels.map((channel) => bench.subscription(client, channel));
    subscriptions.forEach(({ subscription }) => subscription.subscribe());
    client.connect();
    await journalOfClient.next("connected");
    await Promise.all(subscriptions.map(({ journal }) => journal.next("subscribed")));
    await bench.server.api("broadcast", { channels, data: { n: 1 } });
    for (const { journal } of subscriptions) {
      assert.deepEqual(await bench.payloads(journal, 1), [{ n: 1 }]);
    }
  },

  async "after unsubscribing nothing arrives until the client subscribes again"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("live");
    const { subscription, journal } = await bench.subscribed(client, channel);
    await bench.server.publish(channel, 1);
    await journal.next("publication");
    subscription.unsubscribe();
    await journal.next("unsubscribed");
    // Nothing reports when the command has arrived, because over HTTP each has its own request; nor
    // when a publication has passed.
    await settled();
    await bench.server.publish(channel, 2);
    await settled();
    subscription.subscribe();
    await journal.next("subscribed");
    await bench.server.publish(channel, 3);
    assert.deepEqual(await bench.payloads(journal, 1), [3]);
  },

  async "the backend ends a subscription"(bench) {
    const { client, journal: journalOfClient } = await bench.connected();
    const channel = bench.channel("live");
    const { journal } = await bench.subscribed(client, channel);
    await bench.server.api("unsubscribe", { user: bench.user, channel });
    const { code, reason } = await journal.next("unsubscribed");
    assert.deepEqual([code, reason], [2000, "server unsubscribe"]);
    assert.deepEqual(journalOfClient.names(), ["connecting", "connected"]);
  },

  async "a private channel requires its own token"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("private");
    const { subscription, journal } = bench.subscription(client, channel);
    subscription.subscribe();
    assert.equal((await journal.next("unsubscribed")).code, 103);
    client.removeSubscription(subscription);

    const token = subscriptionToken("somebody else", channel);
    const other = bench.subscription(client, channel, { token });
    other.subscription.subscribe();
    assert.equal((await other.journal.next("unsubscribed")).code, 103);
    client.removeSubscription(other.subscription);

    await bench.subscribed(client, channel, { token: subscriptionToken(bench.user, channel) });
  },

  async "a subscription's token is refreshed without interrupting it"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("private");
    const asked = [];
    const getToken = async (context) => {
      asked.push(context.channel);
      return subscriptionToken(bench.user, channel);
    };
    const token = subscriptionToken(bench.user, channel, { seconds: 2 });
    const { journal } = await bench.subscribed(client, channel, { token, getToken });
    // Longer than the first token was valid.
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    assert.deepEqual(asked, [channel]);
    await bench.server.publish(channel, "still here");
    assert.deepEqual(await bench.payloads(journal, 1), ["still here"]);
    assert.deepEqual(journal.names(), ["subscribing", "subscribed", "publication"]);
  },

  async "a channel in an unknown namespace does not exist"(bench) {
    const { client } = await bench.connected();
    const { subscription, journal } = bench.subscription(client, bench.channel("nowhere"));
    subscription.subscribe();
    const { code } = await journal.next("unsubscribed");
    assert.ok([102, 103].includes(code), `${code}`);
  },
});
