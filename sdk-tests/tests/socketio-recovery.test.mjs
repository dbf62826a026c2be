// Connection state recovery: the published client of Socket.IO returns to its session.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { onTwoNodes } from "../support/nodes.mjs";
import { startProxy } from "../support/proxy.mjs";
import { close, connected, startSocketIo } from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

const auth = { token: connectionToken("ann", { channels: ["news", "prices"] }) };

/** Starts a node whose clients can return to their sessions. */
const start = (environment = {}) =>
  startSocketIo({
    LINERATE_CHANNEL_DURABLE: "true",
    LINERATE_CHANNEL_HISTORY_SIZE: "1000",
    LINERATE_CHANNEL_RECOVER: "true",
    LINERATE_SOCKETIO_RECOVERY_S: "60",
    ...environment,
  });

/** Connects through a proxy, and has received an event. */
async function begin(node, options) {
  const proxy = await startProxy(node.url);
  const client = await connected(proxy.url, auth, options);
  assert.equal(client.socket.recovered, false);
  await node.publish("news", "first");
  assert.equal(await client.journal.next("message"), "first");
  return { ...client, proxy };
}

/** Loses the connection, and waits until the client has connected again; meanwhile, runs `act`. */
async function lose({ proxy, journal }, act) {
  proxy.cut();
  await journal.next("disconnect");
  await act();
  proxy.mend();
  await journal.next("connect");
}

const CHOICES = { websocket: ["websocket"], polling: ["polling"], both: ["polling", "websocket"] };

describe("one node", () => {
  let server;
  before(async () => (server = await start()));
  after(() => server.stop());
  afterEach(close);

  for (const [name, transports] of Object.entries(CHOICES)) {
    test(`a client returns to its session (${name})`, async () => {
      const client = await begin(server, { transports });
      const { socket, journal, proxy } = client;
      const { id } = socket;
      await lose(client, async () => {
        await server.publish("news", 1, 2);
        await server.publish("prices", 3);
        await server.publish(id, 4);
      });
      assert.equal(socket.recovered, true);
      assert.equal(socket.id, id);
      const missed = await journal.take("message", 4);
      assert.deepEqual(missed.toSorted(), [1, 2, 3, 4]);
      await server.publish("news", "live");
      assert.equal(await journal.next("message"), "live");
      proxy.stop();
    });
  }

  test("a client returns before the server has noticed that its connection is lost", async () => {
    const { socket, journal, proxy } = await begin(server);
    // Several times, so that it is served by several workers.
    for (let round = 1; round <= 8; round += 1) {
      proxy.vanish();
      await journal.next("disconnect");
      await server.publish("news", round);
      await journal.next("connect");
      assert.equal(socket.recovered, true);
      assert.equal(await journal.next("message"), round);
    }
    proxy.stop();
  });

  test("a client that disconnects on its own begins a new session", async () => {
    const { socket, journal, proxy } = await begin(server);
    const { id } = socket;
    socket.disconnect();
    await server.publish("news", "missed");
    socket.connect();
    await journal.next("connect");
    assert.equal(socket.recovered, false);
    assert.notEqual(socket.id, id);
    await server.publish("news", "live");
    assert.equal(await journal.next("message"), "live");
    proxy.stop();
  });

  test("a client that has missed more than the history holds is told", async () => {
    const client = await begin(server);
    await lose(client, async () => {
      await Promise.all(
        Array.from({ length: 1_001 }, (_, number) => server.publish("news", number)),
      );
    });
    assert.equal(client.socket.recovered, false);
    await server.publish("news", "live");
    assert.equal(await client.journal.next("message"), "live");
    client.proxy.stop();
  });
});

onTwoNodes(start, ({ nodes, startNode }) => {
  afterEach(close);

  test("a client that moves between nodes receives everything once and in order", async () => {
    const client = await begin(nodes[0]);
    const { socket, journal, proxy } = client;
    let isOver = false;
    let published = 0;
    const publishing = (async () => {
      while (!isOver) {
        await nodes[published % 2].publish("news", (published += 1));
        await pause(2);
      }
    })();
    for (let move = 1; move <= 6; move += 1) {
      await pause(100);
      proxy.lead(nodes[move % 2].url);
      await lose(client, () => pause(20 * move));
      assert.equal(socket.recovered, true);
    }
    isOver = true;
    await publishing;
    await journal.next("message", (number) => number === published);
    const expected = Array.from({ length: published }, (_, index) => index + 1);
    assert.deepEqual(journal.all("message"), ["first", ...expected]);
    proxy.stop();
  });

  test("a client of a node that shuts down returns to its session on another one", async () => {
    const leaving = await startNode();
    const { socket, journal, proxy } = await begin(leaving);
    const { id } = socket;
    proxy.lead(nodes[1].url);
    leaving.drain();
    await journal.next("disconnect");
    await nodes[0].publish("news", "missed");
    await journal.next("connect");
    assert.equal(socket.recovered, true);
    assert.equal(socket.id, id);
    assert.equal(await journal.next("message"), "missed");
    proxy.stop();
    await leaving.stop();
  });

  test("a client of a node that dies is told that its session is a new one", async () => {
    const dying = await startNode();
    const { socket, journal, proxy } = await begin(dying);
    const { id } = socket;
    proxy.lead(nodes[0].url);
    await dying.stop();
    await journal.next("disconnect");
    await journal.next("connect");
    assert.equal(socket.recovered, false);
    assert.notEqual(socket.id, id);
    await nodes[1].publish("news", "live");
    assert.equal(await journal.next("message"), "live");
    proxy.stop();
  });
});
