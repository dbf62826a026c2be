// The application's backend is asked: who a client is, what it may do, and what its calls return.

import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { overEveryTransportWithBackend } from "../support/suite.mjs";

const ENVIRONMENT = {
  LINERATE_CLIENT_CONNECT_BACKEND: "app",
  LINERATE_CLIENT_REFRESH_BACKEND: "app",
  LINERATE_CLIENT_SEND_BACKEND: "app",
  LINERATE_CHANNEL_RPC_BACKEND: "app",
};

const TOML = `
[[namespace]]
name = "asked"
subscribe_backend = "app"
sub_refresh_backend = "app"
publish_backend = "app"
history_size = 10
recover = true
`;

/** What was asked, by the name of the question. */
const asked = new EventTarget();

const inOneSecond = () => Math.floor(Date.now() / 1000) + 1;

function answer(event, body) {
  asked.dispatchEvent(Object.assign(new Event(event), { body }));
  switch (event) {
    case "connect":
      return connect(body.data ?? {});
    case "refresh":
      return { result: { expire_at: inOneSecond() } };
    case "subscribe":
      return subscribe(body);
    case "sub_refresh":
      return { result: { expired: true } };
    case "publish":
      return { result: { data: { by: body.user, said: body.data } } };
    case "rpc":
      return rpc(body);
    case "send":
      return { result: {} };
  }
}

function connect({ user, expires }) {
  if (user === undefined) {
    return { disconnect: { code: 4501, reason: "who are you?" } };
  }
  const result = { user, info: { name: user }, data: { welcome: user } };
  return { result: expires ? { ...result, expire_at: inOneSecond() } : result };
}

function subscribe({ channel, user, data }) {
  if (data?.forbidden) {
    return { error: { code: 403, message: `not for ${user}` } };
  }
  const result = { data: { channel } };
  return { result: data?.expires ? { ...result, expire_at: inOneSecond() } : result };
}

function rpc({ method, data }) {
  switch (method) {
    case "sum":
      return { result: { data: data.reduce((sum, value) => sum + value, 0) } };
    case "fail":
      return { error: { code: 1000, message: "no" } };
    default:
      return undefined;
  }
}

/** Returns a connected client that the backend knows. */
async function known(bench, options = {}) {
  const data = bench.transport.encode({ user: bench.user, ...options });
  const { client, journal } = bench.client({ token: "", data });
  client.connect();
  const context = await journal.next("connected");
  return { client, journal, context };
}

const tests = {
  async "the backend says who a client is"(bench) {
    const { context } = await known(bench);
    assert.deepEqual(bench.transport.decode(context.data), { welcome: bench.user });
  },

  async "a client whom the backend refuses is told why, and stays away"(bench) {
    const { client, journal } = bench.client({ token: "" });
    client.connect();
    const { code, reason } = await journal.next("disconnected");
    assert.deepEqual({ code, reason }, { code: 4501, reason: "who are you?" });
  },

  async "a connection that expires is renewed without its client"(bench) {
    const refreshed = once(asked, "refresh");
    const { client, journal } = await known(bench, { expires: true });
    await refreshed;
    await pause(1_500);
    assert.equal(bench.transport.decode((await client.rpc("sum", sum(bench))).data), 6);
    assert.deepEqual(journal.names(), ["connecting", "connected"]);
  },

  async "the backend says who may subscribe"(bench) {
    const { client } = await known(bench);
    const channel = bench.channel("asked");
    const { context } = await bench.subscribed(client, channel);
    assert.deepEqual(bench.transport.decode(context.data), { channel });
    const data = bench.transport.encode({ forbidden: true });
    const { subscription, journal } = bench.subscription(client, `${channel}x`, { data });
    subscription.subscribe();
    const { code, reason } = await journal.next("unsubscribed");
    assert.deepEqual({ code, reason }, { code: 403, reason: `not for ${bench.user}` });
  },

  async "a subscription that the backend does not renew ends"(bench) {
    const { client } = await known(bench);
    const data = bench.transport.encode({ expires: true });
    const { journal } = await bench.subscribed(client, bench.channel("asked"), { data });
    await journal.next("subscribing");
  },

  async "the backend says what is published"(bench) {
    const { client } = await known(bench);
    const channel = bench.channel("asked");
    const { journal } = await bench.subscribed(client, channel);
    await client.publish(channel, bench.transport.encode("hello"));
    assert.deepEqual(await bench.payloads(journal, 1), [{ by: bench.user, said: "hello" }]);
  },

  async "calls are answered by the backend"(bench) {
    const { client } = await known(bench);
    const { data } = await client.rpc("sum", sum(bench));
    assert.equal(bench.transport.decode(data), 6);
    await assert.rejects(client.rpc("fail", sum(bench)), { code: 1000, message: "no" });
    await assert.rejects(client.rpc("deaf", sum(bench)), { code: 100, temporary: true });
  },

  async "messages reach the backend"(bench) {
    const { client } = await known(bench);
    const arrived = once(asked, "send");
    await client.send(bench.transport.encode({ typing: bench.number }));
    const [{ body }] = await arrived;
    assert.deepEqual(body.data, { typing: bench.number });
    assert.equal(body.user, bench.user);
  },
};

const sum = (bench) => bench.transport.encode([1, 2, 3]);

overEveryTransportWithBackend({ answer, environment: ENVIRONMENT, toml: TOML }, tests);
