// Revoked tokens: SDKs get new ones, or stop.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { overEveryTransport } from "../support/suite.mjs";
import { connectionToken, subscriptionToken } from "../support/tokens.mjs";

/** Several times the longest pause between two attempts to connect. */
const LONG_MS = 1_000;

/** The reason with which SDKs report that they cannot get a token. */
const UNAUTHORIZED = 1;

let number = 0;

/** Returns claims by which a token can be revoked, and the matching revocation. */
function revocable(bench) {
  const jti = `token-${++number}`;
  return [{ jti }, () => bench.server.api("revoke_token", { uid: jti })];
}

/** Returns a function that creates valid tokens, and the number of its calls. */
function maker(make) {
  const asked = [];
  const getToken = async () => {
    asked.push(1);
    return make();
  };
  return [getToken, asked];
}

overEveryTransport({
  async "a client whose token is revoked reconnects with another and misses nothing"(bench) {
    const [claims, revoke] = revocable(bench);
    const [getToken, asked] = maker(() => connectionToken(bench.user));
    const token = connectionToken(bench.user, claims);
    const { client, journal } = await bench.connected({ token, getToken });
    const channel = bench.channel("open");
    const { journal: publications } = await bench.subscribed(client, channel);
    await bench.server.publish(channel, 1);
    assert.deepEqual(await bench.payloads(publications, 1), [1]);
    await revoke();
    const { code, reason } = await journal.next("connecting", ({ code }) => code !== 0);
    assert.deepEqual([code, reason], [3005, "token revoked"]);
    await bench.server.publish(channel, 2);
    await journal.next("connected");
    const { recovered } = await publications.next("subscribed");
    assert.ok(recovered);
    assert.deepEqual(await bench.payloads(publications, 1), [2]);
    assert.equal(asked.length, 1);
  },

  async "a client whose token was revoked before connects with another"(bench) {
    const [claims, revoke] = revocable(bench);
    await revoke();
    const [getToken, asked] = maker(() => connectionToken(bench.user));
    const token = connectionToken(bench.user, claims);
    const { client, journal } = bench.client({ token, getToken });
    client.connect();
    await journal.next("connected");
    assert.equal(asked.length, 1);
  },

  async "without another token the client stops"(bench) {
    const [claims, revoke] = revocable(bench);
    const token = connectionToken(bench.user, claims);
    const { client, journal } = await bench.connected({ token });
    await revoke();
    assert.equal((await journal.next("disconnected")).code, UNAUTHORIZED);
    const told = journal.names();
    await pause(LONG_MS);
    assert.deepEqual(journal.names(), told, "it stays away");
    assert.equal(told.filter((name) => name === "connected").length, 1);
    client.connect();
    await journal.next("disconnected");
  },

  async "a subscription whose token is revoked is renewed with another"(bench) {
    const [claims, revoke] = revocable(bench);
    const channel = bench.channel("private");
    const [getToken, asked] = maker(() => subscriptionToken(bench.user, channel));
    const token = subscriptionToken(bench.user, channel, claims);
    const { client, journal: journalOfClient } = await bench.connected();
    const { journal } = await bench.subscribed(client, channel, { token, getToken });
    await revoke();
    const { code, reason } = await journal.next("subscribing", ({ code }) => code !== 0);
    assert.deepEqual([code, reason], [2501, "token revoked"]);
    await journal.next("subscribed");
    assert.equal(asked.length, 1);
    assert.deepEqual(journalOfClient.names(), ["connecting", "connected"]);
  },

  async "without another token the subscription ends"(bench) {
    const [claims, revoke] = revocable(bench);
    const channel = bench.channel("private");
    const token = subscriptionToken(bench.user, channel, claims);
    const { client, journal: journalOfClient } = await bench.connected();
    const { journal } = await bench.subscribed(client, channel, { token });
    await revoke();
    assert.equal((await journal.next("unsubscribed")).code, UNAUTHORIZED);
    const told = journal.names();
    await pause(LONG_MS);
    assert.deepEqual(journal.names(), told, "it stays away");
    assert.deepEqual(
      journalOfClient.names().filter((name) => name !== "error"),
      ["connecting", "connected"],
    );
  },
});
