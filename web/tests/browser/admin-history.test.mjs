// The timelines, the configuration and the totals of the admin page.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import WebSocket from "ws";
import { connect } from "../../dist/assets/linerate.js";
import { byId, openPage, startBrowser, startServer, tabTo, textOf } from "./support.mjs";

const KEY = "a key that no page may show";
const ENVIRONMENT = {
  LINERATE_AUTH_ADMIN_KEY: KEY,
  LINERATE_AUTH_ANONYMOUS: "true",
  LINERATE_BROKER_URL: "memory:",
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

async function openAdmin(look) {
  const opened = await openPage(chromium.browser, `${server.url}/admin`, look);
  const { page } = opened;
  await page.waitForSelector('body[data-state="locked"]');
  await page.type(byId("key"), KEY);
  await page.keyboard.press("Enter");
  await page.waitForSelector('body[data-state="open"][data-live="live"]');
  return opened;
}

async function ask(path, body) {
  const response = await fetch(`${server.url}/admin/api/${path}`, {
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    headers: { Authorization: `Bearer ${KEY}` },
  });
  assert.equal(response.status, 200);
  return response.json();
}

/** Waits until the node has recorded this many seconds. */
async function untilRecorded(seconds) {
  while ((await ask("series?step=second")).at_ms.length < seconds) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function subscribe(channel) {
  const client = connect(server.url, { name: "test", environment: { WebSocket } });
  const subscription = client.subscribe(channel);
  await new Promise((resolve) => subscription.on("subscribed", resolve));
  return { client, subscription };
}

/** Returns the text of the row of a channel, or undefined. */
const rowOf = (page, channel) =>
  page.$$eval(
    `${byId("channels-rows")} tr`,
    (rows, wanted) => rows.map((row) => row.textContent).find((text) => text.startsWith(wanted)),
    channel,
  );

test("timelines show what happened before the page was opened", async () => {
  await untilRecorded(3);
  const { page } = await openAdmin();
  const frame = await page.$eval(byId("timelines"), (it) => ({ ...it.dataset }));
  assert.ok(Number(frame.points) >= 3, frame.points);
  assert.equal(frame.outages, "0");
  await page.click(byId("span-day"));
  await page.waitForFunction(
    (selector) => document.querySelector(selector).dataset.points === "1",
    {},
    byId("timelines"),
  );
  const label = await page.$eval(`${byId("timelines")} [role=img]`, (it) => it.ariaLabel);
  assert.match(label, /^Messages per second: delivered \d+, published \d+$/);
  await page.close();
});

test("the arrow keys move a cursor that all timelines share", async () => {
  await untilRecorded(3);
  const { page } = await openAdmin();
  assert.match(await textOf(page, "timelines-time"), /^now, /);
  await tabTo(page, "timelines");
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(
    (selector) => /^\d/.test(document.querySelector(selector).textContent),
    {},
    byId("timelines-time"),
  );
  await page.keyboard.press("Escape");
  await page.waitForFunction(
    (selector) => /^now/.test(document.querySelector(selector).textContent),
    {},
    byId("timelines-time"),
  );
  await page.close();
});

test("the configuration is shown without secrets, and what is changed is marked", async () => {
  const { page, complaints } = await openAdmin();
  const rows = () =>
    page.$$eval(`${byId("settings")} tr`, (all) =>
      all.map((row) => [...row.cells].map((cell) => cell.textContent)),
    );
  await page.waitForSelector(`${byId("settings")} tr`);
  const changed = await rows();
  const keys = changed.map(([key]) => key);
  assert.ok(keys.includes("auth.anonymous") && keys.includes("server.listen"), String(keys));
  assert.ok(!keys.includes("broker.url"), "set to its default");
  const key = changed.find(([name]) => name === "auth.admin_key");
  assert.deepEqual(key.slice(1, 4), ["(secret)", "", "changed"]);
  assert.match(key[4], /LINERATE_AUTH_ADMIN_KEY$/);
  assert.ok(!(await page.content()).includes(KEY));

  await page.click(byId("settings-changed"));
  await page.type(byId("settings-contains"), "drain.window");
  assert.deepEqual(
    (await rows()).map((cells) => cells.slice(0, 4)),
    [["server.drain.window_s", "20", "20", ""]],
  );
  assert.deepEqual(
    complaints.filter((text) => !text.includes("401")),
    [],
  );
  await page.close();
});

test("totals of a channel do not fall when its subscriber reconnects", async () => {
  const { client, subscription } = await subscribe("totals");
  const arrived = subscription[Symbol.asyncIterator]();
  for (let n = 0; n < 7; n += 1) {
    await ask("publish", { channel: "totals", data: String(n) });
    await arrived.next();
  }
  const { page } = await openAdmin();
  const until = (isWanted) =>
    page.waitForFunction(
      `(${isWanted})([...document.querySelectorAll('${byId("channels-rows")} tr')]
        .find((row) => row.textContent.startsWith("totals"))?.cells[4].textContent)`,
    );
  await until((total) => total === "7");
  client.close();
  await until((total) => total === undefined);
  const again = await subscribe("totals");
  await until((total) => total !== undefined);
  assert.match(await rowOf(page, "totals"), /^totals1.*7Tail$/);
  again.client.close();
  await page.close();
});

test("both pages fit 320 px", async () => {
  const look = { width: 320, height: 700 };
  const { page: admin } = await openAdmin(look);
  await admin.waitForSelector(`${byId("settings")} tr`);
  const { page: overview } = await openPage(chromium.browser, server.url, look);
  for (const page of [admin, overview]) {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 320, `${page.url()}: ${width} px`);
    await page.close();
  }
});
