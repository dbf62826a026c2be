// The published client of Socket.IO with its default options, which begin with long polling, with
// long polling alone, and with a WebSocket alone.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { within } from "../support/journal.mjs";
import { startProxy } from "../support/proxy.mjs";
import {
  close,
  connect,
  connected as open,
  journal,
  startSocketIoWithBackend,
} from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

function answer(_, { method, data, user }) {
  switch (method) {
    case "add":
      return { result: { data: data[0] + data[1] } };
    case "/chat:who":
      return { result: { data: user } };
    case "save":
      return { result: { data: { saved: data[0].bytes } } };
    default:
      return { error: { code: 404, message: `no method ${method}` } };
  }
}

let server;
let stop;
before(async () => ({ server, stop } = await startSocketIoWithBackend(answer)));
after(() => stop());
afterEach(close);

const ann = (claims = {}) => ({ token: connectionToken("ann", claims) });

/** `undefined` leaves the choice to the client. */
const KINDS = [
  { name: "default options", transports: undefined, last: "websocket" },
  { name: "polling alone", transports: ["polling"], last: "polling" },
  { name: "WebSocket alone", transports: ["websocket"], last: "websocket" },
];

/** Waits until a socket uses the transport that it keeps. */
async function settled({ io: { engine } }, name) {
  if (engine.transport.name !== name) {
    const [transport] = await within(once(engine, "upgrade"), `upgrade to ${name}`);
    assert.equal(transport.name, name);
  }
}

for (const { name, transports, last } of KINDS) {
  const connected = (url, auth, options) => open(url, auth, { transports, ...options });

  describe(name, () => {
    test("the connection ends up on its transport", async () => {
      const { socket } = await connected(server.url, ann());
      await settled(socket, last);
      assert.equal(await socket.emitWithAck("add", 1, 2), 3);
      assert.equal(socket.io.engine.transport.name, last);
    });

    test("events pass in both directions at once, with attachments and in order", async () => {
      const { socket, journal } = await connected(server.url, ann());
      const count = 200;
      const bytes = Buffer.alloc(10_000, 7);
      const hole = { _placeholder: true, base64: bytes.toString("base64") };
      const publish = async () => {
        for (let n = 0; n < count; n++) {
          const data = n % 10 === 0 ? { event: "message", args: [{ n, hole }] } : { n };
          await server.publish(socket.id, data);
        }
      };
      const sums = [];
      const ask = async () => {
        for (let n = 0; n < count / 10; n++) {
          sums.push(await socket.emitWithAck("add", n, n));
          assert.deepEqual(await socket.emitWithAck("save", { bytes }), { saved: bytes });
        }
      };
      const [received] = await Promise.all([journal.take("message", count), publish(), ask()]);
      assert.deepEqual(
        received.map(({ n }) => n),
        Array.from({ length: count }, (_, n) => n),
      );
      assert.deepEqual(received[10].hole, bytes);
      assert.deepEqual(
        sums,
        Array.from({ length: count / 10 }, (_, n) => 2 * n),
      );
      await settled(socket, last);
    });

    test("namespaces share a connection", async () => {
      const auth = ann({ channels: ["/chat:lobby"] });
      const { socket, journal: main } = await connected(server.url, auth);
      const chat = socket.io.socket("/chat", { auth });
      const chats = journal(chat);
      await chats.next("connect");
      assert.equal(await chat.emitWithAck("who"), "ann");
      await server.publish("/chat:lobby", 1);
      assert.equal(await chats.next("message"), 1);
      await server.publish("/chat:all", 2);
      assert.equal(await chats.next("message"), 2);
      await server.publish("all", 3);
      assert.equal(await main.next("message"), 3);
      assert.deepEqual(main.all("message"), [3]);
      chat.disconnect();
      assert.equal(await chats.next("disconnect"), "io client disconnect");
      assert.equal(socket.connected, true);
      chat.connect();
      await chats.next("connect");
      await server.publish("/chat:lobby", 4);
      assert.equal(await chats.next("message"), 4);
      const unknown = journal(socket.io.socket("/unknown", { auth }));
      assert.equal((await unknown.next("connect_error")).message, "Invalid namespace");
      chat.disconnect();
    });

    test("a socket without a valid token gets an error", async () => {
      const refused = connect(server.url, {}, { transports });
      const error = await refused.journal.next("connect_error");
      assert.deepEqual(error.data, { code: 3507 });
    });

    test("a socket can disconnect", async () => {
      const { socket, journal } = await connected(server.url, ann());
      socket.disconnect();
      assert.equal(await journal.next("disconnect"), "io client disconnect");
      socket.connect();
      await journal.next("connect");
    });

    test("a socket that the server disconnects stays disconnected", async () => {
      const { socket, journal } = await connected(server.url, { token: connectionToken("bob") });
      await settled(socket, last);
      await server.api("disconnect", { user: "bob" });
      assert.equal(await journal.next("disconnect"), "io server disconnect");
      await pause(500);
      assert.equal(socket.connected, false);
    });

    test("a socket whose connection is lost reconnects with its rooms", async () => {
      const proxy = await startProxy(server.url);
      try {
        const { journal } = await connected(proxy.url, ann({ channels: ["news"] }));
        proxy.cut();
        await journal.next("disconnect");
        proxy.mend();
        await journal.next("connect");
        await server.publish("news", "again");
        assert.equal(await journal.next("message"), "again");
      } finally {
        proxy.stop();
      }
    });

    test("a socket whose token expires reconnects with another", async () => {
      let count = 0;
      const auth = (send) => send(ann({ seconds: count++ === 0 ? 2 : 600 }));
      const { journal } = await connected(server.url, auth);
      await journal.next("disconnect");
      await journal.next("connect");
    });

    test("pings keep an idle connection alive", async () => {
      const { socket, journal } = await connected(server.url, ann());
      await pause(3_500);
      assert.deepEqual([socket.connected, journal.all("disconnect")], [true, []]);
    });
  });
}

test("a body that is too large is refused", async () => {
  const { socket, journal } = await open(server.url, ann(), { transports: ["polling"] });
  // The client splits what it sends by this limit, except for a single packet.
  socket.io.engine.maxPayload = undefined;
  socket.emit("drawn", "x".repeat(100_000));
  assert.equal(await journal.next("disconnect"), "transport error");
  await journal.next("connect");
});
