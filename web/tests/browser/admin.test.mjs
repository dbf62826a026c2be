// The admin page in a real browser, against the real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import WebSocket from "ws";
import { connect } from "../../dist/assets/linerate.js";
import {
  byId,
  figure,
  focused,
  openPage,
  startBrowser,
  startServer,
  tabTo,
  textOf,
} from "./support.mjs";

const KEY = "the admin key of this test";
const ENVIRONMENT = {
  LINERATE_AUTH_ADMIN_KEY: KEY,
  LINERATE_AUTH_ANONYMOUS: "true",
  LINERATE_CHANNEL_ALLOW_ANONYMOUS: "true",
  LINERATE_CHANNEL_ALLOW_SUBSCRIBE: "true",
};

let chromium, server;

before(async () => {
  server = await startServer({ environment: ENVIRONMENT });
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

/** Opens the page in a new tab, which has no key yet. */
async function openAdmin(url = server.url) {
  const opened = await openPage(chromium.browser, `${url}/admin`);
  opened.page.on("dialog", (dialog) =>
    assert.fail(`unexpected browser dialog: ${dialog.message()}`),
  );
  return opened;
}

async function unlock(page, key = KEY) {
  await page.waitForSelector('body[data-state="locked"]');
  await page.type(byId("key"), key);
  await page.keyboard.press("Enter");
}

const untilOpen = (page) => page.waitForSelector('body[data-state="open"][data-live="live"]');

/** Connects a client that is subscribed to `channel`. */
async function subscriber(t, channel, url = server.url) {
  const client = connect(url, { name: "test", environment: { WebSocket } });
  t.after(() => client.close());
  const subscription = client.subscribe(channel);
  await new Promise((resolve) => subscription.on("subscribed", resolve));
  return { client, subscription };
}

/** Waits until a row of a table contains `text`, and returns the row. */
async function untilRow(page, id, text) {
  const row = await page.waitForFunction(
    (selector, wanted) =>
      [...document.querySelectorAll(`${selector} tr`)].find((one) =>
        one.textContent.includes(wanted),
      ),
    {},
    byId(id),
    text,
  );
  return row.asElement();
}

function untilText(page, id, pattern) {
  return page.waitForFunction(
    (selector, source) => new RegExp(source).test(document.querySelector(selector).textContent),
    {},
    byId(id),
    pattern.source,
  );
}

test("a wrong key is refused; the right one works and is kept until it is forgotten", async () => {
  const { page } = await openAdmin();
  await unlock(page, "no such key, certainly");
  await untilText(page, "key-trouble", /^The server refused this key/);
  await unlock(page);
  await untilOpen(page);
  await page.reload();
  await untilOpen(page);
  await page.click(byId("forget-key"));
  await page.waitForSelector('body[data-state="locked"]');
  await page.reload();
  await page.waitForSelector('body[data-state="locked"]');
  assert.equal(await focused(page), "key");
  await page.close();
});

test("without a configured key, access from this machine is allowed", async (t) => {
  const open = await startServer();
  t.after(() => open.stop());
  const { page, complaints } = await openAdmin(open.url);
  await untilOpen(page);
  assert.match(await textOf(page, "node-note"), /^version \d+\.\d+\.\d+, up for /);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("connections and channels are listed and found", async (t) => {
  const { client } = await subscriber(t, "ticks:AAPL");
  await subscriber(t, "news");
  const { page } = await openAdmin();
  await unlock(page);
  await untilOpen(page);
  const row = await untilRow(page, "connections", "ticks:AAPL");
  const text = await row.evaluate((one) => one.textContent);
  assert.ok(text.includes(client.id.slice(0, 13)), text);
  assert.ok((await figure(page, "clients")) >= 2);

  await page.type(byId("connections-channel"), "news");
  await page.keyboard.press("Enter");
  await page.waitForFunction(
    (selector) => !document.querySelector(selector).textContent.includes("ticks:AAPL"),
    {},
    byId("connections"),
  );
  await untilRow(page, "connections", "news");
  await untilRow(page, "channels-rows", "ticks:AAPL");
  await page.close();
});

test("a client is disconnected after confirmation and does not reconnect", async (t) => {
  const { client } = await subscriber(t, "kicked");
  const ended = new Promise((resolve) => client.on("disconnected", resolve));
  const { page } = await openAdmin();
  await unlock(page);
  await untilOpen(page);
  const row = await untilRow(page, "connections", "kicked");
  const button = await row.$("button");
  await button.click();
  await page.waitForSelector(`${byId("question")}[open]`);
  await page.keyboard.press("Escape");
  await page.waitForSelector(`${byId("question")}:not([open])`);
  assert.equal(client.state, "connected", "Escape cancels");

  const again = await untilRow(page, "connections", "kicked");
  await (await again.$("button")).click();
  await page.click(byId("question-yes"));
  assert.equal((await ended).code, 3503);
  await untilText(page, "report", /has been disconnected\.$/);
  await page.close();
});

test("a channel's tail shows publications as text", async (t) => {
  const { subscription } = await subscriber(t, "tailed");
  const { page, complaints } = await openAdmin();
  await unlock(page);
  await untilOpen(page);
  const row = await untilRow(page, "channels-rows", "tailed");
  await (await row.$("button")).click();
  await untilText(page, "tail-state", /^following tailed$/);
  const arrived = subscription[Symbol.asyncIterator]().next();
  await page.type(byId("tail-data"), '{"a":"<b>κόσμε</b>"}');
  await page.keyboard.press("Enter");
  await page.waitForSelector(byId("tail-text"));
  assert.equal(await textOf(page, "tail-text"), '{"a":"<b>κόσμε</b>"}');
  assert.equal(await page.$(`${byId("tail-rows")} b`), null);
  assert.deepEqual((await arrived).value.json(), { a: "<b>κόσμε</b>" });
  await page.click(byId("tail-stop"));
  assert.equal(await textOf(page, "tail-state"), "not following");
  const expected = complaints.filter((text) => !text.includes("401"));
  assert.deepEqual(expected, []);
  await page.close();
});

test("broker and nodes are shown", async () => {
  const { page } = await openAdmin();
  await unlock(page);
  await untilOpen(page);
  await untilText(page, "broker-state", /^memory: up/);
  assert.match(await textOf(page, "broker-gaps"), /^no gaps/);
  assert.equal(await page.$$eval(`${byId("nodes")} tr:not(.empty)`, (rows) => rows.length), 1);
  await page.close();
});

test("a node is drained after confirmation, shows this, and accepts clients again", async (t) => {
  const doomed = await startServer({ environment: ENVIRONMENT });
  t.after(() => doomed.kill());
  const { client } = await subscriber(t, "drained", doomed.url);
  const cut = new Promise((resolve) => client.on("connecting", resolve));
  const { page } = await openAdmin(doomed.url);
  await unlock(page);
  await untilOpen(page);
  await page.click(byId("drain"));
  await page.click(byId("question-yes"));
  await page.waitForSelector('body[data-draining="true"]');
  assert.equal((await fetch(`${doomed.url}/ready`)).status, 503);
  assert.equal((await cut).code, 3001);
  await page.click(byId("undrain"));
  await page.waitForSelector('body[data-draining="false"]');
  assert.equal((await fetch(`${doomed.url}/ready`)).status, 200);
  await page.close();
});

test("the page shows when the server is lost and when it is back", async (t) => {
  const first = await startServer({ environment: ENVIRONMENT });
  t.after(() => first.stop());
  const { page } = await openAdmin(first.url);
  await unlock(page);
  await untilOpen(page);
  await first.kill();
  await page.waitForSelector('body[data-live="lost"]');
  assert.match(await textOf(page, "live-state"), /cannot reach the server; retrying/);
  const second = await startServer({
    port: new URL(first.url).port,
    environment: ENVIRONMENT,
  });
  t.after(() => second.stop());
  await untilOpen(page);
  await page.close();
});

test("the page can be unlocked, sorted and followed by keyboard alone", async (t) => {
  await subscriber(t, "by-keyboard");
  const { page } = await openAdmin();
  await unlock(page);
  await untilOpen(page);
  await tabTo(page, "connections-sort");
  await page.keyboard.press("End");
  assert.equal(await page.$eval(byId("connections-sort"), (select) => select.value), "age");
  await tabTo(page, "tail-channel");
  await page.keyboard.type("by-keyboard");
  await page.keyboard.press("Enter");
  await untilText(page, "tail-state", /^following by-keyboard$/);
  await page.close();
});
