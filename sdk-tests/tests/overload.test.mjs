// A server that is short of memory disconnects the clients that use most of it.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { startProxy } from "../support/proxy.mjs";
import { overEveryTransport } from "../support/suite.mjs";

/** Small enough for bodies to fill it, and large enough for the publications missed meanwhile. */
const ENVIRONMENT = {
  LINERATE_CLIENT_PING_INTERVAL_S: "60",
  LINERATE_HISTORY_CHANNEL_BYTES_MAX: "8388608",
  LINERATE_SERVER_MEMORY_BYTES_MAX: "33554432",
};

/**
 * Bodies of 256 KiB that never end. Each takes less memory than the client that does not read,
 * which is therefore disconnected first.
 */
const BODIES = 108;
const BODY_BYTES = 1 << 18;

/** Slightly longer than the server is short of memory before it disconnects clients. */
const SHORT_MS = 4_000;

/** Publications of 60 KB: more in total than kernels buffer for a client that does not read. */
const COUNT = 90;

function hoard(url) {
  const { hostname, port } = new URL(url);
  return Array.from({ length: BODIES }, () => {
    const socket = connect(port, hostname);
    socket.on("error", () => {});
    socket.write(
      `POST /api/publish HTTP/1.1\r\nHost: localhost\r\nX-API-Key: the key of the sdk tests\r\n` +
        `Content-Length: ${BODY_BYTES}\r\n\r\n`,
    );
    socket.write(" ".repeat(BODY_BYTES - 1));
    return socket;
  });
}

overEveryTransport(
  {
    async "a client disconnected with 3011 reconnects and misses nothing"(bench) {
      const proxy = await startProxy(bench.server.url);
      let bodies = [];
      try {
        const { client, journal: journalOfClient } = await bench.connected({ url: proxy.url });
        const channel = bench.channel("open");
        const { journal } = await bench.subscribed(client, channel);
        proxy.stall();
        const filler = "x".repeat(60_000);
        const numbers = Array.from({ length: COUNT }, (_, index) => index);
        await bench.server.publish(channel, ...numbers.map((number) => [number, filler]));
        bodies = hoard(bench.server.url);
        await pause(SHORT_MS);
        proxy.flow();
        const { code } = await journalOfClient.next("connecting", ({ code }) => code !== 0);
        assert.equal(code, 3011);
        bodies.forEach((socket) => socket.destroy());
        await journalOfClient.next("connected");
        const { recovered } = await journal.next("subscribed");
        assert.ok(recovered);
        await bench.server.publish(channel, ["last"]);
        const isLast = ({ data }) => bench.transport.decode(data)[0] === "last";
        await journal.next("publication", isLast);
        const contexts = journal.all("publication");
        const seen = contexts.map(({ data }) => bench.transport.decode(data)[0]);
        assert.deepEqual(seen, [...numbers, "last"]);
      } finally {
        bodies.forEach((socket) => socket.destroy());
        proxy.stop();
      }
    },
  },
  ENVIRONMENT,
);
