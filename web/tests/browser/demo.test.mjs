// The live demo of the overview, in a real browser against the real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { byId, figure, openPage, startBrowser, startServer, tabTo, textOf } from "./support.mjs";

let chromium, server;

before(async () => {
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

async function openDemo() {
  const opened = await openPage(chromium.browser, server.url);
  await untilSubscribed(opened.page);
  return opened;
}

/** Waits until all clients of the demo are subscribed. */
function untilSubscribed(page) {
  return page.waitForFunction(() => {
    const cards = [...document.querySelectorAll(".client")];
    return cards.length === 3 && cards.every((card) => card.dataset.state === "subscribed");
  });
}

/** Waits until `check` accepts the texts on the cards, one list per client. */
function untilMessages(page, check) {
  return page.waitForFunction(
    `(${check})([...document.querySelectorAll(".client")].map((card) =>
      [...card.querySelectorAll('[data-testid="demo-message"]')].map((one) => one.textContent)))`,
  );
}

async function type(page, id, text) {
  await page.$eval(byId(id), (input) => (input.value = ""));
  await page.type(byId(id), text);
}

test("every client receives a publication", async () => {
  const { page, complaints } = await openDemo();
  await page.select(byId("demo-rate"), "0");
  await type(page, "demo-text", "κόσμε & <b>tags</b>");
  await page.keyboard.press("Enter");
  await untilMessages(page, (cards) =>
    cards.every(([newest]) => newest?.endsWith("κόσμε & <b>tags</b>")),
  );
  assert.equal(await page.$(".client b"), null, "shown as text, not as markup");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the charts show rate, batch and latency", async () => {
  const { page } = await openDemo();
  await page.select(byId("demo-rate"), "50");
  await page.select(byId("demo-batch"), "1000");
  await page.waitForFunction(
    (rate, batch, latency) => {
      const value = (selector) => Number(document.querySelector(selector).dataset.value);
      return value(rate) > 10 && value(batch) > 10 && value(latency) > 50;
    },
    {},
    ...["chart-rate-now", "chart-batch-now", "chart-latency-now"].map(byId),
  );
  await page.select(byId("demo-batch"), "0");
  await page.waitForFunction(
    (batch, latency) => {
      const value = (selector) => Number(document.querySelector(selector).dataset.value);
      return value(batch) < 5 && value(latency) < 500;
    },
    {},
    ...["chart-batch-now", "chart-latency-now"].map(byId),
  );
  await page.close();
});

test("conflation leaves one message per batch", async () => {
  const { page } = await openDemo();
  await page.select(byId("demo-rate"), "50");
  await page.select(byId("demo-batch"), "200");
  await page.select(byId("demo-conflate"), "latest");
  await page.waitForFunction(
    (rate, batch) => {
      const value = (selector) => Number(document.querySelector(selector).dataset.value);
      return value(batch) === 1 && value(rate) > 0 && value(rate) < 10;
    },
    {},
    ...["chart-rate-now", "chart-batch-now"].map(byId),
  );
  await page.close();
});

test("a filter selects messages, and errors in it are shown", async () => {
  const { page } = await openDemo();
  await type(page, "demo-filter", "key ==");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".client-state")].every((state) =>
      /^refused: .*\(107\)$/.test(state.textContent),
    ),
  );
  await type(page, "demo-filter", 'key == "a"');
  await page.keyboard.press("Enter");
  await untilSubscribed(page);
  await page.select(byId("demo-rate"), "50");
  await untilMessages(page, (cards) =>
    cards.every((card) => card.length === 5 && card.every((text) => text.endsWith(" a"))),
  );
  await page.close();
});

test("a client whose connection is cut reconnects and recovers everything", async () => {
  const { page } = await openDemo();
  await page.select(byId("demo-rate"), "50");
  await untilMessages(page, (cards) => cards[0].length === 5);
  await page.click(".client-cut");
  await page.waitForFunction(() =>
    document.querySelector(".client-account").textContent.includes("recovered everything"),
  );
  const missed = await page.$eval(".client-account", (account) => account.dataset.missed);
  assert.equal(missed, "0");
  await page.close();
});

test("settings and publishing work by keyboard alone", async () => {
  const { page } = await openDemo();
  await tabTo(page, "demo-rate");
  await page.keyboard.press("Home");
  await tabTo(page, "demo-batch");
  await page.keyboard.press("ArrowDown");
  await untilSubscribed(page);
  await tabTo(page, "demo-text");
  await page.keyboard.type("by keyboard");
  await page.keyboard.press("Enter");
  await untilMessages(page, (cards) => cards.every(([newest]) => newest?.endsWith("by keyboard")));
  await page.close();
});

test("the page shows when the server is lost and when it is back", async (t) => {
  const first = await startServer();
  t.after(() => first.stop());
  const { page } = await openPage(chromium.browser, first.url);
  await untilSubscribed(page);
  await first.kill();
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".client")].every((card) => card.dataset.state === "connecting"),
  );
  const second = await startServer({ port: new URL(first.url).port });
  t.after(() => second.stop());
  await untilSubscribed(page);
  assert.ok((await figure(page, "publisher-state")) >= 0);
  await page.close();
});

test("the page explains that the server does not list its own origin", async () => {
  const environment = { LINERATE_SERVER_ORIGINS: "http://elsewhere.example" };
  const strict = await startServer({ environment });
  const { page } = await openPage(chromium.browser, strict.url);
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent.includes("server.origins"),
    {},
    byId("demo-trouble"),
  );
  assert.ok((await textOf(page, "demo-trouble")).includes(strict.url));
  await page.close();
  await strict.stop();
});
