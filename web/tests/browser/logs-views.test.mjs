// The log page with logs that are awkward to show, and its use by keyboard and on narrow screens.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import {
  byId,
  chooseFile,
  openPage,
  startBrowser,
  startServer,
  textOf,
  waitForState,
} from "./support.mjs";

let chromium, server, folder;

before(async () => {
  server = await startServer();
  chromium = await startBrowser();
  folder = await mkdtemp(join(tmpdir(), "linerate-views-"));
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:84.0) Gecko/20100101 Firefox/84.0";

/** Returns a line at a minute and a second of the hour from 2021-01-22 01:00 UTC. */
function line({ minute = 0, second = 0, path = "/", status = 200, day = "22/Jan/2021" } = {}) {
  const two = (it) => String(it).padStart(2, "0");
  const time = `${day}:01:${two(minute)}:${two(second)} +0000`;
  return `192.0.2.7 - - [${time}] "GET ${path} HTTP/1.1" ${status} 5 "-" "${FIREFOX}"\n`;
}

/** An hour of requests, one of which failed. */
const HOUR = Array.from({ length: 600 }, (_, i) =>
  line({
    minute: Math.floor(i / 10),
    second: (i % 10) * 6,
    path: `/${i % 40}`,
    status: i === 300 ? 503 : 200,
  }),
).join("");

async function show(name, content, options) {
  const path = join(folder, name);
  await writeFile(path, content);
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/logs`, options);
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed");
  return { page, complaints };
}

const valueOf = (page, id) => page.$eval(byId(id), (input) => input.value);
const chartStart = (page) => page.$eval(byId("chart"), ({ dataset }) => dataset.from);
const waitForText = (page, id, text) =>
  page.waitForFunction(
    (selector, wanted) => document.querySelector(selector).textContent.includes(wanted),
    {},
    byId(id),
    text,
  );

test("a line of another year is not on the time axis, and the page says so", async () => {
  const { page, complaints } = await show("stray.log", line({ day: "22/Jan/2010" }) + HOUR);
  assert.match(await textOf(page, "chart-readout"), /Not shown: 1 request dated too far/);
  assert.equal(await valueOf(page, "range-from"), "2021-01-22 01:00:00");
  assert.equal(await valueOf(page, "range-until"), "2021-01-22 01:59:55");
  assert.equal(await textOf(page, "chart-title"), "Requests per 5 seconds");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a filter keeps the time axis, the focus and the count for screen readers", async () => {
  const { page, complaints } = await show("hour.log", HOUR);
  const axis = await chartStart(page);
  const range = await valueOf(page, "range-until");
  await page.focus(`${byId("status-rows")} [data-value="503"] .value-name`);
  await page.keyboard.press("Enter");
  await waitForText(page, "announcer", "1 request shown");
  assert.equal(await textOf(page, "requests"), "1");
  assert.equal(await chartStart(page), axis);
  assert.equal(await valueOf(page, "range-until"), range);
  const focused = await page.evaluate(() => document.activeElement.closest("tr")?.dataset.value);
  assert.equal(focused, "503");

  await page.focus(byId("clear-filters"));
  await page.keyboard.press("Enter");
  await waitForText(page, "announcer", "600 requests shown");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), "filter-open");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("Escape closes menus wherever the focus is", async () => {
  const { page } = await show("hour.log", HOUR);
  for (const menu of ["add-filter", "export"]) {
    await page.click(`${byId(menu)} summary`);
    await page.focus(byId("range-from"));
    await page.keyboard.press("Escape");
    assert.equal(await page.$eval(byId(menu), ({ open }) => open), false, menu);
  }
  await page.close();
});

test("tables are as high as their values, and browsers and systems are named", async () => {
  const { page } = await show("hour.log", HOUR);
  const shown = (panel) =>
    page.$$eval(`${byId(`${panel}-rows`)} tr`, (rows) => rows.filter((it) => !it.hidden).length);
  assert.equal(await shown("path"), 12);
  assert.equal(await shown("status"), 2);
  assert.equal(await shown("address"), 1);
  await page.click(`${byId("status-rows")} [data-value="503"] .value-name`);
  await waitForText(page, "announcer", "1 request shown");
  await page.waitForFunction(
    (selector) => document.querySelectorAll(`${selector} tr:not([hidden])`).length === 3,
    {},
    byId("lines"),
  );
  await page.click(byId("clear-filters"));
  await waitForText(page, "announcer", "600 requests shown");
  const first = (panel) => textOf(page, `${panel}-rows`);
  assert.match(await first("browser"), /^Firefox600100\.0 %/);
  assert.match(await first("system"), /^Windows 10600100\.0 %/);
  await page.close();
});

test("a path with a character that reverses text is shown with its code", async () => {
  const { page } = await show("reversed.log", line({ path: "/a\u202egpj.exe" }));
  const name = await page.$eval(`${byId("path-rows")} .value-name`, (it) => it.textContent);
  assert.equal(name, "/a\\u{202e}gpj.exe");
  await waitForText(page, "lines", "/a\\u{202e}gpj.exe");
  await page.close();
});

test("a compressed file that ends early is shown up to there", async () => {
  const whole = gzipSync(Buffer.from(HOUR));
  const cut = whole.subarray(0, whole.length - 40);
  const { page } = await show("cut.log.gz", cut);
  assert.match(
    await textOf(page, "damage"),
    new RegExp(`^cut\\.log\\.gz ends early, after ${cut.length.toLocaleString("en-US")} bytes\\.`),
  );
  const requests = Number(await page.$eval(byId("requests"), ({ dataset }) => dataset.value));
  assert.ok(requests > 100 && requests < 600, `${requests}`);
  await page.close();
});

test("the error for an empty file can be seen", async () => {
  const { page } = await show("hour.log", HOUR);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  const empty = join(folder, "empty.log");
  await writeFile(empty, "");
  await chooseFile(page, empty);
  await waitForText(page, "trouble-title", "This file is empty");
  const { top, bottom } = await page.$eval(byId("trouble"), (it) => {
    const { top, bottom } = it.getBoundingClientRect();
    return { top, bottom };
  });
  assert.ok(top >= 0 && bottom <= 900, `${top} to ${bottom}`);
  await page.close();
});

test("nothing is wider than a window of 320 pixels", async () => {
  const { page } = await show("hour.log", HOUR, { width: 320, height: 640 });
  const widths = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.deepEqual(await widths(), [320, 320]);
  for (const menu of ["add-filter", "export"]) {
    await page.click(`${byId(menu)} summary`);
    assert.deepEqual(await widths(), [320, 320], menu);
    await page.keyboard.press("Escape");
  }
  await page.close();
});
