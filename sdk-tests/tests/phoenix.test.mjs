// The published client of Phoenix.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startBackend } from "../support/backend.mjs";
import { within } from "../support/journal.mjs";
import * as phoenix from "../support/phoenix.mjs";
import {
  TRANSPORTS,
  close,
  join,
  joined,
  presence,
  push,
  startPhoenix,
} from "../support/phoenix.mjs";
import { startProxy } from "../support/proxy.mjs";
import { connectionToken, subscriptionToken } from "../support/tokens.mjs";

/** What a backend says about joins and calls. */
function answer(event, { channel, method, data, b64data, user }) {
  switch (event) {
    case "connect":
      return { result: { user: data.user } };
    case "subscribe":
      return data.secret === "open"
        ? { result: { data: { welcome: user, since: data.since } } }
        : { error: { code: 403, message: "no entry" } };
  }
  switch (method) {
    case "add":
      return { result: { data: { sum: data.a + data.b, channel } } };
    case "bytes":
      return { result: { b64data } };
    default:
      return { error: { code: 404, message: `no method ${method}` } };
  }
}

let backend;
let server;
before(async () => {
  backend = await startBackend(answer);
  const toml = `
[[backend]]
name = "app"
url = "${backend.url}"

[[backend]]
name = "bytes"
url = "${backend.url}"
binary = true

[[namespace]]
name = "room"
subscribe_backend = "app"
rpc_backend = "app"

[[namespace]]
name = "binary"
allow_subscribe = true
rpc_backend = "bytes"
`;
  server = await startPhoenix({ LINERATE_CLIENT_CONNECT_BACKEND: "app" }, toml);
});
after(async () => {
  await server.stop();
  await backend.stop();
});
afterEach(close);

const ann = () => connectionToken("ann");

for (const [index, { name, options, bytes, front }] of TRANSPORTS.entries()) {
  const connect = (url, token, more) => phoenix.connect(url, token, { ...options, ...more });

  describe(name, () => {
    let url;
    let fronting;
    before(async () => {
      fronting = await front?.(server.url);
      url = (fronting ?? server).url;
    });
    after(() => fronting?.stop());
    afterEach(close);

    test("publications are events of the topic", async () => {
      const { socket } = connect(url, ann());
      const { journal } = await joined(socket, "open:phoenix");
      await server.publish("open:phoenix", { price: 190 });
      assert.deepEqual(await journal.next("message"), { price: 190 });
      const tags = { event: "created" };
      await server.api("publish", { channel: "open:phoenix", data: { id: 7 }, tags });
      assert.deepEqual(await journal.next("created"), { id: 7 });
      await server.api("publish", { channel: "open:phoenix", b64data: "/wA=" });
      assert.deepEqual(bytes(await journal.next("message")), Buffer.from([0xff, 0]));
    });

    test("a backend decides on joins, and answers events", async () => {
      const { socket } = connect(url, ann());
      const refused = join(socket, "room:2", { secret: "wrong" });
      assert.deepEqual(await refused.journal.next("refused"), { code: 403, reason: "no entry" });
      refused.channel.leave();
      const { channel, journal } = join(socket, "room:1", { secret: "open", since: 3 });
      assert.deepEqual(await journal.next("joined"), { welcome: "ann", since: 3 });
      const response = { sum: 3, channel: "room:1" };
      assert.deepEqual(await push(channel, "add", { a: 1, b: 2 }), { status: "ok", response });
      const error = { code: 404, reason: "no method unknown" };
      assert.deepEqual(await push(channel, "unknown", {}), { status: "error", response: error });
    });

    test("bytes go both ways", async () => {
      const { socket } = connect(url, ann());
      const { channel } = await joined(socket, "binary:1");
      const { buffer } = new Uint8Array([0xff, 0, 7]);
      const { status, response } = await push(channel, "bytes", buffer);
      assert.equal(status, "ok");
      assert.deepEqual(bytes(response), Buffer.from(buffer));
    });

    test("events of a client reach the others in the topic", async () => {
      const [one, other] = [connect(url, ann()), connect(url, ann())];
      const [from, to] = [
        await joined(one.socket, "open:said"),
        await joined(other.socket, "open:said"),
      ];
      const pushed = await push(from.channel, "created", { text: "hello" });
      assert.deepEqual(pushed, { status: "ok", response: {} });
      for (const { journal } of [from, to]) {
        assert.deepEqual(await journal.next("created"), { text: "hello" });
      }
    });

    test("a client leaves a topic", async () => {
      const { socket } = connect(url, ann());
      const { channel, journal } = await joined(socket, "open:left");
      await within(new Promise((resolve) => channel.leave().receive("ok", resolve)), "an answer");
      await journal.next("closed");
      await server.publish("open:left", { a: 1 });
      const again = await joined(socket, "open:left");
      await server.publish("open:left", { a: 2 });
      assert.deepEqual(await again.journal.next("message"), { a: 2 });
      assert.equal(journal.all("message").length, 0);
    });

    test("clients see who is there", async () => {
      const [ann, bob] = ["ann", "bob"].map((user) =>
        connectionToken(user, { info: { name: user } }),
      );
      // A client whose last poll has not arrived is there for a while.
      const topic = `open:presence-${index}`;
      await joined(connect(url, ann).socket, topic);
      const { channel } = join(connect(url, ann).socket, topic);
      const { known, until } = presence(channel);
      await within(until(["ann 2"]), "both connections of ann");
      const leaving = await joined(connect(url, bob).socket, topic);
      await within(until(["ann 2", "bob 1"]), "bob");
      assert.equal(known.state.bob.metas[0].name, "bob");
      leaving.channel.leave();
      await within(until(["ann 2"]), "that bob leaves");
    });

    test("tokens grant topics", async () => {
      const { socket } = connect(url, ann());
      const refused = join(socket, "private:1");
      assert.equal((await refused.journal.next("refused")).code, 103);
      refused.channel.leave();
      await joined(socket, "private:1", { token: subscriptionToken("ann", "private:1") });
    });

    test("without a token, the backend is asked with the parameters", async () => {
      const { socket, journal } = connect(url, undefined, { params: { user: "carl" } });
      await journal.next("open");
      const { journal: room } = join(socket, "room:3", { secret: "open" });
      assert.equal((await room.next("joined")).welcome, "carl");
    });

    test("a client whose token is refused tries again with another one", async () => {
      // The fallback takes another token than the WebSocket before it.
      const expired = connectionToken("ann", { seconds: -10 });
      const tokens = [expired, expired, ann()];
      const { journal } = connect(url, () => tokens.shift());
      await journal.next("close");
      await journal.next("open");
      assert.equal(tokens.length, 0);
    });

    test("a client whose connection is lost joins its topics again", async () => {
      const proxy = await startProxy(url);
      try {
        const { socket, journal } = connect(proxy.url, ann());
        const room = await joined(socket, "open:again");
        proxy.cut();
        await journal.next("close");
        await room.journal.next("error");
        proxy.mend();
        await room.journal.next("joined");
        await server.publish("open:again", { a: 1 });
        assert.deepEqual(await room.journal.next("message"), { a: 1 });
      } finally {
        proxy.stop();
      }
    });
  });
}

test("heartbeats keep a WebSocket", async () => {
  const hasty = await startPhoenix({ LINERATE_PHOENIX_HEARTBEAT_TIMEOUT_S: "2" });
  try {
    const quiet = phoenix.connect(hasty.url, ann());
    const lively = phoenix.connect(hasty.url, ann(), { heartbeatIntervalMs: 500 });
    await Promise.all([quiet.journal.next("open"), lively.journal.next("open")]);
    assert.equal((await quiet.journal.next("close")).code, 1002);
    await quiet.journal.next("open");
    assert.deepEqual(lively.journal.names(), ["open"]);
  } finally {
    await hasty.stop();
  }
});

test("polls keep a session, and a client that is gone is forgotten", async () => {
  const hasty = await startPhoenix({ LINERATE_PHOENIX_HEARTBEAT_TIMEOUT_S: "2" });
  try {
    const { transport } = TRANSPORTS[1].options;
    const quiet = phoenix.connect(hasty.url, ann(), { transport });
    await joined(quiet.socket, "open:idle");
    await pause(5_000);
    assert.deepEqual(quiet.journal.names(), ["open"]);
    const clients = async () => (await hasty.api("presence", { channel: "open:idle" })).presence;
    assert.equal(Object.keys(await clients()).length, 1);
    close();
    await within(
      (async () => {
        while (Object.keys(await clients()).length > 0) await pause(50);
      })(),
      "that the client is forgotten",
    );
  } finally {
    await hasty.stop();
  }
});

test("a session that the server ends is followed by another", async () => {
  const { options } = TRANSPORTS[1];
  const { socket, journal } = phoenix.connect(server.url, connectionToken("dora"), options);
  const room = await joined(socket, "open:ended");
  await server.api("disconnect", { user: "dora" });
  const { code, reason } = await journal.next("close");
  assert.deepEqual({ code, reason }, { code: 3410, reason: "session_gone" });
  await room.journal.next("error");
  await room.journal.next("joined");
});

test("a batch that is longer than a message is accepted", async () => {
  const { options } = TRANSPORTS[1];
  const { socket, journal } = phoenix.connect(server.url, ann(), options);
  const { channel } = await joined(socket, "open:batch");
  const text = "x".repeat(2_000);
  const pushed = Array.from({ length: 80 }, () => push(channel, "created", { text }));
  for (const { status } of await Promise.all(pushed)) {
    assert.equal(status, "ok");
  }
  assert.deepEqual(journal.all("close"), []);
});
