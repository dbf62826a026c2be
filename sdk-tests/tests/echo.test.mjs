// Laravel Echo, which uses the client library of Pusher.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import Echo from "laravel-echo";
import Pusher from "pusher-js";
import { Journal } from "../support/journal.mjs";
import { backend, options, startApp } from "../support/pusher.mjs";

let server;
let echoes = [];
before(async () => (server = await startApp()));
after(() => server.stop());
afterEach(() => {
  echoes.forEach((echo) => echo.disconnect());
  echoes = [];
});

function connect(user) {
  const more = options(server.url, { user });
  const echo = new Echo({ broadcaster: "pusher", key: "app-key", Pusher, ...more });
  echoes.push(echo);
  return echo;
}

test("events of an application arrive", async () => {
  const echo = connect("ann");
  const channel = echo.private("orders.1");
  const on = (name, listen) =>
    name === "subscribed" ? channel.subscribed(listen) : channel.listen(name, listen);
  const journal = new Journal({ on }, ["subscribed", "OrderShipped"]);
  await journal.next("subscribed");
  await backend(server).trigger("private-orders.1", "App\\Events\\OrderShipped", { order: 1 });
  assert.deepEqual(await journal.next("OrderShipped"), { order: 1 });
});

test("users join, leave and whisper", async () => {
  const join = (user) => {
    const channel = connect(user).join("chat.1");
    const on = (name, listen) =>
      name === "typing" ? channel.listenForWhisper(name, listen) : channel[name](listen);
    return { channel, journal: new Journal({ on }, ["here", "joining", "leaving", "typing"]) };
  };
  const ann = join("ann");
  assert.deepEqual(await ann.journal.next("here"), [{ name: "ann" }]);
  const bob = join("bob");
  assert.equal((await bob.journal.next("here")).length, 2);
  assert.deepEqual(await ann.journal.next("joining"), { name: "bob" });
  bob.channel.whisper("typing", { at: 1 });
  assert.deepEqual(await ann.journal.next("typing"), { at: 1 });
  echoes[1].leave("chat.1");
  assert.deepEqual(await ann.journal.next("leaving"), { name: "bob" });
});
