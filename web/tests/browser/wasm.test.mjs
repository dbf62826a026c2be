// The crate linerate-web in Chromium: its example, as built by `make wasm`, against `linerate echo`
// and against servers that misbehave.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { openPage, startBrowser } from "./support.mjs";

const inRepository = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

const SERVER = process.env.LINERATE_BIN ?? inRepository("target/release/linerate");
const WASM = process.env.LINERATE_WASM ?? inRepository(".cache/wasm");
const TYPES = {
  "/": "text/html",
  "/browser.js": "text/javascript",
  "/browser_bg.wasm": "application/wasm",
};

let echo;
let pages;
let peer;
let chromium;
let page;

/** Calls a function of the example in the page. */
const call = (name, ...values) =>
  page.evaluate(async (name, values) => (await window.linerate)[name](...values), name, values);

/** Sends `messages` of 1,000 bytes as fast as the socket accepts them. */
const flood = (socket, messages) => {
  for (let sent = 0; sent < messages; sent += 1) {
    socket.send(Buffer.alloc(1_000));
  }
};

/** Waits until the peer's last connection to `path` is closed; returns the code and the reason. */
const closing = async (path) => {
  const giveUpAt = Date.now() + 30_000;
  for (;;) {
    const index = peer.closed.findLastIndex(([closed]) => closed === path);
    if (index >= 0) {
      return peer.closed.splice(index, 1)[0].slice(1);
    }
    assert.ok(Date.now() < giveUpAt, `the connection to ${path} was not closed`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

/** The behaviour of the peer, by path. */
const DEEDS = {
  "/closes": (socket) => socket.close(4_321, "bye"),
  "/ends": (socket) => socket.terminate(),
  "/sends": (socket) => {
    flood(socket, 10);
    socket.close(1_000, "that was all");
  },
  "/floods": (socket) => flood(socket, 1_000),
  "/listens": (socket) => socket.on("message", () => {}),
};

before(async () => {
  const child = spawn(SERVER, ["echo", "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(createInterface(child.stdout), "line");
  echo = { url: `${line}/`, stop: () => child.kill() };

  pages = createServer(async (request, response) => {
    const type = TYPES[request.url];
    if (type === undefined) {
      return response.writeHead(404).end();
    }
    response.setHeader("Content-Type", type);
    const page = `<!doctype html><link rel="icon" href="data:,"><script type="module">
      import * as linerate from "./browser.js";
      window.linerate = linerate.default().then(() => linerate);
    </script>`;
    return response.end(request.url === "/" ? page : await readFile(join(WASM, request.url)));
  });
  await once(pages.listen(0, "127.0.0.1"), "listening");

  const websockets = new WebSocketServer({
    server: pages,
    handleProtocols: (offered) => (offered.has("wamp") ? "wamp" : false),
  });
  peer = { url: `ws://127.0.0.1:${pages.address().port}`, closed: [] };
  websockets.on("connection", (socket, request) => {
    socket.on("close", (code, reason) => peer.closed.push([request.url, code, String(reason)]));
    DEEDS[request.url]?.(socket);
  });

  chromium = await startBrowser();
  ({ page } = await openPage(chromium.browser, `http://127.0.0.1:${pages.address().port}/`));
  await page.waitForFunction(() => window.linerate !== undefined);
});

after(async () => {
  await chromium?.close();
  pages?.closeAllConnections();
  pages?.close();
  echo?.stop();
});

test("text and bytes are echoed, and the connection closes cleanly", async () => {
  assert.equal(await call("echo", echo.url, "größer €"), "größer €, 1000, true");
});

test("messages beyond the send buffer keep their order", async () => {
  assert.equal(await call("count", echo.url, 5_000), 5_000);
});

test("dropping a future after any number of polls loses nothing", async () => {
  // Dropped without a poll: the futures of 20 messages, of one received message, and of an opening
  // and a closing handshake. Dropped after a poll: both handshakes, and some that wait for the
  // browser to have sent something.
  const dropped = await call("cancel", echo.url);
  assert.ok(dropped > 25, `${dropped}`);
});

test("the server selects one of the subprotocols", async () => {
  assert.equal(await call("subprotocol", peer.url, ["soap", "wamp"]), "wamp");
  assert.equal(await call("subprotocol", peer.url, []), undefined);
  await assert.rejects(
    call("subprotocol", peer.url, ["a b"]),
    /rejected by the browser: .*subprotocol/,
  );
});

test("messages before the end are received before it", async () => {
  assert.equal(
    await call("drain", `${peer.url}/sends`, 1 << 20),
    "10: clean, 1000, that was all, true",
  );
  assert.equal(await call("drain", `${peer.url}/closes`, 1 << 20), "0: clean, 4321, bye, true");
});

test("a connection that ends without a closing handshake is an error", async () => {
  assert.equal(
    await call("drain", `${peer.url}/ends`, 1 << 20),
    "0: connection ended without a closing handshake, 1006, , false",
  );
});

test("a failed connection is an error", async () => {
  assert.equal(await call("drain", "ws://127.0.0.1:1/", 1), "connection could not be opened");
  assert.match(await call("drain", "gopher://127.0.0.1/", 1), /^rejected by the browser: /);
});

test("exceeding the receive buffer closes the connection", async () => {
  // Nine messages of 1,000 bytes fit, each counted with 64 more.
  const told = await call("stall", `${peer.url}/floods`, 10_000);
  assert.equal(told, "closed, 9000, 10640 bytes are waiting to be received; the limit is 10000");
  assert.deepEqual(await closing("/floods"), [4_009, "receive queue full"]);
});

test("a page can close only with the codes that browsers allow", async () => {
  const url = `${peer.url}/listens`;
  assert.equal(await call("close", url, 4_000, "I'm off"), "4000, 4000, I'm off, true");
  assert.deepEqual(await closing("/listens"), [4_000, "I'm off"]);
  await assert.rejects(call("close", url, 1_001, ""), /cannot close with 1001/);
  await assert.rejects(call("close", url, 1_000, "x".repeat(124)), /124 bytes; the limit is 123/);
});

test("dropping a connection closes it", async () => {
  assert.equal(await call("subprotocol", `${peer.url}/dropped`, []), undefined);
  assert.deepEqual(await closing("/dropped"), [1_005, ""]);
});
