// HTTP streaming over real HTTP, with a server that the test controls.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Client, type ClientOptions } from "../../../client/src/linerate.js";

interface Exchange {
  path: string;
  body: string;
  response: ServerResponse;
}

/** Starts a server; `next` returns the requests in order of arrival. */
async function startServer(t: TestContext) {
  const waiting: ((exchange: Exchange) => void)[] = [];
  const come: Exchange[] = [];
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const exchange = { path: request.url ?? "", body, response };
      const reader = waiting.shift();
      if (reader === undefined) {
        come.push(exchange);
      } else {
        reader(exchange);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const next = () => {
    const exchange = come.shift();
    return exchange === undefined
      ? new Promise<Exchange>((resolve) => waiting.push(resolve))
      : Promise.resolve(exchange);
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/prefix`, next };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
  }
  return body;
}

function startClient(t: TestContext, url: string, options: ClientOptions = {}): Client {
  const client = new Client(url, { transports: ["http_stream"], ...options });
  t.after(() => client.close());
  client.connect();
  return client;
}

const WELCOME = '{"id":1,"connect":{"client":"c1","session":"s1","node":"n1"}}\n';

test("replies stream in one response, and commands are posted to the session", async (t) => {
  const server = await startServer(t);
  const client = startClient(t, server.url, { token: "t" });
  const stream = await server.next();
  assert.equal(stream.path, "/prefix/connection/http_stream");
  assert.deepEqual(JSON.parse(stream.body), { id: 1, connect: { name: "js", token: "t" } });
  stream.response.write(WELCOME);

  const published = client.publish("a", "ü");
  const command = await server.next();
  assert.equal(command.path, "/prefix/emulation");
  const { session, node, data } = JSON.parse(command.body) as Record<string, string>;
  assert.deepEqual([session, node], ["s1", "n1"]);
  assert.deepEqual(JSON.parse(data ?? ""), { id: 2, publish: { channel: "a", data: "ü" } });
  command.response.end();
  stream.response.write('{"id":2,"publish":{}}\n');
  await published;
  assert.equal(client.transport, "http_stream");
});

test("messages are assembled however they are split", async (t) => {
  const server = await startServer(t);
  const client = startClient(t, server.url);
  const stream = await server.next();
  stream.response.write(WELCOME);
  const publications = client.subscribe("a")[Symbol.asyncIterator]();
  const command = await server.next();
  command.response.end();
  const text =
    '{"id":2,"subscribe":{}}\n' +
    '{"push":{"channel":"a","pub":{"data":"äöü €"}}}\n\n' +
    '{"push":{"channel":"a","pub":{"data":{"n":2}}}}\n';
  for (const byte of Buffer.from(text)) {
    stream.response.write(Buffer.of(byte));
  }
  assert.equal((await publications.next()).value.json(), "äöü €");
  assert.deepEqual((await publications.next()).value.json(), { n: 2 });
});

test("commands issued while another is in flight are sent together, in order", async (t) => {
  const server = await startServer(t);
  const client = startClient(t, server.url);
  const connected = new Promise((resolve) => client.on("connected", resolve));
  const stream = await server.next();
  stream.response.write(WELCOME);
  await connected;
  for (const data of [1, 2, 3]) {
    client.publish("a", data).catch(() => {});
  }
  const channels = async () => {
    const exchange = await server.next();
    exchange.response.end();
    const { data } = JSON.parse(exchange.body) as { data: string };
    return data.split("\n").map((line) => (JSON.parse(line) as { id: number }).id);
  };
  assert.deepEqual(await channels(), [2]);
  assert.deepEqual(await channels(), [3, 4]);
});

test("a stream that ends is reopened", async (t) => {
  const server = await startServer(t);
  startClient(t, server.url, { reconnectFirstMs: 1 });
  const first = await server.next();
  first.response.end(WELCOME);
  const second = await server.next();
  assert.equal(second.path, "/prefix/connection/http_stream");
});

test("a terminal disconnect push ends the connection", async (t) => {
  const server = await startServer(t);
  const client = startClient(t, server.url);
  const ended = new Promise((resolve) => client.on("disconnected", resolve));
  const stream = await server.next();
  stream.response.end('{"push":{"disconnect":{"code":3500,"reason":"invalid token"}}}\n');
  assert.deepEqual(await ended, { code: 3500, reason: "invalid token" });
});

test("a command that cannot be posted ends the connection", async (t) => {
  const server = await startServer(t);
  const client = startClient(t, server.url, { reconnectFirstMs: 1 });
  const stream = await server.next();
  stream.response.write(WELCOME);
  const cut = new Promise<string>((resolve) =>
    client.on("connecting", ({ reason }) => resolve(reason)),
  );
  client.publish("a", 1).catch(() => {});
  const command = await server.next();
  command.response.writeHead(404).end();
  assert.equal(await cut, "server answered a command with status 404");
});

test("where WebSocket is blocked, HTTP streaming takes over at once", async (t) => {
  const server = await startServer(t);
  class Blocked {
    readonly readyState = 3;
    binaryType = "";
    protocol = "";
    onopen = null;
    onmessage = null;
    onclose: ((event: never) => void) | null = null;
    onerror = null;
    constructor() {
      setImmediate(() => this.onclose?.({ code: 1006, reason: "" } as never));
    }
    send(): void {}
    close(): void {}
  }
  const client = startClient(t, server.url, {
    transports: ["websocket", "http_stream"],
    reconnectFirstMs: 60_000,
    environment: { WebSocket: Blocked },
  });
  const connected = new Promise((resolve) => client.on("connected", resolve));
  (await server.next()).response.write(WELCOME);
  await connected;
  assert.equal(client.transport, "http_stream");
});
