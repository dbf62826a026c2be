// Two nodes on one broker serve long polling of Socket.IO without sticky sessions.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { startBalancer } from "../support/balancer.mjs";
import { onTwoNodes } from "../support/nodes.mjs";
import { close, connected, startSocketIo } from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

const auth = { token: connectionToken("ann", { channels: ["news"] }) };
const numbers = (count) => Array.from({ length: count }, (_, n) => n);

onTwoNodes(startSocketIo, ({ nodes, startNode }) => {
  let balancer;
  before(async () => (balancer = await startBalancer(nodes.map(({ url }) => url))));
  after(() => balancer.stop());
  afterEach(close);

  for (const transports of [undefined, ["polling"]]) {
    test(`requests find their session, transports: ${transports}`, async () => {
      const options = { transports };
      const clients = await Promise.all(
        numbers(6).map(() => connected(balancer.url, auth, options)),
      );
      const count = 50;
      const received = clients.map(({ journal }) => journal.take("message", count));
      for (const n of numbers(count)) {
        await nodes[n % 2].publish("news", n);
      }
      for (const messages of await Promise.all(received)) {
        assert.deepEqual(messages, numbers(count));
      }
      const values = clients.map(({ socket }) =>
        Promise.all(
          numbers(3).map(() => new Promise((done) => socket.emit("saved", (v) => done(v)))),
        ),
      );
      for (const value of await Promise.all(values)) {
        assert.deepEqual(value, ["ok", "ok", "ok"]);
      }
      for (const { journal } of clients) {
        assert.deepEqual(journal.all("disconnect"), []);
      }
    });
  }

  test("attachments pass in both directions", async () => {
    const { socket, journal } = await connected(balancer.url, auth, { transports: ["polling"] });
    const bytes = Buffer.alloc(30_000, 0xff);
    await nodes[0].api("publish", { channel: "news", b64data: bytes.toString("base64") });
    assert.deepEqual(await journal.next("message"), bytes);
    socket.emit("drawn", bytes);
    assert.equal((await journal.next("linerate:error")).event, "drawn");
  });

  test("the clients of a node that dies continue on the others", async () => {
    const dying = await startNode();
    // A node is unknown to the others until it is registered.
    await Promise.all([dying, ...nodes].map((node) => node.untilNodes(3)));
    // Sessions begin at the node that dies, and are then served through the others.
    const own = await startBalancer([dying.url]);
    try {
      const clients = await Promise.all(
        numbers(3).map(() => connected(own.url, auth, { transports: ["polling"] })),
      );
      own.lead(nodes.map(({ url }) => url));
      await nodes[0].publish("news", "before");
      for (const { journal } of clients) {
        assert.equal(await journal.next("message"), "before");
      }
      await dying.stop();
      for (const { journal } of clients) {
        await journal.next("disconnect");
        await journal.next("connect");
      }
      await nodes[1].publish("news", "again");
      for (const { journal } of clients) {
        assert.equal(await journal.next("message"), "again");
      }
    } finally {
      own.stop();
      await dying.stop();
    }
  });
});
