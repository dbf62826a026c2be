// Compressed WebSockets, for clients that offer compression.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import WebSocket from "ws";
import { Journal } from "../support/journal.mjs";
import { startServer } from "../support/server.mjs";
import { connectionToken } from "../support/tokens.mjs";
import { TRANSPORTS } from "../support/transports.mjs";

const PUBLICATIONS = 50;

/** Returns a unique publication of about 2 KB. */
function publication(number) {
  const row = (index) => ({ symbol: `ABC${index}`, price: index * 7.25, size: number });
  return { number, rows: Array.from({ length: 40 }, (_, index) => row(index)) };
}

let server;
before(async () => {
  server = await startServer({
    LINERATE_COMPRESSION_ENABLED: "true",
    LINERATE_COMPRESSION_TAKEOVER: "true",
  });
});
after(() => server.stop());

/** Creates sockets with or without an offer of compression, and records them. */
function sockets(perMessageDeflate) {
  const made = [];
  class Socket extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { perMessageDeflate, threshold: 0 });
      made.push(this);
    }
  }
  return { Socket, made };
}

for (const transport of TRANSPORTS.filter(({ name }) => name.startsWith("WebSocket"))) {
  describe(transport.name, () => {
    after(() => transport.close());

    async function subscriber(channel, perMessageDeflate) {
      const { Socket, made } = sockets(perMessageDeflate);
      const options = { websocket: Socket, token: connectionToken("ann") };
      const client = transport.client(server.url, options);
      const subscription = client.newSubscription(channel);
      const journal = new Journal(subscription, ["subscribed", "publication"]);
      subscription.subscribe();
      client.connect();
      await journal.next("subscribed");
      return { subscription, journal, socket: made[0] };
    }

    test("publications are the same for all clients, and shorter for those with compression", async () => {
      const channel = `open:${transport.name.length}`;
      const subscribers = [];
      for (const offered of [true, true, false]) {
        subscribers.push(await subscriber(channel, offered));
      }
      const extensions = subscribers.map(({ socket }) => socket.extensions);
      assert.deepEqual(
        extensions.map((it) => it.includes("permessage-deflate")),
        [true, true, false],
      );
      const { subscription } = subscribers[0];
      const read = () => subscribers.map(({ socket }) => socket._socket.bytesRead);
      const before = read();
      for (let number = 0; number < PUBLICATIONS; number++) {
        await subscription.publish(transport.encode(publication(number)));
      }
      for (const { journal } of subscribers) {
        const taken = await journal.take("publication", PUBLICATIONS);
        taken.forEach(({ data }, number) => {
          assert.deepEqual(transport.decode(data), publication(number));
        });
      }
      const [first, second, plain] = read().map((bytes, index) => bytes - before[index]);
      assert.ok(first < plain / 3 && second < plain / 3, `${first}, ${second} of ${plain}`);
    });
  });
}
