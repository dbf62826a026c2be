import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionLost, ServerError, TimedOut } from "../../../client/src/linerate.js";
import { settled, World } from "./world.js";

test("a command waits for the connection", async () => {
  const world = new World();
  const client = world.client();
  const published = client.publish("a", { b: 1 });
  world.welcome();
  await settled();
  assert.deepEqual(world.socket.command("publish")["publish"], { channel: "a", data: { b: 1 } });
  world.socket.answer("publish");
  await published;
});

test("bytes are published as they are", async () => {
  const world = new World();
  const client = world.client();
  world.welcome();
  client.publish("a", Uint8Array.of(0, 255)).catch(() => {});
  await settled();
  assert.deepEqual(world.socket.command("publish")["publish"], { channel: "a", b64data: "AP8=" });
  client.close();
});

test("a call resolves with what the application returns", async () => {
  const world = new World();
  const client = world.client();
  world.welcome();
  const sum = client.rpc("sum", [1, 2]);
  await settled();
  assert.deepEqual(world.socket.command("rpc")["rpc"], { method: "sum", data: [1, 2] });
  world.socket.answer("rpc", { data: 3 });
  assert.equal(await sum, 3);
  const bytes = client.rpc("bytes");
  await settled();
  world.socket.answer("rpc", { b64data: "AP8=" });
  assert.deepEqual(await bytes, Uint8Array.of(0, 255));
  const nothing = client.rpc("nothing");
  await settled();
  world.socket.answer("rpc", {});
  assert.equal(await nothing, undefined);
});

test("a message waits for the connection and has no id", async () => {
  const world = new World();
  const client = world.client();
  const sent = client.send({ typing: true });
  world.welcome();
  await sent;
  assert.deepEqual(world.socket.sent.at(-1), { send: { data: { typing: true } } });
});

test("a command times out if there is no connection", async () => {
  const world = new World();
  const client = world.client({ requestTimeoutMs: 1_000 });
  const published = assert.rejects(client.publish("a", 1), TimedOut);
  world.advance(1_000);
  await published;
});

test("a command without an answer times out, and a late answer is dropped", async () => {
  const world = new World();
  const client = world.client({ requestTimeoutMs: 1_000 });
  world.welcome();
  const published = assert.rejects(client.publish("a", 1), /no answer to publish within 1000 ms/);
  await settled();
  world.advance(1_000);
  await published;
  world.socket.answer("publish");
});

test("a command rejects if the connection is lost", async () => {
  const world = new World();
  const client = world.client();
  world.welcome();
  const published = assert.rejects(client.publish("a", 1), ConnectionLost);
  await settled();
  world.socket.cut();
  await published;
});

test("a closed client rejects commands at once", async () => {
  const world = new World();
  const client = world.client();
  client.close();
  await assert.rejects(client.publish("a", 1), ConnectionLost);
});

test("the error of a refused command has the server's code", async () => {
  const world = new World();
  const client = world.client();
  world.welcome();
  const refused = client.publish("a", 1);
  await settled();
  world.socket.refuse("publish", 103, "permission denied");
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof ServerError);
    assert.deepEqual(
      [error.code, error.message, error.temporary],
      [103, "permission denied", false],
    );
    return true;
  });
});

test("answers are matched to commands in any order", async () => {
  const world = new World();
  const client = world.client();
  world.welcome();
  const [history, stats, presence] = [
    client.history("a", { limit: 2, reverse: true, since: { epoch: "e", offset: 4 } }),
    client.presenceStats("a"),
    client.presence("a"),
  ];
  await settled();
  assert.deepEqual(world.socket.command("history")["history"], {
    channel: "a",
    limit: 2,
    reverse: true,
    since: { epoch: "e", offset: 4 },
  });
  world.socket.answer("presence", { presence: { c1: { client: "c1", user: "u" } } });
  world.socket.answer("presence_stats", { num_clients: 2, num_users: 1 });
  world.socket.answer("history", {
    epoch: "e",
    offset: 5,
    publications: [{ data: { x: 1 }, offset: 5, tags: { k: "v" } }],
  });
  assert.deepEqual(await presence, [{ client: "c1", user: "u" }]);
  assert.deepEqual(await stats, { clients: 2, users: 1 });
  const { publications, position } = await history;
  assert.deepEqual(position, { epoch: "e", offset: 5 });
  assert.deepEqual(publications[0]?.json(), { x: 1 });
  assert.equal(publications[0]?.text(), '{"x":1}');
  assert.deepEqual(publications[0]?.tags, { k: "v" });
});
