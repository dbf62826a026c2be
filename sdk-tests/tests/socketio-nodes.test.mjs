// Two nodes on one broker serve the same rooms of Socket.IO.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { onTwoNodes } from "../support/nodes.mjs";
import { startProxy } from "../support/proxy.mjs";
import { close, connected, startSocketIo } from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

const auth = { token: connectionToken("ann", { channels: ["news"] }) };

onTwoNodes(startSocketIo, ({ nodes, startNode }) => {
  afterEach(close);

  test("an event reaches the room on all nodes, with its name and its bytes", async () => {
    const [here, there] = await Promise.all(nodes.map(({ url }) => connected(url, auth)));
    await nodes[0].api("publish", { channel: "news", data: 1, tags: { event: "created" } });
    await nodes[1].api("publish", { channel: "news", b64data: "/wA=" });
    for (const { journal } of [here, there]) {
      assert.deepEqual(await journal.next("created"), [1]);
      assert.deepEqual(await journal.next("message"), Buffer.from([0xff, 0]));
    }
    await nodes[0].publish(there.socket.id, "to one");
    assert.equal(await there.journal.next("message"), "to one");
    assert.equal(here.journal.all("message").length, 1);
  });

  test("the clients of a node that dies continue on the other one", async () => {
    const dying = await startNode();
    const proxy = await startProxy(dying.url);
    try {
      const { socket, journal } = await connected(proxy.url, auth);
      const { id } = socket;
      proxy.lead(nodes[0].url);
      await dying.stop();
      assert.match(await journal.next("disconnect"), /^transport/);
      await journal.next("connect");
      assert.notEqual(socket.id, id);
      await nodes[1].publish("news", "again");
      assert.equal(await journal.next("message"), "again");
    } finally {
      proxy.stop();
    }
  });
});
