// Two nodes on one broker serve the same rooms of Socket.IO.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { BROKERS, missing, startBroker } from "../support/brokers.mjs";
import { startProxy } from "../support/proxy.mjs";
import { close, connected, startSocketIo } from "../support/socketio.mjs";
import { connectionToken } from "../support/tokens.mjs";

const auth = { token: connectionToken("ann", { channels: ["news"] }) };

for (const broker of BROKERS) {
  describe(broker.name, { skip: missing(broker) }, () => {
    let started;
    let nodes;
    before(async () => {
      started = await startBroker(broker);
      const environment = { LINERATE_BROKER_URL: started.url };
      nodes = await Promise.all([startSocketIo(environment), startSocketIo(environment)]);
      await Promise.all(nodes.map((node) => node.untilNodes(nodes.length)));
    });
    after(async () => {
      await Promise.all(nodes.map((node) => node.stop()));
      await started.stop();
    });
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
      const dying = await startSocketIo({ LINERATE_BROKER_URL: started.url });
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
}
