import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gap, Subscription } from "../../../client/src/linerate.js";
import { ServerError, Unsubscribed } from "../../../client/src/linerate.js";
import { type FakeSocket, settled, World } from "./world.js";

function tell(socket: FakeSocket, ...offsets: number[]): void {
  socket.tell(
    ...offsets.map((offset) => ({ push: { channel: "a", pub: { data: offset, offset } } })),
  );
}

/** Subscribes to `a` in a new world; `seen` and `gaps` collect its events. */
function subscribed(options = {}, result: object = { epoch: "e", offset: 0, recoverable: true }) {
  const world = new World();
  const client = world.client();
  const subscription = client.subscribe("a", options);
  const socket = world.welcome();
  const seen: unknown[] = [];
  const gaps: Gap[] = [];
  subscription.on("publication", (publication) => seen.push(publication.json()));
  subscription.on("gap", (gap) => gaps.push(gap));
  socket.answer("subscribe", result);
  return { world, client, socket, subscription, seen, gaps };
}

/** Cuts the connection, and lets the client reconnect. */
function comeBack(world: World): FakeSocket {
  world.socket.cut();
  world.awaitSocket();
  return world.welcome();
}

test("all options of a subscription are sent", () => {
  const { socket } = subscribed({
    filter: "level == 'error'",
    batchIntervalMs: 200,
    conflate: "/key",
    since: { epoch: "e", offset: 7 },
    data: 1,
    joinLeave: true,
  });
  const { subscribe } = socket.command("subscribe");
  assert.deepEqual(subscribe, {
    channel: "a",
    recoverable: true,
    filter: "level == 'error'",
    batch_interval_ms: 200,
    conflate: "/key",
    data: 1,
    join_leave: true,
    recover: true,
    epoch: "e",
    offset: 7,
  });
});

test("blocks are delivered by channel number, with offsets and gaps", () => {
  const world = new World();
  const client = world.client();
  const [a, b] = [client.subscribe("a"), client.subscribe("b")];
  const socket = world.welcome();
  const ids = socket.sent.flatMap((sent) => ("subscribe" in sent ? [sent["id"]] : []));
  socket.tell(
    { id: ids[0], subscribe: { id: 1, epoch: "e" } },
    { id: ids[1], subscribe: { id: 2 } },
  );
  const seen: unknown[] = [];
  a.on("publication", ({ offset, gap }) => seen.push(["a", offset, gap]));
  b.on("publication", (publication) => seen.push(["b", publication.text(), publication.bytes()]));
  socket.tellBytes(1, 0x05, 3, 3, 5, 2, 1, 0x31, 1, 0x32);
  socket.tellBytes(2, 0x00, 1, 2, 0xff, 0xfe);
  socket.tellBytes(9, 0x00, 1, 1, 0x31);
  assert.deepEqual(seen, [
    ["a", 3, { missed: 2, cause: "ring_evicted" }],
    ["a", 4, undefined],
    ["b", "\ufffd\ufffd", Uint8Array.of(0xff, 0xfe)],
  ]);
  assert.deepEqual(a.position, { epoch: "e", offset: 4 });
  a.unsubscribe();
  socket.tellBytes(1, 0x00, 1, 1, 0x31);
  assert.equal(seen.length, 3);
});

test("the name of a new epoch is requested", () => {
  const { world, socket, subscription, gaps } = subscribed({}, { id: 1, epoch: "e", offset: 40 });
  socket.tellBytes(1, 0x05, 2, 0, 1, 1, 1, 0x31);
  assert.deepEqual(gaps, [{ missed: undefined, cause: "epoch_changed" }]);
  assert.equal(subscription.position, undefined);
  assert.deepEqual(socket.command("history")["history"], { channel: "a", limit: 0 });
  socket.answer("history", { epoch: "f", offset: 2 });
  assert.deepEqual(subscription.position, { epoch: "f", offset: 2 });

  socket.tellBytes(1, 0x04, 0, 6, 0);
  const back = comeBack(world);
  assert.deepEqual(back.command("subscribe")["subscribe"], { channel: "a", recoverable: true });
  back.answer("subscribe", { id: 1, epoch: "g", offset: 5 });
  assert.deepEqual(gaps.at(-1), { missed: undefined, cause: "recovery" });
});

test("channel number 0 is omitted, and pushes that arrive together are a batch", () => {
  const { socket, subscription } = subscribed({}, { epoch: "e" });
  const batches: number[] = [];
  subscription.on("batch", (batch) => batches.push(batch.length));
  socket.tellBytes(0, 0x00, 2, 1, 0x31, 1, 0x32);
  tell(socket, 3, 4, 5);
  const pub = { data: 1 };
  socket.tell({ push: { channel: "a", pub } }, {}, { push: { channel: "a", pub } });
  assert.deepEqual(batches, [2, 3, 1, 1]);
});

test("a frame that is not a block ends the connection", () => {
  const { client, socket } = subscribed();
  socket.tellBytes(1);
  assert.equal(client.state, "connecting");
});

test("a channel cannot be subscribed twice, but can be subscribed again", () => {
  const { client, subscription, socket } = subscribed();
  assert.throws(() => client.subscribe("a"), /already subscribed to a/);
  subscription.unsubscribe();
  assert.deepEqual(socket.command("unsubscribe")["unsubscribe"], { channel: "a" });
  client.subscribe("a");
});

test("after a lost connection a subscription continues from its position", () => {
  const { world, socket, subscription, seen, gaps } = subscribed();
  tell(socket, 1, 2);
  assert.deepEqual(subscription.position, { epoch: "e", offset: 2 });
  const back = comeBack(world);
  assert.deepEqual(back.command("subscribe")["subscribe"], {
    channel: "a",
    recoverable: true,
    recover: true,
    epoch: "e",
    offset: 2,
  });
  back.answer("subscribe", {
    epoch: "e",
    offset: 4,
    was_recovering: true,
    recovered: true,
    publications: [
      { data: 3, offset: 3 },
      { data: 4, offset: 4 },
    ],
  });
  tell(back, 5);
  assert.deepEqual(seen, [1, 2, 3, 4, 5]);
  assert.deepEqual(gaps, []);
});

test("publications in the same frame as the reply are delivered after it", () => {
  const world = new World();
  const seen: unknown[] = [];
  const subscription = world.client().subscribe("a");
  subscription.on("publication", (publication) => seen.push(publication.offset));
  const socket = world.welcome();
  const { id } = socket.command("subscribe");
  socket.tell(
    { id, subscribe: { epoch: "e", offset: 7 } },
    { push: { channel: "a", pub: { data: 1, offset: 8 } } },
  );
  assert.deepEqual(seen, [8]);
  assert.deepEqual(subscription.position, { epoch: "e", offset: 8 });
});

test("unrecovered publications are a gap, counted within a stream", () => {
  const { world, socket, seen, gaps } = subscribed();
  tell(socket, 1, 2);
  const back = comeBack(world);
  back.answer("subscribe", { epoch: "e", offset: 12, was_recovering: true, recovered: false });
  assert.deepEqual(gaps, [{ missed: 10, cause: "recovery" }]);
  tell(back, 13);
  assert.deepEqual(seen, [1, 2, 13]);
});

test("in another stream the size of the gap is unknown, and offsets start over", () => {
  const { world, socket, subscription, seen, gaps } = subscribed();
  tell(socket, 1, 2);
  const back = comeBack(world);
  back.answer("subscribe", { epoch: "f", offset: 0, was_recovering: true, recovered: false });
  assert.deepEqual(gaps, [{ missed: undefined, cause: "recovery" }]);
  tell(back, 1);
  assert.deepEqual(seen, [1, 2, 1]);
  assert.deepEqual(subscription.position, { epoch: "f", offset: 1 });
});

test("a lost connection without recovery is a gap", () => {
  const { world, socket, gaps } = subscribed({ recover: false });
  tell(socket, 1);
  const back = comeBack(world);
  assert.deepEqual(back.command("subscribe")["subscribe"], { channel: "a" });
  back.answer("subscribe", { epoch: "e", offset: 1 });
  assert.deepEqual(gaps, [{ missed: 0, cause: "recovery" }]);
});

test("the next publication carries the gap before it", () => {
  const { world, subscription } = subscribed();
  const found: (Gap | undefined)[] = [];
  subscription.on("publication", ({ gap }) => found.push(gap));
  const back = comeBack(world);
  back.answer("subscribe", { epoch: "f", offset: 3, was_recovering: true, recovered: false });
  tell(back, 4, 5);
  assert.deepEqual(found, [{ missed: undefined, cause: "recovery" }, undefined]);
});

test("an unrecoverable position is dropped, but the subscription is kept", () => {
  const { world, subscription, gaps } = subscribed({ since: { epoch: "e", offset: 3 } });
  const back = comeBack(world);
  back.refuse("subscribe", 112, "unrecoverable position");
  world.advance(500);
  assert.deepEqual(back.command("subscribe")["subscribe"], { channel: "a", recoverable: true });
  back.answer("subscribe", { epoch: "f", offset: 0 });
  assert.equal(subscription.state, "subscribed");
  assert.equal(gaps.at(-1)?.cause, "recovery");
});

test("after an insufficient state, the client subscribes again from its position", () => {
  const { socket, subscription } = subscribed();
  tell(socket, 1);
  socket.tell({
    push: { channel: "a", unsubscribe: { code: 2500, reason: "insufficient state" } },
  });
  assert.equal(subscription.state, "subscribing");
  assert.deepEqual(socket.command("subscribe")["subscribe"], {
    channel: "a",
    recoverable: true,
    recover: true,
    epoch: "e",
    offset: 1,
  });
});

test("an unsubscribe by the server is final, and iterations reject", async () => {
  const { client, socket, subscription } = subscribed();
  const iterator = subscription[Symbol.asyncIterator]();
  const waiting = assert.rejects(
    iterator.next(),
    (error) => error instanceof Unsubscribed && error.code === 2000,
  );
  socket.tell({
    push: { channel: "a", unsubscribe: { code: 2000, reason: "server unsubscribe" } },
  });
  await waiting;
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  assert.equal(client.subscriptions.size, 0);
});

test("a refused subscription is final unless the error is temporary", () => {
  const world = new World();
  const subscription = world.client().subscribe("a");
  const errors: Error[] = [];
  const ends: object[] = [];
  subscription.on("error", (error) => errors.push(error));
  subscription.on("unsubscribed", (end) => ends.push(end));
  const socket = world.welcome();
  socket.refuse("subscribe", 100, "internal server error", true);
  world.advance(500);
  socket.refuse("subscribe", 103, "permission denied");
  assert.ok(errors[0] instanceof ServerError);
  assert.deepEqual(ends, [{ code: 103, reason: "permission denied" }]);
  assert.equal(subscription.state, "unsubscribed");
});

test("an unanswered subscription opens a new connection", () => {
  const world = new World();
  const client = world.client({ requestTimeoutMs: 1_000 });
  client.subscribe("a");
  const socket = world.welcome();
  world.advance(1_000);
  assert.ok(socket.isClosed);
  assert.equal(client.state, "connecting");
});

test("a channel's token is requested with its name each time, and refreshed", async () => {
  const world = new World();
  const asked: string[] = [];
  world.client().subscribe("a", {
    token: (channel) => {
      asked.push(channel);
      return `t${asked.length}`;
    },
  });
  world.welcome();
  await settled();
  world.socket.answer("subscribe", { expires: true, ttl: 10 });
  world.advance(9_000);
  await settled();
  assert.deepEqual(world.socket.command("sub_refresh")["sub_refresh"], {
    channel: "a",
    token: "t2",
  });
  world.socket.answer("sub_refresh", { expires: true, ttl: 10 });
  const back = comeBack(world);
  await settled();
  assert.deepEqual(back.command("subscribe")["subscribe"], {
    channel: "a",
    recoverable: true,
    token: "t3",
  });
  assert.deepEqual(asked, ["a", "a", "a"]);
});

test("iteration is in order and ends with unsubscribe", async () => {
  const { socket, subscription } = subscribed();
  const reading = collect(subscription);
  tell(socket, 1, 2);
  await settled();
  tell(socket, 3);
  subscription.unsubscribe();
  assert.deepEqual(await reading, [1, 2, 3]);
  assert.deepEqual(await collect(subscription), [], "it stays ended");
});

test("breaking out of an iteration keeps the subscription", async () => {
  const { socket, subscription, seen } = subscribed();
  const reading = (async () => {
    for await (const publication of subscription) {
      return publication.json();
    }
    return undefined;
  })();
  tell(socket, 1, 2);
  assert.equal(await reading, 1);
  tell(socket, 3);
  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(subscription.state, "subscribed");
});

test("a slow reader loses the oldest publications and is told how many", async () => {
  const { socket, subscription, gaps } = subscribed({ bufferMax: 3 });
  const iterator = subscription[Symbol.asyncIterator]();
  tell(socket, 1, 2, 3, 4, 5);
  assert.deepEqual(gaps, [{ missed: 2, cause: "reader" }]);
  subscription.unsubscribe();
  assert.deepEqual(await collect({ [Symbol.asyncIterator]: () => iterator }), [3, 4, 5]);
});

test("a listener that throws stops neither other listeners nor the connection", async (t) => {
  const { client, socket, subscription, seen } = subscribed();
  const uncaught: unknown[] = [];
  const restore = catchUncaught(uncaught);
  t.after(restore);
  subscription.on("publication", () => {
    throw new Error("in a listener");
  });
  subscription.on("publication", () => seen.push("after"));
  tell(socket, 1);
  await settled();
  assert.deepEqual(seen, [1, "after"]);
  assert.equal(uncaught.length, 1);
  assert.equal(client.state, "connected");
});

test("a subscription by the server is recovered with the connection", () => {
  const world = new World();
  const client = world.client();
  const seen: unknown[] = [];
  const gaps: Gap[] = [];
  client.on("subscription", (subscription) => {
    subscription.on("publication", (publication) => seen.push(publication.text()));
    subscription.on("gap", (gap) => gaps.push(gap));
  });
  const socket = world.welcome({
    subs: { a: { id: 3, epoch: "e", offset: 1, recoverable: true } },
  });
  socket.tellBytes(3, 0x01, 2, 1, 1, 0x31);
  assert.ok(socket.sent.every((message) => !("subscribe" in message)));

  socket.cut();
  const back = world.awaitSocket();
  back.open();
  assert.deepEqual(back.command("connect")["connect"], {
    name: "js",
    subs: { a: { recover: true, epoch: "e", offset: 2 } },
  });
  const subs = { a: { id: 4, epoch: "e", offset: 3, was_recovering: true, recovered: true } };
  back.answer("connect", { client: "c2", subs });
  back.tellBytes(4, 0x01, 3, 1, 1, 0x32);
  assert.deepEqual(seen, ["1", "2"]);
  assert.deepEqual(gaps, []);

  const ended: number[] = [];
  client.subscriptions.get("a")?.on("unsubscribed", ({ code }) => ended.push(code));
  comeBack(world);
  assert.deepEqual(ended, [2000], "the next token no longer names the channel");
});

test("the server may subscribe later, and the client does not subscribe again", () => {
  const world = new World();
  const client = world.client();
  const told: string[] = [];
  client.on("subscription", ({ channel }) => told.push(channel));
  const own = client.subscribe("own");
  const socket = world.welcome({ subs: { own: { id: 1 } } });
  socket.tell({ push: { channel: "later", subscribe: { id: 2 } } });
  assert.deepEqual(told, ["later"]);
  assert.equal(own.state, "subscribed");
  assert.ok(socket.sent.every((message) => !("subscribe" in message)));
});

test("joins and leaves are reported", () => {
  const { socket, subscription } = subscribed({ joinLeave: true });
  const told: string[] = [];
  subscription.on("join", ({ user }) => told.push(`${user} joined`));
  subscription.on("leave", ({ user }) => told.push(`${user} left`));
  const info = { user: "u", client: "c2" };
  socket.tell(
    { push: { channel: "a", join: { info } } },
    { push: { channel: "a", leave: { info } } },
  );
  assert.deepEqual(told, ["u joined", "u left"]);
});

test("closing the client ends its subscriptions without an error", async () => {
  const { client, subscription } = subscribed();
  const reading = collect(subscription);
  client.close();
  assert.deepEqual(await reading, []);
  assert.equal(subscription.state, "unsubscribed");
});

async function collect(subscription: AsyncIterable<{ json(): unknown }> | Subscription) {
  const seen: unknown[] = [];
  for await (const publication of subscription) {
    seen.push(publication.json());
  }
  return seen;
}

function catchUncaught(into: unknown[]): () => void {
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => into.push(error));
  return () => {
    process.removeAllListeners("uncaughtException");
    before.forEach((listener) => process.on("uncaughtException", listener));
  };
}
