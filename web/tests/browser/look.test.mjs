// The look of the pages: no sideways scrolling, no errors, and screenshots for people to judge.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  byId,
  chooseFile,
  columnPixels,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
  untilFigure,
  untilText,
  waitForState,
  writeLog,
} from "./support.mjs";

const PICTURES = fileURLToPath(new URL("../../.screenshots/", import.meta.url));

let chromium, folder, log, server;

before(async () => {
  await mkdir(PICTURES, { recursive: true });
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

async function assertFits(page, what) {
  const [content, window] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(content <= window, `${what}: ${content} px of content in ${window} px`);
}

/** Fails if visible content has moved since the page was opened. */
async function assertStays(page, what) {
  const shifts = await page.evaluate(async () => {
    const seen = [];
    const observer = new PerformanceObserver((list) => seen.push(...list.getEntries()));
    observer.observe({ type: "layout-shift", buffered: true });
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    seen.push(...observer.takeRecords());
    return seen.map(({ value, sources }) => [value, sources.map(({ node }) => node?.className)]);
  });
  // A figure that grows by a digit shifts by a thousandth; people are annoyed by a tenth.
  const moved = shifts.reduce((sum, [value]) => sum + value, 0);
  assert.ok(moved < 0.02, `${what} moved: ${JSON.stringify(shifts)}`);
}

for (const scheme of ["light", "dark"]) {
  for (const [width, height] of [
    [360, 740],
    [390, 844],
    [1280, 900],
    [1920, 1080],
  ]) {
    test(`all pages fit ${width} px in ${scheme}`, async () => {
      const look = { width, height, scheme };
      const picture = (page, name) =>
        page.screenshot({ path: join(PICTURES, `${name}-${width}-${scheme}.png`), fullPage: true });

      const overview = await openPage(chromium.browser, server.url, look);
      await overview.page.waitForSelector('body[data-live="live"]');
      await overview.page.waitForFunction(
        (selector) => Number(document.querySelector(selector).dataset.value) > 0,
        {},
        byId("chart-rate-now"),
      );
      await assertFits(overview.page, "overview");
      await assertStays(overview.page, "overview");
      await picture(overview.page, "overview");
      assert.deepEqual(overview.complaints, []);

      const channel = `${server.url}/channel?name=demo:look`;
      const watched = await openPage(chromium.browser, channel, look);
      await untilText(watched.page, "state", "live");
      await watched.page.click(byId("publish"));
      await untilText(watched.page, "message-text", '{"hello":"world"}');
      await watched.page.$eval(".message", (details) => (details.open = true));
      await untilFigure(watched.page, "presence-state", 1);
      await assertFits(watched.page, "channel");
      await assertStays(watched.page, "channel");
      await picture(watched.page, "channel");
      assert.deepEqual(watched.complaints, []);
      await watched.page.close();

      const admin = await openPage(chromium.browser, `${server.url}/admin`, look);
      await admin.page.waitForSelector('body[data-state="open"][data-live="live"]');
      await admin.page.waitForSelector(`${byId("connections")} tr:not(.empty)`);
      await assertFits(admin.page, "admin");
      await assertStays(admin.page, "admin");
      await picture(admin.page, "admin");
      assert.deepEqual(admin.complaints, []);
      await admin.page.close();
      await overview.page.close();

      for (const name of ["index", "gateway/protocols", "internals/abuse"]) {
        const book = await openPage(chromium.browser, `${server.url}/docs/${name}.html`, look);
        await assertFits(book.page, name);
        await assertStays(book.page, name);
        await picture(book.page, `docs-${name.replace("/", "-")}`);
        assert.deepEqual(book.complaints, []);
        await book.page.close();
      }

      const { page, complaints } = await openPage(chromium.browser, `${server.url}/logs`, look);
      await assertFits(page, "logs before a file");
      await picture(page, "logs-idle");
      await chooseFile(page, log.path);
      await waitForState(page, "finished", "failed");
      await assertFits(page, "logs with figures");
      await picture(page, "logs");
      assert.deepEqual(complaints, []);
      await page.close();
    });
  }
}

test("the chart follows the window and the colour scheme", async () => {
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  const title = await textOf(page, "chart-title");

  await page.setViewport({ width: 360, height: 740 });
  await page.waitForFunction(
    (selector) => document.querySelector(`${selector} canvas`).clientWidth < 340,
    {},
    byId("chart"),
  );
  await assertFits(page, "logs after the window became narrow");
  if (log.real) {
    assert.equal(title, "Requests per minute");
    // A day has more minutes than this window has columns.
    assert.equal(await textOf(page, "chart-title"), "Requests per 5 minutes");
  }

  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await nextFrame(page);
  assert.ok((await columnPixels(page, "2xx")) > 200, "painted in the dark colours");
  assert.deepEqual(complaints, []);
  await page.close();
});

/** Waits until changes have been drawn. */
function nextFrame(page) {
  return page.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
  );
}
