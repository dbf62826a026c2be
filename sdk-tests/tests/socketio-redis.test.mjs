// A backend with the published emitter and adapters of Socket.IO, and clients on two nodes.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { createAdapter } from "@socket.io/redis-adapter";
import { Emitter } from "@socket.io/redis-emitter";
import { createAdapter as createStreamsAdapter } from "@socket.io/redis-streams-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";
import { BROKERS, missing, startBroker } from "../support/brokers.mjs";
import { within } from "../support/journal.mjs";
import { close, connected, startSocketIo } from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

const REDIS = BROKERS.find(({ name }) => name === "Redis");
const auth = { token: connectionToken("ann", { channels: ["news", "/chat:news"] }) };

let redis;
let nodes;
let application;
const clients = [];

/** Returns a connection of the application to Redis. */
async function connection() {
  const client = await createClient({ url: redis.url }).connect();
  clients.push(client);
  return client;
}

/** Waits until all nodes read from Redis. */
async function untilUp() {
  for (const { url } of nodes) {
    for (;;) {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      const up = [...metrics.matchAll(/^linerate_socketio_feed_up\{.*\} 1/gm)];
      if (up.length === 2) {
        break;
      }
    }
  }
}

/** Returns a server of Socket.IO with an adapter, and a function that ends it. */
function serve(adapter) {
  const server = new Server({ adapter });
  server.listen(0);
  const { port } = server.httpServer.address();
  return { server, url: `http://127.0.0.1:${port}` };
}

before(async () => {
  if (missing(REDIS)) {
    return;
  }
  redis = await startBroker(REDIS);
  // Nodes with a broker of their own each: what they have in common is what they read.
  const toml = `[socketio.redis]\nurl = "${redis.url}"\nstreams = ["socket.io"]\n`;
  nodes = await Promise.all([startSocketIo({}, toml), startSocketIo({}, toml)]);
  await within(untilUp(), "nodes that read from Redis");
  application = await connection();
});
after(async () => {
  clients.forEach((client) => client.destroy());
  await Promise.all((nodes ?? []).map((node) => node.stop()));
  await redis?.stop();
});
afterEach(close);

describe("@socket.io/redis-emitter", { skip: missing(REDIS) }, () => {
  let emitter;
  before(() => (emitter = new Emitter(application)));

  /** Connects a client to each node. */
  const everywhere = (options) =>
    Promise.all(nodes.map(({ url }) => connected(url, auth, options)));

  test("events reach rooms, sockets and namespaces on all nodes", async () => {
    const [here, there] = await everywhere();
    emitter.emit("created", "all", { a: [1.5, null, true] });
    emitter.to("news").volatile.emit("created", "room");
    emitter.to(here.socket.id).emit("created", "one");
    emitter.to("news").except(there.socket.id).emit("created", "except");
    emitter.of("/chat").emit("created", "elsewhere");
    emitter.emit("created", "end");
    const take = async ({ journal }, ...expected) => {
      const events = await journal.take("created", expected.length);
      assert.deepEqual(
        events.map(([first]) => first),
        expected,
      );
      return events[0];
    };
    const first = await take(here, "all", "room", "one", "except", "end");
    assert.deepEqual(first, ["all", { a: [1.5, null, true] }]);
    await take(there, "all", "room", "end");
  });

  test("a socket in several rooms gets an event once", async () => {
    const [{ socket, journal }] = await everywhere();
    emitter.to(["all", "news"]).to(socket.id).emit("created", 1);
    emitter.emit("created", 2);
    assert.deepEqual(await journal.take("created", 2), [[1], [2]]);
  });

  test("bytes and dates have the form that a server gives them", async () => {
    const [{ journal }] = await everywhere();
    const date = new Date(1_500_000_000_007);
    emitter.emit("created", Buffer.from([1, 2]), { deep: new Uint8Array([3]) }, date, undefined);
    const expected = [
      Buffer.from([1, 2]),
      { deep: Buffer.from([3]) },
      "2017-07-14T02:40:00.007Z",
      null,
    ];
    assert.deepEqual(await journal.next("created"), expected);
  });

  test("sockets join and leave rooms in the order of events", async () => {
    const [here, there] = await everywhere({ namespace: "/chat" });
    const chat = emitter.of("/chat");
    for (let round = 0; round < 20; round++) {
      chat.in(here.socket.id).socketsJoin(["vip", `round${round}`]);
      chat.to(`round${round}`).emit("created", round);
      chat.to("vip").emit("created", "vip");
      chat.socketsLeave("vip");
      chat.to("vip").emit("created", "nobody");
    }
    chat.emit("created", "end");
    const rounds = Array.from({ length: 20 }, (_, round) => [[round], ["vip"]]);
    const expected = [...rounds.flat(), ["end"]];
    assert.deepEqual(await here.journal.take("created", expected.length), expected);
    assert.deepEqual(await there.journal.next("created"), ["end"]);
  });

  test("sockets are disconnected", async () => {
    const [here, there] = await everywhere();
    emitter.in(here.socket.id).disconnectSockets();
    assert.equal(await here.journal.next("disconnect"), "io server disconnect");
    emitter.in("news").disconnectSockets(true);
    assert.equal(await there.journal.next("disconnect"), "io server disconnect");
    emitter.serverSideEmit("hello");
  });
});

for (const [name, adapter] of [
  [
    "@socket.io/redis-adapter",
    async () => createAdapter(application, await connection(), { requestsTimeout: 20_000 }),
  ],
  ["@socket.io/redis-streams-adapter", async () => createStreamsAdapter(application)],
]) {
  describe(name, { skip: missing(REDIS) }, () => {
    let io;
    let url;
    before(async () => {
      ({ server: io, url } = serve(await adapter()));
      io.on("connection", (socket) => socket.join("news"));
      io.of("/chat");
    });
    after(() => io.close());

    test("broadcasts reach the clients of nodes and of the server", async () => {
      const own = await connected(url);
      const [here, there] = await Promise.all(nodes.map((node) => connected(node.url, auth)));
      io.emit("created", 1);
      io.to("news").emit("created", "room");
      io.to(there.socket.id).emit("created", "one");
      io.except("news").emit("created", "except");
      io.to("news").emit("created", Buffer.from([1]));
      const common = [[1], ["room"], [Buffer.from([1])]];
      const one = [[1], ["room"], ["one"], [Buffer.from([1])]];
      assert.deepEqual(await own.journal.take("created", 3), common);
      assert.deepEqual(await here.journal.take("created", 3), common);
      assert.deepEqual(await there.journal.take("created", 4), one);
    });

    test("the server moves and disconnects the clients of nodes", async () => {
      const { socket, journal } = await connected(nodes[1].url, auth);
      io.in(socket.id).socketsJoin("vip");
      io.to("vip").emit("created", 1);
      io.in(socket.id).socketsLeave("vip");
      io.to("vip").emit("created", 2);
      io.to(socket.id).emit("created", 3);
      assert.deepEqual(await journal.take("created", 2), [[1], [3]]);
      io.in(socket.id).disconnectSockets(true);
      assert.equal(await journal.next("disconnect"), "io server disconnect");
    });

    test("the server does not wait for answers of nodes", async () => {
      const own = await connected(url);
      await connected(nodes[0].url, auth);
      const begun = Date.now();
      const sockets = await io.fetchSockets();
      assert.deepEqual(
        sockets.map(({ id }) => id),
        [own.socket.id],
      );
      own.socket.once("asked", (answer) => answer("yes"));
      assert.deepEqual(await io.timeout(10_000).emitWithAck("asked"), ["yes"]);
      assert.deepEqual(await io.serverSideEmitWithAck("hello"), []);
      assert.ok(Date.now() - begun < 5_000);
    });
  });
}
