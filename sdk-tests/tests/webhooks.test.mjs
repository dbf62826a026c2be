// Webhooks, which the published libraries of their formats verify.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import { BROKERS, missing, startBroker } from "../support/brokers.mjs";
import { backend, close, connect, startApp, subscribed } from "../support/pusher.mjs";
import { startReceiver } from "../support/receiver.mjs";

/** A channel is vacant after 3 s without subscribers. */
const VACANT_MS = 3_000;

let receiver;
beforeEach(async () => (receiver = await startReceiver()));
afterEach(async () => {
  close();
  await receiver.stop();
});

function webhook(more) {
  return `\n[[webhook]]\nname = "app"\nurl = "${receiver.url}"\nbatch_delay_ms = 10\n${more}\n`;
}

const OF_PUSHER = `format = "pusher"
events = ["occupied", "vacated", "member_added", "member_removed", "published", "cache_miss"]`;

/** Returns the events of all webhooks, each verified by Pusher's library. */
function eventsOf(library, requests) {
  return requests.flatMap((request) => {
    const received = library.webhook(request);
    assert.ok(received.isValid(), JSON.stringify(request));
    assert.ok(Math.abs(received.getTime() - Date.now()) < 60_000);
    return received.getEvents();
  });
}

test("Pusher's library accepts webhooks in its format, and no other", async () => {
  const server = await startApp({}, webhook(OF_PUSHER));
  try {
    const library = backend(server);
    const { client } = connect(server.url);
    const room = await subscribed(client, "presence-room");
    await subscribed(client, "private-cache-news");
    room.channel.trigger("client-typing", { text: 'ü "\n' });
    const events = await receiver.until("events of Pusher", (requests) => {
      const found = eventsOf(library, requests);
      return found.length >= 5 && found;
    });
    const key = ({ name, channel }) => `${name} ${channel}`;
    const sorted = (all) => all.sort((one, other) => key(one).localeCompare(key(other)));
    const expected = [
      { name: "channel_occupied", channel: "presence-room" },
      { name: "channel_occupied", channel: "private-cache-news" },
      { name: "member_added", channel: "presence-room", user_id: "ann" },
      { name: "cache_miss", channel: "private-cache-news" },
    ];
    const typing = events.find(({ name }) => name === "client_event");
    assert.deepEqual(sorted(events.filter((event) => event !== typing)), sorted(expected));
    assert.deepEqual(typing, {
      name: "client_event",
      channel: "presence-room",
      event: "client-typing",
      data: JSON.stringify({ text: 'ü "\n' }),
      socket_id: client.connection.socket_id,
      user_id: "ann",
    });
    client.disconnect();
    await receiver.until("vacant channels", (requests) => {
      const names = eventsOf(library, requests).map(({ name }) => name);
      const count = (name) => names.filter((it) => it === name).length;
      return count("channel_vacated") === 2 && count("member_removed") === 1;
    });
    const [request] = receiver.requests;
    const forged = { ...request, rawBody: request.rawBody.replace("presence-room", "presence-x") };
    assert.equal(library.webhook(forged).isValid(), false);
  } finally {
    await server.stop();
  }
});

test("the library of Standard Webhooks accepts webhooks in that format", async () => {
  const secret = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
  const server = await startApp({}, webhook(`secret = "${secret}"`));
  try {
    const verifier = new Webhook(secret);
    await subscribed(connect(server.url).client, "news");
    const events = await receiver.until("events", (requests) => {
      const batches = requests.map(({ headers, rawBody }) => verifier.verify(rawBody, headers));
      const found = batches.flatMap(({ events }) => events);
      return found.length >= 2 && found;
    });
    assert.deepEqual(
      events.map(({ event }) => event),
      ["connected", "subscribed"],
    );
    assert.equal(events[1].channel, "news");
    const [{ headers, rawBody }] = receiver.requests;
    assert.throws(() => verifier.verify(rawBody.replace("connected", "removed"), headers));
    const other = new Webhook(`whsec_${Buffer.alloc(32, 8).toString("base64")}`);
    assert.throws(() => other.verify(rawBody, headers));
  } finally {
    await server.stop();
  }
});

for (const broker of BROKERS) {
  describe(broker.name, { skip: missing(broker) }, () => {
    let started;
    before(async () => (started = await startBroker(broker)));
    after(() => started.stop());

    test("several nodes tell of a channel once, and when one of them dies", async () => {
      const environment = { LINERATE_BROKER_URL: started.url };
      const start = () => startApp(environment, webhook(OF_PUSHER));
      const nodes = await Promise.all([start(), start()]);
      try {
        await Promise.all(nodes.map((node) => node.untilNodes(nodes.length)));
        const library = backend(nodes[0]);
        const told = (name, channel) =>
          eventsOf(library, receiver.requests).filter(
            (event) => event.name === name && event.channel === channel,
          ).length;
        const [here, there] = nodes.map((node) => connect(node.url));
        await subscribed(here.client, "presence-room");
        await subscribed(there.client, "presence-room");
        await subscribed(there.client, "news");
        await receiver.until("news", () => told("channel_occupied", "news") === 1);
        here.client.disconnect();
        await pause(VACANT_MS + 1_000);
        assert.equal(told("channel_occupied", "presence-room"), 1);
        assert.equal(told("member_added", "presence-room"), 1);
        assert.equal(told("channel_vacated", "presence-room"), 0);
        assert.equal(told("member_removed", "presence-room"), 0);
        await nodes[1].stop();
        there.client.disconnect();
        await receiver.until("vacant channels", () =>
          ["presence-room", "news"].every((channel) => told("channel_vacated", channel) === 1),
        );
        await receiver.until("removed member", () => told("member_removed", "presence-room") === 1);
      } finally {
        await Promise.all(nodes.map((node) => node.stop()));
      }
    });

    test("one node tells how many subscriptions a channel has", async () => {
      const environment = { LINERATE_BROKER_URL: started.url };
      const ofCounts = 'format = "pusher"\nevents = ["subscription_count"]';
      const start = () => startApp(environment, webhook(ofCounts));
      const nodes = await Promise.all([start(), start()]);
      try {
        await Promise.all(nodes.map((node) => node.untilNodes(nodes.length)));
        const library = backend(nodes[0]);
        const until = (count) =>
          receiver.until(`${count} subscriptions`, (requests) => {
            const last = eventsOf(library, requests).at(-1);
            return last?.subscription_count === count && last;
          });
        const [here, there] = nodes.map((node) => connect(node.url));
        await subscribed(here.client, "news");
        assert.deepEqual(await until(1), {
          name: "subscription_count",
          channel: "news",
          subscription_count: 1,
        });
        await subscribed(there.client, "news");
        await until(2);
        await nodes[0].stop();
        here.client.disconnect();
        await until(1);
        there.client.disconnect();
        await until(0);
        const counts = eventsOf(library, receiver.requests);
        assert.deepEqual(
          counts.map(({ subscription_count }) => subscription_count),
          [1, 2, 1, 0],
        );
      } finally {
        await Promise.all(nodes.map((node) => node.stop()));
      }
    });
  });
}
