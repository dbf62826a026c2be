// The published client of Socket.IO.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import {
  close,
  connect,
  connected,
  journal,
  startSocketIoWithBackend,
} from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

/** What clients have sent without asking for an acknowledgement, and what waits for it. */
const sent = [];
let wake = () => {};

function answer(event, { method, data, user }) {
  if (event === "send") {
    sent.push({ user, ...data });
    wake();
    return { result: {} };
  }
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

async function message() {
  while (sent.length === 0) {
    await new Promise((resolve) => (wake = resolve));
  }
  return sent.shift();
}

let server;
let stop;
before(async () => {
  const environment = { LINERATE_CLIENT_SEND_BACKEND: "app" };
  ({ server, stop } = await startSocketIoWithBackend(answer, environment));
});
after(() => stop());
afterEach(close);

const ann = (claims = {}) => ({ token: connectionToken("ann", claims) });

test("publications are events", async () => {
  const { journal } = await connected(server.url, ann());
  await server.publish("all", { price: 190 }, [1, 2], "text");
  assert.deepEqual(await journal.take("message", 3), [{ price: 190 }, [1, 2], "text"]);
  await server.api("publish", { channel: "all", data: 7, tags: { event: "created" } });
  assert.deepEqual(await journal.next("created"), [7]);
  await server.publish("all", { event: "created", args: ["a", { b: 1 }] });
  assert.deepEqual(await journal.next("created"), ["a", { b: 1 }]);
});

test("bytes are buffers", async () => {
  const { journal } = await connected(server.url, ann());
  const bytes = Buffer.from([0xff, 0, 7]);
  await server.api("publish", { channel: "all", b64data: bytes.toString("base64") });
  assert.deepEqual(await journal.next("message"), bytes);
  const hole = { _placeholder: true, base64: bytes.toString("base64") };
  await server.publish("all", { event: "created", args: [{ file: hole }, hole, 1] });
  assert.deepEqual(await journal.next("created"), [{ file: bytes }, bytes, 1]);
});

test("a socket is in the room of its ID, and in those that the application chooses", async () => {
  const one = await connected(server.url, ann({ channels: ["news"] }));
  const other = await connected(server.url, ann());
  await server.publish(one.socket.id, "to one");
  assert.equal(await one.journal.next("message"), "to one");
  await server.publish("news", "to the room");
  assert.equal(await one.journal.next("message"), "to the room");
  await server.api("subscribe", { user: "ann", channel: "late", client: other.socket.id });
  const arrived = other.journal.next("message");
  for (let isThere = false; !isThere;) {
    await server.publish("late", "to another room");
    isThere = await Promise.race([arrived.then(() => true), pause(20).then(() => false)]);
  }
  assert.equal(await arrived, "to another room");
});

test("events reach the backend", async () => {
  const { socket } = await connected(server.url, ann());
  socket.emit("moved", 1, { a: ["ü"] });
  const expected = { user: "ann", namespace: "/", event: "moved", args: [1, { a: ["ü"] }] };
  assert.deepEqual(await message(), expected);
  socket.emit("drawn", Buffer.from("ab"), 2);
  const { args } = await message();
  assert.deepEqual(args, [{ _placeholder: true, base64: "YWI=" }, 2]);
});

test("events are acknowledged", async () => {
  const { socket } = await connected(server.url, ann());
  assert.equal(await socket.emitWithAck("add", 1, 2), 3);
  const several = await Promise.all([1, 2, 3].map((n) => socket.emitWithAck("add", n, n)));
  assert.deepEqual(several, [2, 4, 6]);
  const values = await new Promise((resolve) => socket.emit("saved", (...all) => resolve(all)));
  assert.deepEqual(values, ["ok", 1]);
  const bytes = Buffer.alloc(20_000, 7);
  assert.deepEqual(await socket.emitWithAck("save", { bytes }), { saved: bytes });
  const { error } = await socket.emitWithAck("unknown");
  assert.deepEqual(error, { code: 404, message: "no method unknown" });
});

test("an event that nothing handles is not acknowledged", async () => {
  const { socket, journal } = await connected(server.url, ann(), { namespace: "/silent" });
  await assert.rejects(socket.timeout(200).emitWithAck("lost"), /timed out/);
  const { code, event } = await journal.next("linerate:error");
  assert.deepEqual([code, event], [104, "lost"]);
});

test("without a valid token, a socket gets an error and can try again with another", async () => {
  const refused = connect(server.url, {});
  const error = await refused.journal.next("connect_error");
  assert.equal(error.message, "permission denied");
  assert.deepEqual(error.data, { code: 3507 });
  assert.equal(refused.socket.active, false);
  const expired = connect(server.url, ann({ seconds: -10 }));
  assert.deepEqual((await expired.journal.next("connect_error")).data, { code: 109 });
  expired.socket.auth = ann();
  expired.socket.connect();
  await expired.journal.next("connect");
});
