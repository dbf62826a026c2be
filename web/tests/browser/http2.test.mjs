// WebSockets over HTTP/2 and TLS in Chromium, checked in the server's log.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openPage, startBrowser, startServer } from "./support.mjs";

const requests = [];
let directory;
let server;
let chromium;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "linerate-tls-"));
  const [certificate, key] = ["certificate.pem", "key.pem"].map((name) => join(directory, name));
  const subject = [
    "-subj",
    "/CN=localhost",
    "-addext",
    "subjectAltName=IP:127.0.0.1,DNS:localhost",
  ];
  const files = ["-out", certificate, "-keyout", key];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      ...subject,
      ...files,
    ],
    { stdio: "ignore" },
  );
  server = await startServer({
    environment: {
      LINERATE_SERVER_TLS_CERTIFICATE: certificate,
      LINERATE_SERVER_TLS_KEY: key,
      LINERATE_LOG_FORMAT: "json",
      LINERATE_LOG: "info,linerate_gateway::server=debug",
    },
    log: (line) => {
      const entry = JSON.parse(line);
      if (entry.message === "request") {
        requests.push(entry);
      }
    },
  });
  chromium = await startBrowser({ extraArguments: ["--ignore-certificate-errors"] });
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await rm(directory, { recursive: true, force: true });
});

function requestsFor(path) {
  return requests
    .filter((request) => request.path === path)
    .map(({ version, method }) => `${method} ${version}`);
}

/** Opens a WebSocket in the page; resolves to the echo of each message. */
function talk(page, path, messages) {
  return page.evaluate(
    (path, messages) =>
      new Promise((resolve, reject) => {
        const url = new URL(path, location.href);
        url.protocol = "wss:";
        const socket = new WebSocket(url);
        const received = [];
        socket.onerror = () => reject(new Error(`cannot open a WebSocket to ${url}`));
        socket.onopen = () => messages.forEach((message) => socket.send(message));
        socket.onmessage = ({ data }) => {
          received.push(data);
          if (received.length === messages.length) {
            socket.close(1000);
          }
        };
        socket.onclose = ({ code, wasClean }) => resolve({ received, code, wasClean });
      }),
    path,
    messages,
  );
}

test("Chromium opens WebSockets as streams of the page's connection", async () => {
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/`);
  const messages = ["Spam", "größer €", "x".repeat(200_000)];
  const { received, code, wasClean } = await talk(page, "/echo", messages);
  assert.deepEqual(received, messages);
  assert.deepEqual({ code, wasClean }, { code: 1000, wasClean: true });
  assert.deepEqual(requestsFor("/"), ["GET HTTP/2.0"]);
  assert.deepEqual(requestsFor("/echo"), ["CONNECT HTTP/2.0"]);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the pages themselves are served over HTTP/2, and their WebSockets too", async () => {
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/`);
  await page.waitForFunction(() => performance.getEntriesByType("resource").length > 0);
  const protocols = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .concat(performance.getEntriesByType("navigation"))
      .map((entry) => entry.nextHopProtocol),
  );
  assert.deepEqual([...new Set(protocols)], ["h2"]);
  while (!requestsFor("/counters").includes("CONNECT HTTP/2.0")) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(complaints, []);
  await page.close();
});
