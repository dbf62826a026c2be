// The overview in a real browser, against the real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { byId, figure, openPage, startBrowser, startServer, textOf } from "./support.mjs";

let chromium, server;

before(async () => {
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

const waitUntilLive = (page) => page.waitForSelector('body[data-live="live"]');

test("the counters are live", async () => {
  const { page, complaints } = await openPage(chromium.browser, server.url);
  await waitUntilLive(page);
  assert.ok((await figure(page, "connections")) >= 1);
  assert.equal(await textOf(page, "live-state"), "live");
  assert.match(await textOf(page, "version"), /^version \d+\.\d+\.\d+/);
  const uptime = await figure(page, "uptime_seconds");
  await page.waitForFunction(
    (selector, then) => Number(document.querySelector(selector).dataset.value) > then,
    {},
    byId("uptime_seconds"),
    uptime,
  );
  assert.deepEqual(complaints, []);
  await page.close();
});

test("rates have units that fit", async () => {
  const { page } = await openPage(chromium.browser, server.url);
  await waitUntilLive(page);
  await page.waitForFunction(
    (selector) => /^[1-9]/.test(document.querySelector(selector).textContent),
    {},
    byId("bytes_sent_rate"),
  );
  assert.match(await textOf(page, "bytes_sent_rate"), /^[\d.]+ (B|kB|MB) per second$/);
  assert.equal(await textOf(page, "broker"), "memory");
  await page.close();
});

test("another page's connection is counted", async () => {
  const { page } = await openPage(chromium.browser, server.url);
  await waitUntilLive(page);
  const total = await figure(page, "connections_total");
  const other = await openPage(chromium.browser, server.url);
  await waitUntilLive(other.page);
  await page.waitForFunction(
    (selector, then) => Number(document.querySelector(selector).dataset.value) > then,
    { polling: 100 }, // Nothing is drawn in a background tab.
    byId("connections_total"),
    total,
  );
  await other.page.close();
  await page.close();
});

test("the echo box shows the reply and its round-trip time", async () => {
  const { page, complaints } = await openPage(chromium.browser, server.url);
  await waitUntilLive(page);
  const messages = await figure(page, "messages_received");
  await page.$eval(byId("echo-input"), (input) => (input.value = ""));
  await page.type(byId("echo-input"), "κόσμε & <b>tags</b>");
  await page.keyboard.press("Enter");
  await page.waitForSelector(byId("echo-reply"));
  assert.equal(await textOf(page, "echo-reply"), "κόσμε & <b>tags</b>");
  const roundTrip = await figure(page, "echo-round-trip");
  assert.ok(roundTrip >= 0 && Number.isFinite(roundTrip));
  assert.match(await textOf(page, "echo-round-trip"), /^\d+\.\d ms$/);
  await page.waitForFunction(
    (selector, then) => Number(document.querySelector(selector).dataset.value) > then,
    {},
    byId("messages_received"),
    messages,
  );
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the page shows when the server is lost and when it is back", async (t) => {
  const first = await startServer();
  t.after(() => first.stop());
  const { page } = await openPage(chromium.browser, first.url);
  await waitUntilLive(page);
  await first.kill();
  // Check at once: every retry briefly shows another state.
  await page.waitForFunction(
    (selector) => {
      const text = document.querySelector(selector).textContent;
      return (
        document.body.dataset.live === "lost" && /^connection lost, retrying in \d+ s$/.test(text)
      );
    },
    {},
    byId("live-state"),
  );

  const second = await startServer({ port: new URL(first.url).port });
  t.after(() => second.stop());
  await page.waitForSelector('body[data-live="live"]');
  await page.close();
});

test("on a server with keys, counters and echo are shown as off and do not retry", async () => {
  const keyed = await startServer({ flags: ["--set", "auth.admin_key=0123456789abcdef"] });
  try {
    const { page } = await openPage(chromium.browser, keyed.url);
    await page.waitForSelector('body[data-live="refused"]');
    await page.focus(byId("echo-input"));
    const isOff = (selector) =>
      document.querySelector(selector).textContent.includes("server.diagnostics");
    for (const name of ["live-state", "echo-state"]) {
      await page.waitForFunction(isOff, {}, byId(name));
    }
    // A retry would show that it connects.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    assert.equal(await page.$eval("body", (body) => body.dataset.live), "refused");
    await page.close();
  } finally {
    await keyed.stop();
  }
});
