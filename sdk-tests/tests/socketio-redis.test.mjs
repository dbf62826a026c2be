// Socket.IO's own emitter, and its servers with their adapters, publish in Redis; the clients are
// connected to two nodes of linerate.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, afterEach, before, describe, test } from "node:test";
import { createAdapter } from "@socket.io/redis-adapter";
import { Emitter } from "@socket.io/redis-emitter";
import { createAdapter as createStreamsAdapter } from "@socket.io/redis-streams-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";
import { BROKERS, missing, startBroker } from "../support/brokers.mjs";
import { within } from "../support/journal.mjs";
import { close, connect, connected, startSocketIo } from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

const [redis] = BROKERS;

const ann = (...channels) => ({ token: connectionToken("ann", { channels }) });

describe("Redis", { skip: missing(redis) }, () => {
  let broker;
  let nodes;
  let client;
  let io;
  before(async () => {
    broker = await startBroker(redis);
    client = await createClient({ url: broker.url }).connect();
    io = new Emitter(client);
    const environment = {
      LINERATE_BROKER_URL: broker.url,
      LINERATE_SOCKETIO_REDIS_URL: broker.url,
      LINERATE_SOCKETIO_REDIS_STREAMS: "socket.io",
    };
    nodes = await Promise.all([startSocketIo(environment), startSocketIo(environment)]);
    await Promise.all(nodes.map((node) => node.untilNodes(nodes.length)));
  });
  after(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    await client.close();
    await broker.stop();
  });
  afterEach(close);

  /** Starts a server of Socket.IO; `stop` ends it. */
  async function startServer(adapter) {
    const http = createServer().listen(0, "127.0.0.1");
    await once(http, "listening");
    const server = new Server(http, { adapter });
    return { server, url: `http://127.0.0.1:${http.address().port}`, stop: () => server.close() };
  }

  test("the emitter reaches each client in its rooms once, on all nodes", async () => {
    const [one, other] = await Promise.all([
      connected(nodes[0].url, ann("news", "sport")),
      connected(nodes[1].url, ann("sport")),
    ]);
    io.to("news").emit("created", "news");
    io.to(["news", "sport"]).emit("created", "both", { id: 7 }, [1]);
    io.except("news").emit("created", "not the news");
    io.to(other.socket.id).emit("created", "to one");
    io.emit("created", "all");
    const both = ["both", { id: 7 }, [1]];
    assert.deepEqual(await one.journal.take("created", 3), [["news"], both, ["all"]]);
    const others = [both, ["not the news"], ["to one"], ["all"]];
    assert.deepEqual(await other.journal.take("created", 4), others);
  });

  test("the emitter sends bytes, and to namespaces", async () => {
    const main = await connected(nodes[0].url, ann());
    const chat = await connected(nodes[1].url, ann(), { namespace: "/chat" });
    io.emit("created", Buffer.from([0xff, 0]), { file: Buffer.from([7]) });
    const [bytes, { file }] = await main.journal.next("created");
    assert.deepEqual([bytes, file], [Buffer.from([0xff, 0]), Buffer.from([7])]);
    io.of("/chat").emit("created", 1);
    io.emit("created", 2);
    assert.deepEqual(await chat.journal.next("created"), [1]);
    assert.deepEqual(await main.journal.next("created"), [2]);
  });

  test("the emitter moves and disconnects clients", async () => {
    const { socket, journal } = await connected(nodes[0].url, ann());
    io.in(socket.id).socketsJoin("secret");
    io.to("secret").emit("created", 1);
    assert.deepEqual(await journal.next("created"), [1]);
    io.in("secret").socketsLeave("secret");
    io.to("secret").emit("created", 2);
    io.emit("created", 3);
    assert.deepEqual(await journal.next("created"), [3]);
    io.in(socket.id).disconnectSockets(true);
    assert.equal(await journal.next("disconnect"), "io server disconnect");
  });

  test("servers with the adapter reach clients of linerate, and do not wait for it", async () => {
    const [publisher, subscriber] = await Promise.all([
      createClient({ url: broker.url }).connect(),
      createClient({ url: broker.url }).connect(),
    ]);
    const own = await startServer(createAdapter(publisher, subscriber));
    try {
      own.server.on("connection", (socket) => socket.join("news"));
      const here = connect(own.url);
      await here.journal.next("connect");
      const there = await connected(nodes[0].url, ann("news"));
      own.server.to("news").emit("created", { id: 1 }, Buffer.from([7]));
      for (const { journal } of [here, there]) {
        assert.deepEqual(await journal.next("created"), [{ id: 1 }, Buffer.from([7])]);
      }
      const sockets = await within(own.server.in("news").fetchSockets(), "the sockets");
      assert.deepEqual(
        sockets.map(({ id }) => id),
        [here.socket.id],
      );
    } finally {
      await own.stop();
      await Promise.all([publisher.close(), subscriber.close()]);
    }
  });

  test("servers with the adapter for streams reach clients of linerate", async () => {
    const reader = await createClient({ url: broker.url }).connect();
    const own = await startServer(createStreamsAdapter(reader, { blockTimeInMs: 100 }));
    try {
      const there = await connected(nodes[1].url, ann("news"));
      own.server.to("news").emit("created", { id: 1 });
      assert.deepEqual(await there.journal.next("created"), [{ id: 1 }]);
      own.server.emit("created", Buffer.from([7]));
      assert.deepEqual(await there.journal.next("created"), [Buffer.from([7])]);
    } finally {
      await own.stop();
      await reader.close();
    }
  });
});
