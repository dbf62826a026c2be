// The npm package against the real server, in Node.js and in Chromium.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import WebSocket from "ws";
import * as linerate from "../../dist/assets/linerate.js";
import * as scenarios from "./client-scenarios.mjs";
import { openPage, startBrowser, startServer } from "./support.mjs";

const SECRET = "the secret key of this test";
const GUARDED = { LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY: SECRET };

let chromium, page, server;

before(async () => {
  server = await startServer();
  chromium = await startBrowser();
  ({ page } = await openPage(chromium.browser, `${server.url}/logs`));
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

/** Sockets that the test can close abruptly, like a cut cable. */
function cuttable() {
  let socket;
  class CuttableSocket extends WebSocket {
    constructor(...address) {
      super(...address);
      socket = this;
    }
  }
  return { cut: () => socket.terminate(), options: { environment: { WebSocket: CuttableSocket } } };
}

const PLACES = {
  "Node.js over WebSocket": (scenario, channel) =>
    scenario({
      linerate,
      url: server.url,
      options: { environment: { WebSocket } },
      channel,
      cutNow: cuttable(),
    }),
  "Node.js over HTTP streaming": (scenario, channel) =>
    scenario({
      linerate,
      url: server.url,
      options: { transports: ["http_stream"] },
      channel,
      cutNow: abortable(),
    }),
  "Chromium over WebSocket": (scenario, channel) => inChromium(scenario, channel, ["websocket"]),
  "Chromium over HTTP streaming": (scenario, channel) =>
    inChromium(scenario, channel, ["http_stream"]),
};

/** Streams that the test can end abruptly, like a cut cable. */
function abortable() {
  let abort;
  const fetch = (url, init) => {
    if (!String(url).endsWith("/connection/http_stream")) {
      return globalThis.fetch(url, init);
    }
    abort = new AbortController();
    return globalThis.fetch(url, { ...init, signal: AbortSignal.any([init.signal, abort.signal]) });
  };
  return { cut: () => abort.abort(), options: { environment: { fetch } } };
}

/** Runs a scenario in the page, which receives it as text. */
function inChromium(scenario, channel, transports) {
  return page.evaluate(`(async () => {
    const linerate = await import("/assets/linerate.js");
    const abortable = ${abortable};
    let socket;
    class CuttableSocket extends WebSocket {
      constructor(...address) {
        super(...address);
        socket = this;
      }
    }
    const sockets = {
      cut: () => socket.close(),
      options: { environment: { WebSocket: CuttableSocket } },
    };
    const cutNow = ${JSON.stringify(transports)}[0] === "websocket" ? sockets : abortable();
    return (${scenario})({
      linerate,
      url: "",
      options: { transports: ${JSON.stringify(transports)} },
      channel: ${JSON.stringify(channel)},
      cutNow,
    });
  })()`);
}

let channels = 0;

/** Tests one scenario in each place where the client runs. */
function everywhere(name, scenario, check, places = Object.keys(PLACES)) {
  for (const place of places) {
    test(`${name}, in ${place}`, { timeout: 60_000 }, async () => {
      channels += 1;
      check(await PLACES[place](scenario, `demo:test-${channels}`), place);
    });
  }
}

everywhere("publications arrive as published", scenarios.publications, (result, place) => {
  const { transport, sent, called, batched, iterated } = result;
  assert.equal(transport, place.endsWith("WebSocket") ? "websocket" : "http_stream");
  assert.deepEqual([called, batched, iterated], [sent, sent, sent]);
});

everywhere(
  "bytes arrive unchanged",
  scenarios.binary,
  (bytes) =>
    assert.deepEqual(
      bytes,
      Array.from({ length: 256 }, (_, i) => i),
    ),
  ["Node.js over WebSocket", "Chromium over WebSocket"],
);

everywhere("presence and history are answered", scenarios.presenceAndHistory, (result) => {
  assert.deepEqual(result, {
    joins: true,
    leaves: true,
    isPresent: true,
    stats: { clients: 2, users: 1 },
    all: [1, 2, 3],
    newest: [3],
    since: [2, 3],
  });
});

everywhere("the server filters, batches and conflates", scenarios.filterBatchConflate, (result) => {
  assert.deepEqual(result.filtered, [6, 8, 10]);
  assert.deepEqual(result.batched.flat(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.ok(result.batched.length <= 3, `${result.batched.length} batches of ten publications`);
  assert.equal(result.latest.flat().at(-1), 10);
  assert.ok(result.latest.every((batch) => batch.length === 1));
  assert.deepEqual(result.latestOfKeys.flat().slice(-2), [9, 10]);
  assert.ok(result.latestOfKeys.every((batch) => batch.length <= 2));
});

everywhere("an invalid filter is refused", scenarios.badFilter, ({ code, reason, state }) => {
  assert.equal(code, 107, reason);
  assert.equal(state, "connected");
});

everywhere("a lost connection causes no loss", scenarios.recovery, ({ seen, gaps, recovered }) => {
  assert.deepEqual(
    seen,
    Array.from({ length: 90 }, (_, i) => i + 1),
  );
  assert.deepEqual(gaps, []);
  assert.ok(recovered.length >= 2 && recovered.slice(1).every((one) => one === true));
});

test(
  "a restarted server causes a gap, and the subscription continues",
  { timeout: 60_000 },
  async (t) => {
    const first = await startServer();
    t.after(() => first.stop());
    const options = { environment: { WebSocket }, reconnectFirstMs: 100, reconnectLongestMs: 200 };
    const client = linerate.connect(first.url, options);
    t.after(() => client.close());
    const subscription = client.subscribe("demo:restart");
    const told = [];
    subscription.on("gap", ({ cause }) => told.push(cause));
    subscription.on("publication", (publication) => told.push(publication.json()));
    await new Promise((resolve) => subscription.on("subscribed", resolve));
    await client.publish("demo:restart", 1);
    // The answer may arrive before the publication.
    await until(() => told.at(-1) === 1);
    await first.kill();
    const again = new Promise((resolve) => subscription.on("subscribed", resolve));
    const second = await startServer({ port: new URL(first.url).port });
    t.after(() => second.stop());
    assert.equal((await again).recovered, false);
    await client.publish("demo:restart", 2);
    await until(() => told.at(-1) === 2);
    assert.deepEqual(told, [1, "recovery", 2]);
  },
);

test(
  "the client reconnects after a server closes the connection",
  { timeout: 60_000 },
  async (t) => {
    const first = await startServer();
    const client = linerate.connect(first.url, {
      environment: { WebSocket },
      reconnectFirstMs: 100,
    });
    t.after(() => client.close());
    await new Promise((resolve) => client.on("connected", resolve));
    const cut = new Promise((resolve) => client.on("connecting", resolve));
    await first.stop();
    const { code } = await cut;
    assert.ok(code === 3001 || code === 1001 || code === 1012, `closed with ${code}`);
    assert.equal(client.state, "connecting");
  },
);

test(
  "a token is requested and refreshed, and its channels are subscribed",
  { timeout: 60_000 },
  async (t) => {
    const guarded = await startServer({ environment: GUARDED });
    t.after(() => guarded.stop());
    let asked = 0;
    const token = () => {
      asked += 1;
      return tokenOf({ sub: "u1", channels: ["user:u1"], exp: secondsFromNow(3) });
    };
    const client = linerate.connect(guarded.url, { environment: { WebSocket }, token });
    t.after(() => client.close());
    const cuts = [];
    const subscribed = new Promise((resolve) => client.on("subscription", resolve));
    await new Promise((resolve) => client.on("connected", resolve));
    client.on("connecting", ({ reason }) => cuts.push(reason));
    assert.equal((await subscribed).channel, "user:u1");
    while (asked < 3) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.deepEqual(cuts, [], "refreshed without a new connection");

    const secret = client.subscribe("secret");
    const refused = await new Promise((resolve) => secret.on("unsubscribed", resolve));
    assert.equal(refused.code, 103);
    const allowed = client.subscribe("secret", {
      token: (channel) => tokenOf({ sub: "u1", channel, exp: secondsFromNow(60) }),
    });
    await new Promise((resolve) => allowed.on("subscribed", resolve));
  },
);

test("an invalid token is final", { timeout: 60_000 }, async (t) => {
  const guarded = await startServer({ environment: GUARDED });
  t.after(() => guarded.stop());
  for (const token of ["none", tokenOf({ sub: "u1" }, "another key entirely")]) {
    const client = linerate.connect(guarded.url, { environment: { WebSocket }, token });
    const { code } = await new Promise((resolve) => client.on("disconnected", resolve));
    assert.equal(code, 3500);
  }
});

/** Subscribes, publishes, and returns the transport and what was received. */
async function throughTheWall({ linerate, url, options }) {
  const client = linerate.connect(url, options);
  const subscription = client.subscribe("demo:blocked");
  await new Promise((resolve) => subscription.on("subscribed", resolve));
  const arrived = subscription[Symbol.asyncIterator]().next();
  await client.publish("demo:blocked", "through the wall");
  const heard = (await arrived).value.json();
  const { transport } = client;
  client.close();
  return { transport, heard };
}

const EXPECTED = { transport: "http_stream", heard: "through the wall" };

test("where WebSocket is blocked, Node.js streams over HTTP", { timeout: 60_000 }, async (t) => {
  const proxy = await startBlockingProxy(server.url);
  t.after(() => proxy.stop());
  const options = { environment: { WebSocket } };
  assert.deepEqual(await throughTheWall({ linerate, url: proxy.url, options }), EXPECTED);
  assert.ok(proxy.refused > 0, "it tried WebSocket first");
});

test("where WebSocket is blocked, Chromium streams over HTTP", { timeout: 60_000 }, async (t) => {
  const proxy = await startBlockingProxy(server.url);
  t.after(() => proxy.stop());
  const behind = await openPage(chromium.browser, `${proxy.url}/logs`);
  t.after(() => behind.page.close());
  const found = await behind.page.evaluate(`(async () => {
    const linerate = await import("/assets/linerate.js");
    return (${throughTheWall})({ linerate, url: "", options: {} });
  })()`);
  assert.deepEqual(found, EXPECTED);
  assert.ok(proxy.refused > 0, "it tried WebSocket first");
});

/** Starts a proxy that forwards HTTP and refuses every upgrade, as some corporate proxies do. */
async function startBlockingProxy(target) {
  const proxy = createServer((incoming, outgoing) => {
    const { method, headers } = incoming;
    const onward = request(new URL(incoming.url, target), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  let refused = 0;
  proxy.on("upgrade", (_request, socket) => {
    refused += 1;
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const stop = () => {
    proxy.closeAllConnections();
    proxy.close();
  };
  return {
    url: `http://127.0.0.1:${proxy.address().port}`,
    stop,
    get refused() {
      return refused;
    },
  };
}

/** Waits until `check` returns true; the test's timeout bounds the wait. */
async function until(check) {
  while (!check()) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Returns a token (JWT) with these claims. */
function tokenOf(claims, secret = SECRET) {
  const encode = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  const signature = createHmac("sha256", secret).update(signed).digest("base64url");
  return `${signed}.${signature}`;
}

function secondsFromNow(seconds) {
  return Math.floor(Date.now() / 1_000) + seconds;
}
