// Presence, joins and leaves.

import assert from "node:assert/strict";
import { overEveryTransport } from "../support/suite.mjs";
import { connectionToken } from "../support/tokens.mjs";

overEveryTransport({
  async "presence lists all subscribed clients"(bench) {
    const info = { name: "Ann" };
    const token = connectionToken("ann", { info });
    const ann = await bench.connected({ token });
    const bob = await bench.connected({ user: "bob" });
    const again = await bench.connected({ user: "bob" });
    const channel = bench.channel("open");
    for (const { client } of [ann, bob, again]) {
      await bench.subscribed(client, channel);
    }
    const { clients } = await ann.client.presence(channel);
    const users = Object.values(clients).map(({ user }) => user);
    assert.deepEqual(users.sort(), ["ann", "bob", "bob"]);
    const [first] = Object.values(clients).filter(({ user }) => user === "ann");
    assert.deepEqual(bench.transport.decode(first.connInfo), info);
    assert.equal(
      Object.keys(clients).find((id) => clients[id] === first),
      first.client,
    );
    const { numClients, numUsers } = await bob.client.presenceStats(channel);
    assert.deepEqual([numClients, numUsers], [3, 2]);
  },

  async "joins and leaves are reported to others"(bench) {
    const { client } = await bench.connected({ user: "ann" });
    const channel = bench.channel("open");
    const { journal } = await bench.subscribed(client, channel, { joinLeave: true });
    const bob = await bench.connected({ user: "bob" });
    const { subscription } = await bench.subscribed(bob.client, channel);
    const isBob = ({ info }) => info.user === "bob";
    const { info } = await journal.next("join", isBob);
    subscription.unsubscribe();
    assert.equal((await journal.next("leave", isBob)).info.client, info.client);
    subscription.subscribe();
    await journal.next("join", isBob);
    bob.client.disconnect();
    await journal.next("leave", isBob);
    const { numClients } = await client.presenceStats(channel);
    assert.equal(numClients, 1);
  },

  async "a channel without presence reports this"(bench) {
    const { client } = await bench.connected();
    const channel = bench.channel("live");
    await bench.subscribed(client, channel);
    await assert.rejects(client.presence(channel), ({ code }) => [103, 108].includes(code));
  },
});
