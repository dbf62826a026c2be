// Clients that violate the protocol, as no SDK does, get the documented close code.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import WebSocket from "ws";
import { within } from "../support/journal.mjs";
import { startServer } from "../support/server.mjs";
import { connectionToken } from "../support/tokens.mjs";

let server;
before(async () => (server = await startServer()));
after(() => server.stop());

/**
 * Opens a WebSocket and sends `frames`; returns the code and reason that the server closes it with.
 */
async function closeAfter(frames, { subprotocols = [] } = {}) {
  const url = `${server.url.replace("http", "ws")}/connection/websocket`;
  const socket = new WebSocket(url, subprotocols);
  await within(once(socket, "open"), "the handshake");
  frames.forEach((frame) => socket.send(frame));
  const [code, reason] = await within(once(socket, "close"), "a Close frame");
  return [code, reason.toString()];
}

const connect = () => JSON.stringify({ id: 1, connect: { token: connectionToken("ann") } });

test("a client that does not connect is closed with 3502", async () => {
  assert.deepEqual(await closeAfter([]), [3502, "stale"]);
});

test("a client that does not answer pings is closed with 3012", async () => {
  assert.deepEqual(await closeAfter([connect()]), [3012, "no pong"]);
});

test("invalid commands are closed with 3501", async () => {
  for (const frame of ["hello", "{", "[]", '{"id":1}\n{"id":', '{"ping":{}}', "\n\n"]) {
    const [code] = await closeAfter([frame]);
    assert.equal(code, 3501, frame);
  }
  const [code] = await closeAfter([Buffer.from([9, 1])], {
    subprotocols: ["centrifuge-protobuf"],
  });
  assert.equal(code, 3501);
});

test("a command before connect is closed with 3501", async () => {
  const [code] = await closeAfter(['{"id":1,"subscribe":{"channel":"open:1"}}']);
  assert.equal(code, 3501);
});

test("a second connect is closed with 3501", async () => {
  const [code] = await closeAfter([connect(), connect()]);
  assert.equal(code, 3501);
});

test("excessive nesting is closed with 3501", async () => {
  const deep = `{"id":2,"publish":{"channel":"open:1","data":${"[".repeat(65)}${"]".repeat(65)}}}`;
  const [code, reason] = await closeAfter([connect(), deep]);
  assert.equal(code, 3501);
  assert.match(reason, /64/);
});

test("a message that is too long is closed with 1009", async () => {
  const [code] = await closeAfter([connect(), " ".repeat(65_537)]);
  assert.equal(code, 1009);
});

test("unknown fields are ignored and unknown commands are answered with an error", async () => {
  const url = `${server.url.replace("http", "ws")}/connection/websocket`;
  const socket = new WebSocket(url);
  await within(once(socket, "open"), "the handshake");
  const replies = [];
  socket.on("message", (data) => replies.push(...data.toString().split("\n").map(JSON.parse)));
  socket.send(`${connect().slice(0, -1)},"novel":[{}]}\n{"id":2,"dance":{"tempo":"vivace"}}`);
  while (replies.length < 2) {
    await within(once(socket, "message"), "a reply");
  }
  assert.equal(replies[0].id, 1);
  assert.deepEqual([replies[1].id, replies[1].error.code], [2, 104]);
  socket.close();
});
