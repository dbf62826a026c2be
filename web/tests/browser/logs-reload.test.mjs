// Reloading the log page, links to logs, and uploads that are continued, in real browsers.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { appendFile, copyFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  byId,
  chooseFile,
  figure,
  FIREFOX,
  openPage,
  rowsOf,
  skipReason,
  startBrowser,
  startFirefox,
  startServer,
  temporaryFolder,
  textOf,
  waitForState,
  waitUntilUnderWay,
  writeLargeLog,
  writeLog,
} from "./support.mjs";
import { GATE_BYTES, startGate } from "./gate.mjs";

/** Far more than passes the gate and than the browser, gate and server may buffer. */
const LARGE_BYTES = 8 * GATE_BYTES;

let chromium, folder, log, server;

before(async () => {
  folder = await temporaryFolder();
  log = await writeLog(folder.path);
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

/** Everything that a view of a log shows. */
async function shownBy(page) {
  const figures = {};
  for (const id of ["requests", "bytes-sent", "unique-addresses", "unparsed"]) {
    figures[id] = await figure(page, id);
  }
  for (const panel of ["path", "status", "method"]) {
    figures[panel] = await rowsOf(page, panel);
  }
  figures.title = await textOf(page, "chart-title");
  figures.span = await textOf(page, "span");
  return figures;
}

const hasFilters = (page, count) =>
  page.waitForFunction(
    (selector, count) =>
      document.querySelectorAll(selector).length === count &&
      document.body.dataset.filtering === "off" &&
      document.body.dataset.figures === "some",
    {},
    byId("filter"),
    count,
  );

/** Adds a filter for the first status that is shown. */
async function filter(page) {
  await page.$eval(`${byId("status-rows")} .value-name`, (button) => button.click());
  await hasFilters(page, 1);
}

const reload = (page) => page.reload({ waitUntil: "load" });

async function assertReloadKeepsFigures(page) {
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  await page.waitForFunction(() => /^#log=[0-9a-f]{32}$/.test(location.hash));
  const whole = await shownBy(page);
  await filter(page);
  const part = await shownBy(page);
  assert.ok(part.requests < whole.requests && part.requests > 0);

  await reload(page);
  await waitForState(page, "finished");
  await hasFilters(page, 1);
  assert.deepEqual(await shownBy(page), part);
  assert.equal(await textOf(page, "file-name"), "access.log");
  assert.equal(await figure(page, "percent"), 100);
  assert.ok((await page.$$eval(`${byId("lines")} tr`, (rows) => rows.length)) > 0);
  await page.click(byId("clear-filters"));
  await hasFilters(page, 0);
  assert.deepEqual(await shownBy(page), whole);
  await reload(page);
  await reload(page);
  await waitForState(page, "finished");
  await hasFilters(page, 0);
  assert.deepEqual(await shownBy(page), whole);
}

test("after a reload, the figures, filters and lines are the same", async () => {
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/logs`);
  await assertReloadKeepsFigures(page);
  assert.deepEqual(complaints, []);
  await page.close();
});

const skip = existsSync(FIREFOX) ? false : skipReason(`${FIREFOX} is absent`);

test("so they are in Firefox", { skip }, async (t) => {
  const firefox = await startFirefox();
  t.after(() => firefox.close());
  const page = await firefox.browser.newPage();
  await page.goto(`${server.url}/logs`, { waitUntil: "load" });
  await assertReloadKeepsFigures(page);
});

test("a link shows the same log elsewhere, with filters of its own", async () => {
  const { page } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  const whole = await shownBy(page);
  await filter(page);
  const link = page.url();
  // A context of its own has no storage of the first page.
  const context = await chromium.browser.createBrowserContext();
  const other = await openPage(context, link);
  await waitForState(other.page, "finished");
  await hasFilters(other.page, 1);
  assert.deepEqual(await shownBy(other.page), await shownBy(page));
  await other.page.click(byId("clear-filters"));
  await hasFilters(other.page, 0);
  assert.deepEqual(await shownBy(other.page), whole);
  assert.equal(await page.$$eval(byId("filter"), (chips) => chips.length), 1, "not changed");
  await page.close();
  await other.page.bringToFront();
  await filter(other.page);
  assert.deepEqual(other.complaints, []);
  await context.close();
});

test("an upload that a reload interrupts continues with the same file", async (t) => {
  const path = await writeLargeLog(folder.path, log.path, LARGE_BYTES);
  const gate = await startGate(server.url);
  t.after(() => gate.stop());
  const { page, complaints } = await openPage(chromium.browser, `${gate.url}/logs`);
  await chooseFile(page, path);
  await waitUntilUnderWay(page);
  await page.waitForFunction(() =>
    Object.keys(sessionStorage).some((key) => key.startsWith("linerate-log-")),
  );
  await reload(page);
  await waitForState(page, "interrupted");
  assert.match(await textOf(page, "interrupted-detail"), /MB of .* are missing\. Choose the same/);
  const [arrived, percent] = [await figure(page, "requests"), await figure(page, "percent")];
  assert.ok(arrived > 0 && percent > 0 && percent < 100, `${arrived} requests, ${percent} %`);

  const changed = join(folder.path, "changed.log");
  await copyFile(path, changed);
  await writeFile(changed, "other", { flag: "r+" });
  await page.click(byId("continue-upload"));
  await chooseFile(page, changed);
  await page.waitForSelector(`${byId("trouble")}:not([hidden])`);
  assert.equal(await textOf(page, "trouble-title"), "This is not the same file");

  // The log has grown in the meantime. What was added is not part of the upload.
  await appendFile(path, "one more line\n");
  await chooseFile(page, path);
  await page.waitForFunction(
    (selector, percent) => Number(document.querySelector(selector).dataset.value) > percent,
    {},
    byId("percent"),
    percent,
  );
  gate.open(); // Opens the connection over which the upload continues.
  await waitForState(page, "finished", "failed");
  assert.equal(await figure(page, "percent"), 100);
  const copies = Math.ceil(LARGE_BYTES / (await stat(log.path)).size);
  assert.equal(await figure(page, "requests"), copies * log.figures.requests);
  assert.equal(await figure(page, "unparsed"), copies * log.figures.unparsed);
  await reload(page);
  await waitForState(page, "finished");
  assert.equal(await figure(page, "requests"), copies * log.figures.requests);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("what arrived before a reload can be used without the file", async (t) => {
  const path = await writeLargeLog(folder.path, log.path, LARGE_BYTES);
  const gate = await startGate(server.url);
  t.after(() => gate.stop());
  const { page } = await openPage(chromium.browser, `${gate.url}/logs`);
  await chooseFile(page, path);
  await waitUntilUnderWay(page);
  await page.waitForFunction(() => sessionStorage.length > 0);
  const context = await chromium.browser.createBrowserContext();
  const other = await openPage(context, page.url());
  await waitForState(other.page, "watching");
  await page.bringToFront(); // Pages in the background are not polled.
  await reload(page);
  await waitForState(page, "interrupted");
  await page.click(byId("end-upload"));
  await waitForState(page, "finished");
  await filter(page);
  assert.ok((await figure(page, "requests")) > 0);
  await other.page.bringToFront();
  await waitForState(other.page, "finished");
  await context.close();
  await page.close();
});

test("a link that is wrong or whose time is over says so and for how long logs are kept", async (t) => {
  const brief = await startServer({ flags: ["--set", "logs.resume_s=0"] });
  t.after(() => brief.stop());
  const { page } = await openPage(chromium.browser, `${brief.url}/logs`);
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  await filter(page);
  const link = page.url();
  await page.close();
  const texts = [];
  for (const url of [link, `${brief.url}/logs#log=${"0".repeat(32)}`, `${brief.url}/logs#log=x`]) {
    const { page, complaints } = await openPage(chromium.browser, url);
    await page.waitForSelector(`${byId("trouble")}:not([hidden])`);
    await waitForState(page, "idle");
    texts.push([await textOf(page, "trouble-title"), await textOf(page, "trouble-detail")]);
    assert.equal(await page.evaluate(() => location.hash.includes("log=")), false);
    assert.deepEqual(complaints, []);
    if (url === link) {
      assert.match(await textOf(page, "shared-view"), /once you choose the log/);
      await chooseFile(page, log.path);
      await waitForState(page, "finished", "failed");
      await hasFilters(page, 1);
    }
    await page.close();
  }
  assert.equal(texts[0][0], "The server does not have this log any more");
  assert.match(texts[0][1], /^It keeps a log only while the page that sends it is open\./);
  assert.deepEqual(texts, [texts[0], texts[0], texts[0]]);

  const { page: kept } = await openPage(chromium.browser, `${server.url}/logs#log=x`);
  await kept.waitForSelector(`${byId("trouble")}:not([hidden])`);
  assert.match(await textOf(kept, "trouble-detail"), /for 10 minutes after the last of them/);
  await kept.close();
});

test("a log that its owner deletes is gone for all", async () => {
  const { page } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  const link = page.url();
  const context = await chromium.browser.createBrowserContext();
  const other = await openPage(context, link);
  await waitForState(other.page, "finished");
  await page.bringToFront();
  const isOffered = (page) => page.$eval(byId("discard"), (button) => button.checkVisibility());
  assert.equal(await isOffered(other.page), false, "viewers cannot delete");
  await reload(page);
  await waitForState(page, "finished");
  await page.click(byId("discard"));
  await waitForState(page, "idle");
  assert.equal(page.url(), `${server.url}/logs`);
  await other.page.bringToFront();
  await other.page.waitForSelector(`${byId("trouble")}:not([hidden])`);
  assert.equal(await textOf(other.page, "trouble-title"), "The server no longer keeps this log");
  await other.page.goto(link);
  await reload(other.page);
  await waitForState(other.page, "idle");
  await context.close();
  await page.close();
});

test("another log leaves the first one, to which the browser goes back", async () => {
  const { page } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  const first = [page.url(), await figure(page, "requests")];
  const second = join(folder.path, "second.log");
  await writeFile(second, '::1 - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654\n');
  await chooseFile(page, second);
  await page.waitForFunction(
    (url) => location.href !== url && /#log=/.test(location.href),
    {},
    first[0],
  );
  await waitForState(page, "finished");
  assert.equal(await figure(page, "requests"), 1);
  while (page.url() !== first[0]) {
    await page.goBack();
  }
  await page.waitForFunction(
    (selector, requests) => document.querySelector(selector).dataset.value === String(requests),
    {},
    byId("requests"),
    first[1],
  );
  assert.equal(await textOf(page, "file-name"), "access.log");
  await page.close();
});
