// Two nodes on one broker serve the same topics of Phoenix.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { BROKERS, missing, startBroker } from "../support/brokers.mjs";
import { within } from "../support/journal.mjs";
import { close, connect, join, joined, presence, startPhoenix } from "../support/phoenix.mjs";
import { startProxy } from "../support/proxy.mjs";
import { connectionToken } from "../support/tokens.mjs";

for (const broker of BROKERS) {
  describe(broker.name, { skip: missing(broker) }, () => {
    let started;
    let nodes;
    before(async () => {
      started = await startBroker(broker);
      const environment = { LINERATE_BROKER_URL: started.url };
      nodes = await Promise.all([startPhoenix(environment), startPhoenix(environment)]);
      await Promise.all(nodes.map((node) => node.untilNodes(nodes.length)));
    });
    after(async () => {
      await Promise.all(nodes.map((node) => node.stop()));
      await started.stop();
    });
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
      const dying = await startPhoenix({ LINERATE_BROKER_URL: started.url });
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
}
