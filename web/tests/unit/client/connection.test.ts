import assert from "node:assert/strict";
import { test } from "node:test";
import { Unauthorized } from "../../../client/src/linerate.js";
import { settled, World } from "./world.js";

test("a client introduces itself in the native subprotocol", async () => {
  const world = new World();
  const client = world.client({ token: "t1", name: "dashboard", data: { a: 1 } });
  await settled();
  assert.equal(world.socket.url, "ws://server.test/connection/websocket");
  assert.deepEqual(world.socket.subprotocols, ["linerate.v1"]);
  assert.equal(client.state, "connecting");
  world.welcome();
  assert.deepEqual(world.socket.command("connect")["connect"], {
    name: "dashboard",
    token: "t1",
    data: { a: 1 },
  });
  assert.equal(client.state, "connected");
  assert.equal(client.id, "c1");
  assert.equal(client.transport, "websocket");
});

test("waits between attempts double, are random, and end", () => {
  const world = new World();
  world.random = 0.5;
  const waits: number[] = [];
  const client = world.client({ reconnectFirstMs: 500, reconnectLongestMs: 4_000 });
  client.on("connecting", ({ retryInMs }) => waits.push(retryInMs));
  for (let attempt = 0; attempt < 6; attempt += 1) {
    world.socket.cut();
    world.advance(4_000);
    assert.equal(world.sockets.length, attempt + 2);
  }
  assert.deepEqual(waits, [250, 500, 1_000, 2_000, 2_000, 2_000]);
});

test("only a connection that lasted resets the wait to the shortest", () => {
  const world = new World();
  const waits: number[] = [];
  world.client().on("connecting", ({ retryInMs }) => waits.push(retryInMs));
  for (const lastedMs of [0, 4_999, 5_000]) {
    world.welcome();
    world.advance(lastedMs);
    world.socket.cut();
    world.awaitSocket();
  }
  assert.deepEqual(waits, [500, 1_000, 500]);
});

test("terminal codes are final, others are not", () => {
  const codes: [number, string][] = [
    [1000, "connecting"],
    [1006, "connecting"],
    [1012, "connecting"],
    [3001, "connecting"],
    [3499, "connecting"],
    [3500, "disconnected"],
    [3999, "disconnected"],
    [4000, "connecting"],
    [4500, "disconnected"],
    [4999, "disconnected"],
  ];
  for (const [code, state] of codes) {
    const world = new World();
    const client = world.client();
    const ends: object[] = [];
    client.on("disconnected", (end) => ends.push(end));
    world.welcome().cut(code, "why");
    assert.equal(client.state, state, String(code));
    assert.deepEqual(ends, state === "disconnected" ? [{ code, reason: "why" }] : []);
    world.advance(500);
    assert.equal(world.sockets.length, state === "disconnected" ? 1 : 2);
  }
});

test("a disconnect push counts as the close that follows it", () => {
  const world = new World();
  const client = world.client();
  world.welcome().tell({ push: { disconnect: { code: 3503, reason: "force disconnect" } } });
  assert.equal(client.state, "disconnected");
  assert.ok(world.socket.isClosed);
});

test("pings are answered if the server wants that", () => {
  const world = new World();
  world.client();
  world.welcome({ ping: 25, pong: true }).tell({});
  assert.deepEqual(world.socket.sent.at(-1), {});
  const quiet = new World();
  quiet.client();
  quiet.welcome({ ping: 25 }).tell({});
  assert.equal(quiet.socket.sent.length, 1);
});

test("a silent server is disconnected", () => {
  const world = new World();
  const reasons: string[] = [];
  world.client({ pingGraceMs: 5_000 }).on("connecting", ({ reason }) => reasons.push(reason));
  world.welcome({ ping: 25 });
  world.advance(29_000);
  world.socket.tell({});
  world.advance(29_999);
  assert.deepEqual(reasons, []);
  world.advance(1);
  assert.deepEqual(reasons, ["no ping"]);
  assert.ok(world.socket.isClosed);
});

test("any message keeps the connection alive", () => {
  const world = new World();
  const client = world.client({ pingGraceMs: 5_000 });
  world.welcome({ ping: 25 });
  for (let i = 0; i < 10; i += 1) {
    world.advance(20_000);
    world.socket.tell({ push: { channel: "a", pub: { data: 1 } } });
  }
  assert.equal(client.state, "connected");
});

test("an attempt that takes too long is aborted", () => {
  const world = new World();
  world.client({ connectTimeoutMs: 1_000 });
  world.advance(1_000);
  assert.ok(world.socket.isClosed);
  world.advance(500);
  assert.equal(world.sockets.length, 2);
});

test("messages of an earlier socket are ignored", () => {
  const world = new World();
  const client = world.client();
  const first = world.welcome();
  first.cut();
  world.advance(500);
  first.tell({ push: { disconnect: { code: 3500, reason: "late" } } });
  first.cut(3500);
  assert.equal(client.state, "connecting");
  world.welcome();
  assert.equal(client.state, "connected");
});

test("a token is requested before every connection", async () => {
  const world = new World();
  let asked = 0;
  world.client({ token: () => `t${(asked += 1)}` });
  await settled();
  world.welcome().cut();
  world.advance(500);
  await settled();
  world.welcome();
  assert.deepEqual(world.socket.command("connect")["connect"], { name: "js", token: "t2" });
});

test("a token callback that fails is called again later", async () => {
  const world = new World();
  const errors: string[] = [];
  let asked = 0;
  const client = world.client({
    token: async () => {
      asked += 1;
      if (asked === 1) {
        throw new Error("the backend is unavailable");
      }
      return "t";
    },
  });
  client.on("error", ({ message }) => errors.push(message));
  await settled();
  assert.deepEqual(errors, ["the backend is unavailable"]);
  assert.equal(world.sockets.length, 0);
  world.advance(500);
  await settled();
  assert.equal(world.sockets.length, 1);
});

test("a token callback that throws Unauthorized ends the connection", async () => {
  for (const token of [
    () => {
      throw new Unauthorized("log in first");
    },
    () => "",
  ]) {
    const world = new World();
    const client = world.client({ token });
    await settled();
    assert.equal(client.state, "disconnected");
    assert.equal(world.timers, 0);
  }
});

test("an expired token is replaced if there is a callback, and is final otherwise", async () => {
  const world = new World();
  const client = world.client({ token: () => "t" });
  await settled();
  world.socket.open();
  world.socket.refuse("connect", 109, "token expired");
  assert.equal(client.state, "connecting");
  const fixed = new World();
  const stuck = fixed.client({ token: "t" });
  await settled();
  fixed.socket.open();
  fixed.socket.refuse("connect", 109, "token expired");
  assert.equal(stuck.state, "disconnected");
});

test("a refusal is final unless it is temporary", () => {
  const world = new World();
  const client = world.client();
  world.socket.open();
  world.socket.refuse("connect", 100, "internal server error", true);
  assert.equal(client.state, "connecting");
  world.advance(500);
  world.socket.open();
  world.socket.refuse("connect", 101, "unauthorized");
  assert.equal(client.state, "disconnected");
});

test("a token is refreshed before it expires", async () => {
  const world = new World();
  let asked = 0;
  world.client({ token: () => `t${(asked += 1)}` });
  await settled();
  world.welcome({ expires: true, ttl: 100 });
  world.advance(89_999);
  await settled();
  assert.equal(asked, 1);
  world.advance(1);
  await settled();
  assert.deepEqual(world.socket.command("refresh")["refresh"], { token: "t2" });
  world.socket.answer("refresh", { expires: true, ttl: 10 });
  world.advance(9_000);
  await settled();
  assert.deepEqual(world.socket.command("refresh")["refresh"], { token: "t3" });
});

test("a temporary error of a refresh is retried, and a refusal ends the connection", async () => {
  const world = new World();
  const client = world.client({ token: () => "t" });
  await settled();
  world.welcome({ expires: true, ttl: 10 });
  world.advance(9_000);
  await settled();
  world.socket.refuse("refresh", 100, "internal server error", true);
  const { id } = world.socket.command("refresh");
  world.advance(500);
  await settled();
  assert.notEqual(world.socket.command("refresh").id, id);
  world.socket.refuse("refresh", 103, "permission denied");
  assert.equal(client.state, "disconnected");
});

test("a closed client leaves nothing behind and can connect again", () => {
  const world = new World();
  const client = world.client();
  client.subscribe("a");
  world.welcome({ ping: 25 });
  client.close();
  assert.equal(world.timers, 0);
  assert.ok(world.socket.isClosed);
  assert.equal(client.subscriptions.size, 0);
  client.connect();
  world.welcome();
  assert.equal(client.state, "connected");
});

test("connect skips the rest of a wait", () => {
  const world = new World();
  const client = world.client();
  world.socket.cut();
  client.connect();
  assert.equal(world.sockets.length, 2);
  world.advance(9_999);
  assert.equal(world.sockets.length, 2, "the skipped wait does not fire");
});

test("a server that does not send JSON is disconnected", () => {
  const world = new World();
  const reasons: number[] = [];
  world.client().on("connecting", ({ code }) => reasons.push(code));
  world.welcome().tellRaw("<html>");
  assert.deepEqual(reasons, [3]);
  assert.ok(world.socket.isClosed);
});
