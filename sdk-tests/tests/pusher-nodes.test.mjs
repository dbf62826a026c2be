// Two nodes on one broker are one app of Pusher.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { onTwoNodes } from "../support/nodes.mjs";
import { startProxy } from "../support/proxy.mjs";
import { backend, close, connect, follow, startApp, subscribed } from "../support/pusher.mjs";

onTwoNodes(startApp, ({ nodes, startNode }) => {
  afterEach(close);

  test("events have their names on all nodes, and their sender does not get them", async () => {
    const [here, there] = nodes.map((node) => connect(node.url));
    const [ours, theirs] = await Promise.all([
      subscribed(here.client, "private-a"),
      subscribed(there.client, "private-a"),
    ]);
    const socket_id = there.client.connection.socket_id;
    await backend(nodes[0]).trigger("private-a", "created", 1, { socket_id });
    await backend(nodes[1]).trigger("private-a", "created", 2);
    theirs.channel.trigger("client-typing", 3);
    await ours.journal.next("created", (data) => data === 1);
    await ours.journal.next("created", (data) => data === 2);
    assert.equal(await ours.journal.next("client-typing"), 3);
    assert.equal(await theirs.journal.next("created"), 2);
    ours.channel.trigger("client-typing", 4);
    assert.equal(await theirs.journal.next("client-typing"), 4);
    assert.deepEqual(theirs.journal.all("created"), [2]);
    assert.deepEqual(theirs.journal.all("client-typing"), [4]);
  });

  test("a presence channel has the users of all nodes", async () => {
    const ann = await subscribed(connect(nodes[0].url).client, "presence-a");
    const bob = connect(nodes[1].url, { user: "bob" });
    const there = await subscribed(bob.client, "presence-a");
    assert.equal(there.context.count, 2);
    const { id } = await ann.journal.next("pusher:member_added");
    assert.equal(id, "bob");
    const again = await subscribed(connect(nodes[1].url).client, "presence-a");
    assert.equal(again.context.count, 2);
    bob.client.disconnect();
    await ann.journal.next("pusher:member_removed");
    assert.deepEqual(there.journal.all("pusher:member_added"), []);
  });

  test("a cache channel has the last event of any node", async () => {
    await backend(nodes[0]).trigger("cache-a", "created", 1);
    const { journal } = follow(connect(nodes[1].url).client, "cache-a");
    assert.equal(await journal.next("created"), 1);
  });

  test("a channel has the subscriptions of all nodes, and not those of a node that dies", async () => {
    const isCount = (count) => (data) => data.subscription_count === count;
    const told = ({ journal }, count) => journal.next("pusher:subscription_count", isCount(count));
    const dying = await startNode();
    const ann = await subscribed(connect(nodes[0].url).client, "counted");
    await told(ann, 1);
    const bob = await subscribed(connect(nodes[1].url).client, "counted");
    await Promise.all([told(ann, 2), told(bob, 2)]);
    const { client } = connect(dying.url);
    const eve = await subscribed(client, "counted");
    await Promise.all([ann, bob, eve].map((one) => told(one, 3)));
    assert.equal(eve.channel.subscriptionCount, 3);
    await dying.stop();
    client.disconnect();
    await Promise.all([told(ann, 2), told(bob, 2)]);
    assert.equal(ann.channel.subscriptionCount, 2);
    const params = { info: "subscription_count" };
    const channel = await backend(nodes[1]).get({ path: "/channels/counted", params });
    assert.deepEqual(await channel.json(), { occupied: true, subscription_count: 2 });
  });

  test("the clients of a node that dies continue on the other one", async () => {
    const dying = await startNode();
    const proxy = await startProxy(dying.url);
    try {
      const { client, journal } = connect(proxy.url);
      await journal.next("connected");
      const following = await subscribed(client, "presence-b");
      proxy.lead(nodes[0].url);
      await dying.stop();
      await following.journal.next("pusher:subscription_succeeded");
      await backend(nodes[1]).trigger("presence-b", "created", 1);
      assert.equal(await following.journal.next("created"), 1);
    } finally {
      proxy.stop();
    }
  });
});
