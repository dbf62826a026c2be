// Socket.IO's own Java client: on a WebSocket, with long polling, and with its default options,
// which upgrade from one to the other.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { missingJava, startJava } from "../support/java.mjs";
import { within } from "../support/journal.mjs";
import { onTwoNodes } from "../support/nodes.mjs";
import { startProxy } from "../support/proxy.mjs";
import { startSocketIo, startSocketIoWithBackend } from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

const auth = { token: connectionToken("ann", { channels: ["news", "/chat:lobby"] }) };

/** `undefined` leaves the choice to the client. */
const KINDS = [
  { name: "default options", transports: undefined, last: "websocket" },
  { name: "polling alone", transports: ["polling"], last: "polling" },
  { name: "WebSocket alone", transports: ["websocket"], last: "websocket" },
];

function answer(_, { method, data, transport }) {
  switch (method) {
    case "add":
      return { result: { data: data[0] + data[1] } };
    case "save":
      return { result: { data: { saved: data[0].bytes } } };
    case "transport":
      return { result: { data: transport } };
    default:
      return { error: { code: 404, message: `no method ${method}` } };
  }
}

describe("Java", { skip: missingJava() }, () => {
  let java;
  before(() => (java = startJava()));
  after(() => java.stop());

  describe("one node", () => {
    let server;
    let stop;
    before(async () => ({ server, stop } = await startSocketIoWithBackend(answer)));
    after(() => stop());

    for (const { name, transports, last } of KINDS) {
      test(`${name}: the connection ends up on its transport`, async () => {
        const socket = await java.connected(server.url, auth, { transports });
        const settled = async () => {
          while ((await socket.ask("transport"))[0] !== last) {
            await pause(20);
          }
        };
        await within(settled(), `the transport ${last}`);
        assert.deepEqual(await socket.ask("add", 1, 2), [3]);
        socket.disconnect();
      });

      test(`${name}: events and acknowledgements have attachments`, async () => {
        const socket = await java.connected(server.url, auth, { transports });
        const bytes = Buffer.alloc(20_000, 0xfe);
        for (let round = 0; round < 5; round++) {
          assert.deepEqual(await socket.ask("save", { bytes }), [{ saved: bytes }]);
          await server.api("publish", { channel: socket.id, b64data: bytes.toString("base64") });
          assert.deepEqual(await socket.journal.next("message"), [bytes]);
        }
        socket.disconnect();
      });

      test(`${name}: events of rooms arrive in order`, async () => {
        const sockets = await Promise.all([
          java.connected(server.url, auth, { transports }),
          java.connected(server.url, auth, { transports }),
        ]);
        const lobby = await java.connected(server.url, auth, { transports, namespace: "/chat" });
        const count = 100;
        for (let n = 0; n < count; n++) {
          await server.api("publish", { channel: "news", data: n, tags: { event: "created" } });
        }
        await server.publish("/chat:lobby", { event: "created", args: ["a", 2] });
        const numbers = Array.from({ length: count }, (_, n) => [n]);
        for (const { journal } of sockets) {
          assert.deepEqual(await journal.take("created", count), numbers);
        }
        assert.deepEqual(await lobby.journal.next("created"), ["a", 2]);
        [...sockets, lobby].forEach((socket) => socket.disconnect());
      });
    }

    test("a wrong token and an unknown namespace are refused", async () => {
      const wrong = java.connect(server.url, { token: "wrong" });
      const [{ message, data }] = await wrong.journal.next("connect_error");
      assert.match(message, /^invalid token/);
      assert.deepEqual(data, { code: 3500 });
      const unknown = java.connect(server.url, auth, { namespace: "/unknown" });
      const [refused] = await unknown.journal.next("connect_error");
      assert.equal(refused.message, "Invalid namespace");
    });
  });

  onTwoNodes(startSocketIo, ({ nodes, startNode }) => {
    for (const { name, transports } of KINDS) {
      test(`${name}: the clients of a node that dies continue on the other one`, async () => {
        const dying = await startNode();
        const proxy = await startProxy(dying.url);
        try {
          const socket = await java.connected(proxy.url, auth, { transports });
          const { id } = socket;
          await nodes[0].publish("news", "before");
          assert.deepEqual(await socket.journal.next("message"), ["before"]);
          proxy.lead(nodes[0].url);
          await dying.stop();
          await socket.journal.next("disconnect");
          await socket.journal.next("connect");
          assert.notEqual(socket.id, id);
          await nodes[1].publish("news", "again");
          assert.deepEqual(await socket.journal.next("message"), ["again"]);
          socket.disconnect();
        } finally {
          proxy.stop();
          await dying.stop();
        }
      });
    }
  });
});
