// Two nodes on one broker serve the same topics of Phoenix.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { onTwoNodes } from "../support/nodes.mjs";
import { within } from "../support/journal.mjs";
import { close, connect, join, joined, presence, startPhoenix } from "../support/phoenix.mjs";
import { startProxy } from "../support/proxy.mjs";
import { connectionToken } from "../support/tokens.mjs";

onTwoNodes(startPhoenix, ({ nodes, startNode }) => {
  afterEach(close);

  test("an event reaches the topic on all nodes, with its name and its bytes", async () => {
    const sockets = nodes.map(({ url }) => connect(url, connectionToken("ann")).socket);
    const channels = await Promise.all(sockets.map((one) => joined(one, "shared:phoenix")));
    const tags = { event: "created" };
    await nodes[0].api("publish", { channel: "shared:phoenix", data: { id: 1 }, tags });
    await nodes[1].api("publish", { channel: "shared:phoenix", b64data: "/wA=" });
    for (const { journal } of channels) {
      assert.deepEqual(await journal.next("created"), { id: 1 });
      const bytes = await journal.next("message");
      assert.deepEqual(Buffer.from(bytes), Buffer.from([0xff, 0]));
    }
  });

  test("clients see who is there on the other node", async () => {
    const [here, there] = nodes.map(({ url }, index) => {
      const { socket } = connect(url, connectionToken(["ann", "bob"][index]));
      return join(socket, "shared:presence").channel;
    });
    const all = [presence(here), presence(there)];
    for (const { until } of all) {
      await within(until(["ann 1", "bob 1"]), "both users");
    }
    there.leave();
    await within(all[0].until(["ann 1"]), "that bob leaves");
  });

  test("the clients of a node that dies join again on the other one", async () => {
    const dying = await startNode();
    const proxy = await startProxy(dying.url);
    try {
      const { socket, journal } = connect(proxy.url, connectionToken("ann"));
      const room = await joined(socket, "shared:again");
      proxy.lead(nodes[0].url);
      await dying.stop();
      await journal.next("close");
      await room.journal.next("error");
      await room.journal.next("joined");
      await nodes[1].publish("shared:again", { text: "again" });
      assert.deepEqual(await room.journal.next("message"), { text: "again" });
    } finally {
      proxy.stop();
    }
  });
});
