// Pings in both directions. The server pings once a second and waits a second for the answer, or
// longer where the client is to notice first that nothing arrives.

import assert from "node:assert/strict";
import { startProxy } from "../support/proxy.mjs";
import { overEveryTransport } from "../support/suite.mjs";

overEveryTransport({
  async "an idle client stays connected because it answers pings"(bench) {
    const { client, journal } = await bench.connected();
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    assert.deepEqual(journal.names(), ["connecting", "connected"]);
    await client.presenceStats(bench.channel("open")).catch(() => {});
    assert.equal(client.state, "connected");
  },
});

overEveryTransport(
  {
    async "a client that receives nothing more reconnects"(bench) {
      const proxy = await startProxy(bench.server.url);
      try {
        const { journal } = await bench.connected({ url: proxy.url, maxServerPingDelay: 500 });
        proxy.swallow();
        const { reason } = await journal.next("connecting", ({ code }) => code !== 0);
        assert.equal(reason, "no ping");
        await journal.next("connected");
      } finally {
        proxy.stop();
      }
    },
  },
  { LINERATE_CLIENT_PONG_TIMEOUT_S: "60" },
);
