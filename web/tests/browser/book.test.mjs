// The book in a real browser, as the server has it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { byId, openPage, startBrowser, startServer } from "./support.mjs";

let chromium, server;

before(async () => {
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

const open = (path, look) => openPage(chromium.browser, `${server.url}/docs${path}`, look);

test("every page opens without complaints, from the first to the last", async () => {
  const { page, complaints } = await open("");
  const seen = [];
  for (;;) {
    seen.push(new URL(page.url()).pathname);
    assert.ok(await page.$(".prose h1"), seen.at(-1));
    const next = await page.$eval('[aria-label="Next pages"]', (turn) => {
      return turn.querySelector('[rel="next"]')?.href ?? null;
    });
    if (next === null) {
      break;
    }
    await page.goto(next, { waitUntil: "load" });
  }
  const listed = await page.$$eval(".contents a", (links) => links.length);
  assert.equal(seen.length, listed + 1, seen.join(" "));
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the search is used with the keyboard alone", async () => {
  const { page, complaints } = await open("/");
  await page.keyboard.press("/");
  await page.keyboard.type("revoking tokens");
  await page.waitForSelector(`${byId("search-results")} a`);
  await page.keyboard.press("ArrowDown");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.match(page.url(), /gateway\/configuration\.html#revoking-tokens$/);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("without JavaScript there are the contents, and no search", async () => {
  const page = await chromium.browser.newPage();
  await page.setJavaScriptEnabled(false);
  await page.setViewport({ width: 390, height: 844 });
  await page.goto(`${server.url}/docs/gateway/filters.html`);
  assert.equal(await page.$(`${byId("search")}:not([hidden])`), null);
  const contents = await page.$(".contents");
  assert.equal(await contents.isVisible(), false);
  await page.click(".contents-button");
  assert.equal(await contents.isVisible(), true);
  await Promise.all([page.waitForNavigation(), page.click('.contents a[href$="memory.html"]')]);
  assert.equal(await page.title(), "Memory · linerate");
  await page.close();
});
