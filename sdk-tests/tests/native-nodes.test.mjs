// The npm package `linerate`, which speaks the native protocol, with two nodes on one broker.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import WebSocket from "ws";
import { connect } from "../../web/dist/assets/linerate.js";
import { Journal } from "../support/journal.mjs";
import { onTwoNodes } from "../support/nodes.mjs";
import { startProxy } from "../support/proxy.mjs";
import { startServer } from "../support/server.mjs";
import { connectionToken } from "../support/tokens.mjs";

const EVENTS = ["gap", "publication", "subscribed", "unsubscribed"];

const open = new Set();

/** Returns a client that connects. */
function client(url, transport) {
  const options = { reconnectFirstMs: 50, reconnectLongestMs: 200, transports: [transport] };
  const one = connect(url, {
    environment: { WebSocket },
    token: connectionToken("ann"),
    ...options,
  });
  open.add(one);
  return one;
}

/** Subscribes, and returns the journal of the subscription. */
function follow(one, channel) {
  return new Journal(one.subscribe(channel), EVENTS);
}

async function payloads(journal, count) {
  const publications = await journal.take("publication", count);
  return publications.map((publication) => publication.json());
}

onTwoNodes(startServer, ({ nodes, startNode }) => {
  afterEach(() => {
    open.forEach((one) => one.close());
    open.clear();
  });

  let channels = 0;
  for (const transport of ["websocket", "http_stream"]) {
    test(`${transport}: publications of both nodes arrive in order`, async () => {
      const channel = `shared:native-${++channels}`;
      const journals = nodes.map(({ url }) => follow(client(url, transport), channel));
      await Promise.all(journals.map((journal) => journal.next("subscribed")));
      await nodes[0].publish(channel, 1, 2);
      await nodes[1].publish(channel, 3);
      for (const journal of journals) {
        assert.deepEqual(await payloads(journal, 3), [1, 2, 3]);
        assert.deepEqual(journal.all("gap"), []);
      }
    });

    test(`${transport}: the clients of a node that dies recover on another one`, async () => {
      const channel = `shared:native-${++channels}`;
      const dying = await startNode();
      const proxy = await startProxy(dying.url);
      try {
        const journal = follow(client(proxy.url, transport), channel);
        await journal.next("subscribed");
        await nodes[0].publish(channel, 1);
        assert.deepEqual(await payloads(journal, 1), [1]);
        await dying.stop();
        await nodes[0].publish(channel, 2, 3);
        proxy.lead(nodes[1].url);
        assert.equal((await journal.next("subscribed")).recovered, true);
        await nodes[1].publish(channel, 4);
        assert.deepEqual(await payloads(journal, 3), [2, 3, 4]);
        assert.deepEqual(journal.all("gap"), []);
      } finally {
        proxy.stop();
        await dying.stop();
      }
    });

    test(`${transport}: a channel that is not open is refused by each node`, async () => {
      for (const { url } of nodes) {
        const journal = follow(client(url, transport), "private:native");
        assert.equal((await journal.next("unsubscribed")).code, 103);
      }
    });
  }
});
