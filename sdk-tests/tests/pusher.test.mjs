// The published client and server libraries of Pusher.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Journal } from "../support/journal.mjs";
import { startProxy } from "../support/proxy.mjs";
import { backend, close, connect, follow, startApp, subscribed } from "../support/pusher.mjs";

let server;
let trigger;
before(async () => {
  server = await startApp();
  const library = backend(server);
  trigger = (...parameters) => library.trigger(...parameters);
});
after(() => server.stop());
afterEach(close);

test("events of the backend reach public and private channels", async () => {
  const { client } = connect(server.url);
  const names = ["news", "private-news"];
  const channels = await Promise.all(names.map((name) => subscribed(client, name)));
  await trigger(names, "created", { id: 7, text: 'ü "\n' });
  for (const { journal } of channels) {
    assert.deepEqual(await journal.next("created"), { id: 7, text: 'ü "\n' });
  }
  const batch = [1, 2, 3].map((id) => ({ channel: "news", name: "created", data: { id } }));
  await backend(server).triggerBatch(batch);
  const events = await channels[0].journal.take("created", 3);
  assert.deepEqual(
    events.map(({ id }) => id),
    [1, 2, 3],
  );
});

test("publications of other publishers are events named message", async () => {
  const { client } = connect(server.url);
  const { journal } = await subscribed(client, "plain");
  await server.publish("plain", { price: 190 });
  assert.deepEqual(await journal.next("message"), { price: 190 });
});

test("only clients can read what is encrypted", async () => {
  const { client } = connect(server.url);
  const { journal } = await subscribed(client, "private-encrypted-a");
  await trigger("private-encrypted-a", "created", { secret: 1 });
  assert.deepEqual(await journal.next("created"), { secret: 1 });
});

test("a socket does not receive the event that it caused", async () => {
  const ann = connect(server.url);
  const bob = connect(server.url, { user: "bob" });
  const here = await subscribed(ann.client, "echoes");
  const there = await subscribed(bob.client, "echoes");
  await trigger("echoes", "created", 1, { socket_id: ann.client.connection.socket_id });
  await trigger("echoes", "created", 2);
  assert.deepEqual(await there.journal.take("created", 2), [1, 2]);
  assert.equal(await here.journal.next("created"), 2);
  assert.deepEqual(here.journal.all("created"), [2]);
});

test("users see who is in a presence channel, each of them once", async () => {
  const name = "presence-room";
  const ann = await subscribed(connect(server.url).client, name);
  assert.deepEqual(ann.context.me, { id: "ann", info: { name: "ann" } });
  const bob = connect(server.url, { user: "bob" });
  const again = connect(server.url, { user: "bob" });
  const { context } = await subscribed(bob.client, name);
  assert.equal(context.count, 2);
  assert.deepEqual(await ann.journal.next("pusher:member_added"), {
    id: "bob",
    info: { name: "bob" },
  });
  await subscribed(again.client, name);
  const users = await backend(server).get({ path: `/channels/${name}/users` });
  assert.deepEqual(await users.json(), { users: [{ id: "ann" }, { id: "bob" }] });
  const params = { filter_by_prefix: "presence-", info: "user_count,subscription_count" };
  const channels = await backend(server).get({ path: "/channels", params });
  assert.deepEqual(await channels.json(), {
    channels: { [name]: { subscription_count: 3, user_count: 2 } },
  });
  bob.client.disconnect();
  await pause(100);
  again.client.unsubscribe(name);
  assert.equal((await ann.journal.next("pusher:member_removed")).id, "bob");
  assert.equal(ann.journal.all("pusher:member_added").length, 1);
  assert.equal(ann.journal.all("pusher:member_removed").length, 1);
  assert.equal(ann.channel.members.count, 1);
});

test("subscribers know how many there are", async () => {
  const ann = await subscribed(connect(server.url).client, "private-counted");
  assert.deepEqual(await ann.journal.next("pusher:subscription_count"), { subscription_count: 1 });
  const other = connect(server.url);
  const bob = await subscribed(other.client, "private-counted");
  for (const { journal, channel } of [ann, bob]) {
    assert.deepEqual(await journal.next("pusher:subscription_count"), { subscription_count: 2 });
    assert.equal(channel.subscriptionCount, 2);
  }
  other.client.disconnect();
  assert.deepEqual(await ann.journal.next("pusher:subscription_count"), { subscription_count: 1 });
});

test("client events reach everyone else, with the user in presence channels", async () => {
  const ann = await subscribed(connect(server.url).client, "presence-typing");
  const bob = await subscribed(connect(server.url, { user: "bob" }).client, "presence-typing");
  bob.channel.trigger("client-typing", { at: 1 });
  const { data, metadata } = await ann.journal.next("client-typing");
  assert.deepEqual([data, metadata.user_id], [{ at: 1 }, "bob"]);
  ann.channel.trigger("client-typing", "text");
  assert.equal((await bob.journal.next("client-typing")).data, "text");
  assert.equal(bob.journal.all("client-typing").length, 1);
});

test("a cache channel begins with its last event", async () => {
  const { client } = connect(server.url);
  const { journal } = await subscribed(client, "private-cache-a");
  await journal.next("pusher:cache_miss");
  await trigger("private-cache-a", "created", 1);
  await trigger("private-cache-a", "created", 2);
  assert.deepEqual(await journal.take("created", 2), [1, 2]);
  const late = follow(connect(server.url).client, "private-cache-a");
  assert.equal(await late.journal.next("created"), 2);
  assert.deepEqual(late.journal.all("pusher:cache_miss"), []);
});

test("a user gets events, and the backend ends the connections of the user", async () => {
  const { client, journal } = connect(server.url, { user: "ann@example.com" });
  const user = new Journal({ on: (...binding) => client.user.bind(...binding) }, ["created"]);
  client.signin();
  await client.user.signinDonePromise;
  // The client subscribes to the events of the user after it has signed in.
  await pause(200);
  await backend(server).sendToUser("ann@example.com", "created", { id: 1 });
  assert.deepEqual(await user.next("created"), { id: 1 });
  await backend(server).terminateUserConnections("ann@example.com");
  const { data } = await journal.next("error");
  assert.equal(data.code, 4009);
  await journal.next("disconnected");
});

test("a client with another key does not connect, and does not try again", async () => {
  const { journal } = connect(server.url, { key: "other" });
  const { error } = await journal.next("error");
  assert.equal(error.data.code, 4001);
  await pause(300);
  assert.deepEqual(journal.all("connected"), []);
});

test("a wrong signature is the error of the subscription", async () => {
  const refuse = ({ socketId }, callback) =>
    callback(null, backend(server).authorizeChannel(socketId, "private-other"));
  const { client } = connect(server.url, { channelAuthorization: { customHandler: refuse } });
  const { journal } = follow(client, "private-a");
  assert.equal((await journal.next("pusher:subscription_error")).status, 401);
});

test("after a lost connection a client subscribes again", async () => {
  const proxy = await startProxy(server.url);
  try {
    const { client, journal } = connect(proxy.url);
    await journal.next("connected");
    const following = await subscribed(client, "presence-lost");
    proxy.cut();
    proxy.mend();
    await following.journal.next("pusher:subscription_succeeded");
    await trigger("presence-lost", "created", 1);
    assert.equal(await following.journal.next("created"), 1);
  } finally {
    proxy.stop();
  }
});

test("the clients of a server that stops move to another one at once", async () => {
  const stopping = await startApp();
  const proxy = await startProxy(stopping.url);
  try {
    const { client, journal } = connect(proxy.url);
    await journal.next("connected");
    const following = await subscribed(client, "moving");
    proxy.lead(server.url);
    stopping.drain();
    await following.journal.next("pusher:subscription_succeeded");
    await trigger("moving", "created", 1);
    assert.equal(await following.journal.next("created"), 1);
  } finally {
    proxy.stop();
    await stopping.stop();
  }
});
