// Two nodes on one broker serve the long polling of Phoenix without sticky sessions.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startBalancer } from "../support/balancer.mjs";
import { within } from "../support/journal.mjs";
import { onTwoNodes } from "../support/nodes.mjs";
import { TRANSPORTS, close, connect, joined, push, startPhoenix } from "../support/phoenix.mjs";
import { connectionToken } from "../support/tokens.mjs";

const { options, bytes } = TRANSPORTS[1];
const numbers = (count) => Array.from({ length: count }, (_, n) => n);
const open = (url) => connect(url, connectionToken("ann"), options);

onTwoNodes(startPhoenix, ({ nodes, startNode }) => {
  let balancer;
  before(async () => (balancer = await startBalancer(nodes.map(({ url }) => url))));
  after(() => balancer.stop());
  afterEach(close);

  test("requests find their session", async () => {
    const clients = numbers(6).map(() => open(balancer.url));
    const rooms = await Promise.all(clients.map(({ socket }) => joined(socket, "shared:polls")));
    const count = 50;
    const received = rooms.map(({ journal }) => journal.take("message", count));
    for (const n of numbers(count)) {
      await nodes[n % 2].publish("shared:polls", { n });
    }
    for (const messages of await Promise.all(received)) {
      assert.deepEqual(
        messages.map(({ n }) => n),
        numbers(count),
      );
    }
    const pushed = rooms.map(({ channel }) => push(channel, "created", { by: "a client" }));
    for (const { status } of await Promise.all(pushed)) {
      assert.equal(status, "ok");
    }
    for (const { journal } of clients) {
      assert.deepEqual(journal.names(), ["open"]);
    }
  });

  test("bytes and a batch that is longer than a message pass between nodes", async () => {
    const { socket } = open(balancer.url);
    const { channel, journal } = await joined(socket, "shared:bytes");
    const sent = Buffer.alloc(30_000, 0xff);
    await nodes[0].api("publish", { channel: "shared:bytes", b64data: sent.toString("base64") });
    assert.deepEqual(bytes(await journal.next("message")), sent);
    const text = "x".repeat(2_000);
    const pushed = numbers(80).map(() => push(channel, "created", { text }));
    for (const { status } of await Promise.all(pushed)) {
      assert.equal(status, "ok");
    }
  });

  test("a session without messages is kept", async () => {
    const { socket, journal } = open(balancer.url);
    const room = await joined(socket, "shared:idle");
    // Each poll lasts 10 seconds.
    await pause(21_000);
    await nodes[1].publish("shared:idle", { n: 1 });
    assert.deepEqual(await room.journal.next("message"), { n: 1 });
    assert.deepEqual(journal.names(), ["open"]);
  });

  for (const [what, end] of [
    ["dies", (node) => node.stop()],
    ["is drained", (node) => node.drain()],
  ]) {
    test(`when a node ${what}, clients miss nothing without being told`, async () => {
      const dying = await startNode();
      // A node is unknown to the others until it is registered.
      await Promise.all([dying, ...nodes].map((node) => node.untilNodes(3)));
      // Sessions are at all nodes, and so are their requests.
      const all = await startBalancer([dying, ...nodes].map(({ url }) => url));
      const topic = `shared:${what}`;
      try {
        const clients = numbers(9).map(() => open(all.url));
        const rooms = await Promise.all(clients.map(({ socket }) => joined(socket, topic)));
        const total = 200;
        const publish = async () => {
          for (const n of numbers(total)) {
            await nodes[n % 2].publish(topic, { n });
            await pause(20);
          }
        };
        const kill = async () => {
          await pause(1_000);
          await end(dying);
          all.lead(nodes.map(({ url }) => url));
        };
        await Promise.all([publish(), kill()]);
        await within(
          (async () => {
            const isThere = ({ journal }) => journal.all("message").at(-1)?.n === total - 1;
            while (!rooms.every(isThere)) await pause(50);
          })(),
          "the last message",
        );
        const told = rooms.map(({ journal }) => journal.all("error").length);
        assert.ok(
          told.some((count) => count > 0),
          "a client of the node",
        );
        for (const { journal } of rooms) {
          // Between two joins, nothing is missing. After a join, the application loads the rest.
          let last;
          for (const { name, context } of journal.entries()) {
            if (name === "message") {
              assert.ok(last === undefined || context.n === last + 1, `${context.n} after ${last}`);
              last = context.n;
            } else if (name === "error") {
              last = undefined;
            }
          }
        }
      } finally {
        all.stop();
        await dying.stop();
      }
    });
  }
});
