// Connecting: tokens, their refresh, and the close codes that the client sees.

import assert from "node:assert/strict";
import { overEveryTransport } from "../support/suite.mjs";
import { connectionToken } from "../support/tokens.mjs";

overEveryTransport({
  async "a client with a token is connected"(bench) {
    const { client, journal } = bench.client();
    client.connect();
    const context = await journal.next("connected");
    assert.match(context.client, /^[\w-]{22}$/);
    client.disconnect();
    assert.equal((await journal.next("disconnected")).code, 0);
  },

  async "a client without a token is permanently refused"(bench) {
    const { client, journal } = bench.client({ token: "" });
    client.connect();
    const { code } = await journal.next("disconnected");
    assert.ok(code >= 3500 && code < 4000, `${code}`);
  },

  async "a forged token ends in 3500"(bench) {
    const token = connectionToken(bench.user);
    const forged = token.slice(0, -4) + (token.endsWith("AAAA") ? "BBBB" : "AAAA");
    const { client, journal } = bench.client({ token: forged });
    client.connect();
    assert.equal((await journal.next("disconnected")).code, 3500);
  },

  async "an expired token is replaced before the client stops"(bench) {
    const expired = connectionToken(bench.user, { seconds: -60 });
    const asked = [];
    const getToken = async () => {
      asked.push(1);
      return connectionToken(bench.user);
    };
    const { client, journal } = bench.client({ token: expired, getToken });
    client.connect();
    await journal.next("connected");
    assert.equal(asked.length, 1);
  },

  async "a token is refreshed without another connection"(bench) {
    let refreshed;
    const isRefreshed = new Promise((resolve) => (refreshed = resolve));
    const getToken = async () => {
      refreshed();
      return connectionToken(bench.user);
    };
    const token = connectionToken(bench.user, { seconds: 2 });
    const { client, journal } = await bench.connected({ token, getToken });
    await isRefreshed;
    // Longer than the first token was valid.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await client.presenceStats(bench.channel("open")).catch(() => {});
    assert.deepEqual(journal.names(), ["connecting", "connected"]);
  },

  async "a client without a newer token is disconnected, and reconnects with one"(bench) {
    let isOut = false;
    const never = new Promise(() => {});
    const getToken = () => (isOut ? connectionToken(bench.user) : never);
    const token = connectionToken(bench.user, { seconds: 2 });
    const { client, journal } = await bench.connected({ token, getToken });
    client.on("connecting", () => (isOut = true));
    const { code, reason } = await journal.next("connecting", ({ code }) => code !== 0);
    assert.deepEqual([code, reason], [3005, "connection expired"]);
    await journal.next("connected");
  },

  async "the backend disconnects a user permanently, or so that it reconnects"(bench) {
    const { client, journal } = await bench.connected();
    await bench.server.api("disconnect", { user: bench.user });
    const { code, reason } = await journal.next("disconnected");
    assert.deepEqual([code, reason], [3503, "force disconnect"]);

    client.connect();
    await journal.next("connected");
    const disconnect = { code: 4000, reason: "come back" };
    await bench.server.api("disconnect", { user: bench.user, disconnect });
    const context = await journal.next("connecting");
    assert.deepEqual([context.code, context.reason], [4000, "come back"]);
    await journal.next("connected");
  },

  async "a server that shuts down notifies its clients, which reconnect"(bench) {
    const { startServer } = await import("../support/server.mjs");
    const server = await startServer();
    try {
      const { journal } = await bench.connected({ url: server.url });
      server.drain();
      const { code, reason } = await journal.next("connecting", ({ code }) => code !== 0);
      assert.deepEqual([code, reason], [3001, "shutdown"]);
    } finally {
      await server.stop();
    }
  },
});
