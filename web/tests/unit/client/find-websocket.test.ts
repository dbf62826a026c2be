// Which WebSocket the client uses, with the real package `ws` on both ends.

import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Client, type ClientOptions, type Environment } from "../../../client/src/linerate.js";

/** The part of `ws` that is used; the package has no types. */
interface Ws {
  WebSocket: new () => unknown;
  WebSocketServer: new (options: object) => Server;
}

interface Server {
  address(): AddressInfo;
  clients: Set<{ terminate(): void }>;
  close(): void;
  on(event: "connection", listener: (socket: ServerSocket) => void): void;
  once(event: string, listener: () => void): void;
}

interface ServerSocket {
  protocol: string;
  on(event: "message", listener: (data: unknown) => void): void;
  send(text: string): void;
}

// Not a literal: the tests are bundled, and the package has to be found as in an application.
const WS: string = "ws";

/** Starts a server that welcomes each client. */
async function startServer(t: TestContext): Promise<string> {
  const { WebSocketServer } = (await import(WS)) as Ws;
  const server = new WebSocketServer({
    host: "127.0.0.1",
    port: 0,
    handleProtocols: () => "linerate.v1",
  });
  server.on("connection", (socket) =>
    socket.on("message", (data) => {
      const { id } = JSON.parse(String(data)) as { id: number };
      socket.send(JSON.stringify({ id, connect: { client: "c1", version: socket.protocol } }));
    }),
  );
  await once(server as never, "listening");
  t.after(() => {
    server.clients.forEach((socket) => socket.terminate());
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Connects; resolves with the transport and the subprotocol, or rejects with the reason. */
function outcome(
  t: TestContext,
  url: string,
  environment: Partial<Environment>,
  options: ClientOptions = {},
): Promise<[string, string]> {
  const client = new Client(url, { environment, ...options });
  t.after(() => client.close());
  return new Promise((resolve, reject) => {
    client.on("connected", ({ transport, version }) => resolve([transport, version]));
    client.on("disconnected", ({ code, reason }) => reject(new Error(`${code}: ${reason}`)));
    client.connect();
  });
}

/** What `import` throws for a package that is not installed. */
const missing = () =>
  Promise.reject(Object.assign(new Error("not found"), { code: "ERR_MODULE_NOT_FOUND" }));

test("without a global WebSocket, the installed package ws is used", async (t) => {
  const url = await startServer(t);
  const found = await outcome(t, url, { WebSocket: undefined });
  assert.deepEqual(found, ["websocket", "linerate.v1"]);
});

test("undici is used if ws is not installed", async (t) => {
  const url = await startServer(t);
  const { WebSocket } = (await import(WS)) as Ws;
  const asked: string[] = [];
  const importPackage = (name: string) => {
    asked.push(name);
    return name === "undici" ? Promise.resolve({ WebSocket }) : missing();
  };
  const found = await outcome(t, url, { WebSocket: undefined, importPackage });
  assert.deepEqual(found, ["websocket", "linerate.v1"]);
  assert.deepEqual(asked, ["ws", "undici"]);
});

test("this runtime's own WebSocket comes first", async (t) => {
  const url = await startServer(t);
  const { WebSocket } = (await import(WS)) as Ws;
  const importPackage = () => assert.fail("nothing is imported");
  await outcome(t, url, { WebSocket: WebSocket as never, importPackage });
});

test("without any WebSocket, the client ends with an error that says what is missing", async (t) => {
  const environment = { WebSocket: undefined, importPackage: missing };
  await assert.rejects(outcome(t, "http://127.0.0.1:1", environment), /^Error: 4: .*package ws/);
});

test("a package that is broken is not taken for a missing one", async (t) => {
  const importPackage = () => Promise.reject(new SyntaxError("unexpected token"));
  const environment = { WebSocket: undefined, importPackage };
  await assert.rejects(
    outcome(t, "http://127.0.0.1:1", environment),
    /^Error: 4: cannot import the package ws: SyntaxError: unexpected token/,
  );
});

test("a client that is closed while a WebSocket is sought opens none", async () => {
  let opened = 0;
  class Counted {
    constructor() {
      opened += 1;
    }
  }
  const sought = Promise.resolve({ WebSocket: Counted });
  const environment = { WebSocket: undefined, importPackage: () => sought };
  const client = new Client("http://127.0.0.1:1", { environment });
  client.connect();
  client.close();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(opened, 0);
});
