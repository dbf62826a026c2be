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
    ["drains", (node) => node.drain()],
  ]) {
    test(`when a node ${what}, clients miss nothing without being told`, async () => {
      const topic = `shared:${what}`;
      const ending = await startNode();
      // A node is unknown to the others until it is registered.
      await Promise.all([ending, ...nodes].map((node) => node.untilNodes(3)));
      const own = await startBalancer([ending.url]);
      const all = await startBalancer([ending, ...nodes].map(({ url }) => url));
      let next = 0;
      const publish = async (count) => {
        for (const _ of numbers(count)) {
          await nodes[next % 2].publish(topic, { n: next++ });
          await pause(20);
        }
      };
      try {
        const roomsOf = (url) => Promise.all(numbers(4).map(() => joined(open(url).socket, topic)));
        // Some sessions are at the node that ends, and others anywhere.
        const leaving = await roomsOf(own.url);
        const rooms = [...leaving, ...(await roomsOf(all.url))];
        own.lead(nodes.map(({ url }) => url));
        await publish(50);
        const publishing = publish(100);
        await pause(500);
        end(ending);
        all.lead(nodes.map(({ url }) => url));
        await publishing;
        for (const { journal } of leaving) {
          await journal.next("error");
          await journal.next("joined");
        }
        const mark = next;
        const isThere = ({ journal }) => journal.all("message").at(-1)?.n >= mark;
        const reach = async () => {
          while (!rooms.every(isThere)) await publish(1);
        };
        await within(reach(), "the last message in all rooms");
        rooms.forEach(({ journal }) => expectNoHole(journal));
      } finally {
        own.stop();
        all.stop();
        await ending.stop();
      }
    });
  }
});

/** Between two joins, no message is missing. What it misses then, an application loads. */
function expectNoHole(journal) {
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
