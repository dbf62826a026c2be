// All values in the order of a figure, latency over time, patterns of paths, browsers and systems
// that filter, and the search in lines.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  byId,
  chooseFile,
  openPage,
  rowsOf,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
  waitForState,
} from "./support.mjs";

const PICTURES = fileURLToPath(new URL("../../.screenshots/", import.meta.url));
const FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:84.0) Gecko/20100101 Firefox/84.0";

let chromium, server, folder, path;

before(async () => {
  await mkdir(PICTURES, { recursive: true });
  server = await startServer();
  chromium = await startBrowser();
  folder = await temporaryFolder();
  path = join(folder.path, "timed.json");
  await writeFile(path, timedLog());
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

/** An hour of requests with durations: 200 users, a frequent page, and a slow report. */
function timedLog() {
  const lines = [];
  for (let i = 0; i < 1_200; i += 1) {
    const [uri, seconds, status, bytes] =
      i % 100 === 7
        ? ["/report", 4.5, 504, 90_000]
        : i % 3 === 0
          ? [`/user/${(i * 7) % 200}`, 0.02, 200, 500]
          : ["/", 0.001 * (1 + (i % 10)), 200, 10];
    const at = new Date(Date.UTC(2021, 0, 22, 1) + i * 3_000).toISOString();
    lines.push(
      JSON.stringify({
        remote_addr: "192.0.2.7",
        time_iso8601: at.replace(/\.\d+Z/, "+00:00"),
        request: `GET ${uri} HTTP/1.1`,
        status,
        body_bytes_sent: bytes,
        request_time: seconds,
        http_user_agent: FIREFOX,
      }),
    );
  }
  return `${lines.join("\n")}\n`;
}

async function openLog(look, keepLines = false) {
  const opened = await openPage(chromium.browser, `${server.url}/logs`, look);
  if (keepLines) {
    await opened.page.$eval(byId("keep-lines"), (box) => (box.checked = true));
  }
  await chooseFile(opened.page, path);
  await waitForState(opened.page, "finished", "failed");
  await waitForFirst(opened.page, "/");
  return opened;
}

/** Waits until this value is the first of the list. */
const waitForFirst = (page, value) =>
  page.waitForFunction(
    (selector, wanted) => document.querySelector(selector)?.dataset.value === wanted,
    {},
    `${byId("values-rows")} tr`,
    value,
  );

const waitForText = (page, id, pattern) =>
  page.waitForFunction(
    (selector, source) => new RegExp(source).test(document.querySelector(selector).textContent),
    {},
    byId(id),
    pattern.source,
  );

const sortOf = (page, key) =>
  page.$eval(byId(`values-by-${key}`), (it) => it.closest("th").getAttribute("aria-sort"));

test("the server sorts all values by any column, and the page says by which", async () => {
  const { page, complaints } = await openLog();
  assert.equal(await sortOf(page, "requests"), "descending");
  assert.equal(await sortOf(page, "mean"), null);
  for (const key of ["bytes", "errors", "mean", "slowest"]) {
    await page.focus(byId(`values-by-${key}`));
    await page.keyboard.press("Enter");
    await waitForFirst(page, "/report");
    assert.equal(await sortOf(page, key), "descending");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      (selector) => document.querySelector(selector).dataset.value !== "/report",
      {},
      `${byId("values-rows")} tr`,
    );
    assert.equal(await sortOf(page, key), "ascending");
    assert.equal(await sortOf(page, "requests"), null);
  }
  await page.click(byId("values-by-mean"));
  await waitForFirst(page, "/report");
  const [report] = await rowsOf(page, "values");
  assert.deepEqual(report.cells.slice(0, 4), [12, 1_080_000, 12, 4_500_000]);
  assert.match(await textOf(page, "values-note"), /^100 of 20\d values · percentiles to ± 1\.0 %$/);

  await page.click(`${byId("values-rows")} [data-value="/report"] .value-name`);
  await waitForText(page, "values-note", /^1 of 1 value/);
  assert.equal(await textOf(page, "filter"), 'path == "/report"×');
  assert.deepEqual(complaints, []);
  await page.close();
});

test("paths are grouped by pattern, and a pattern filters", async () => {
  const { page, complaints } = await openLog();
  await page.select(byId("values-field"), "path_pattern");
  await waitForText(page, "values-note", /^3 of 3 values/);
  const rows = await rowsOf(page, "values");
  assert.deepEqual(
    rows.map(({ value }) => value),
    ["/", "/user/:id", "/report"],
  );
  await page.click(`${byId("values-rows")} [data-value="/user/:id"] .value-name`);
  await waitForText(page, "requests", new RegExp(`^${rows[1].cells[0]}$`));
  assert.equal(await textOf(page, "filter"), 'path_pattern == "/user/:id"×');
  assert.deepEqual(complaints, []);
  await page.close();
});

test("browsers and systems filter", async () => {
  const { page, complaints } = await openLog();
  for (const [panel, value] of [
    ["browser", "Firefox"],
    ["system", "Windows 10"],
  ]) {
    await page.click(`${byId(`${panel}-rows`)} [data-value="${value}"] .value-exclude`);
    await waitForText(page, "requests", /^0$/);
    assert.equal(await textOf(page, "filter"), `${panel} != "${value}"×`);
    await page.click(byId("clear-filters"));
    await waitForText(page, "requests", /^1,200$/);
  }
  assert.deepEqual(complaints, []);
  await page.close();
});

test("latency over time is drawn, and read by keyboard", async () => {
  const { page, complaints } = await openLog();
  await waitForText(page, "latency-time-note", /^to ± 1\.0 %/);
  await page.focus(byId("latency-chart"));
  await page.keyboard.press("Home");
  await waitForText(
    page,
    "latency-readout",
    /^22 Jan 2021 01:00:00 UTC: p50 .* ms, p90 .*, p99 .*, p99\.9 .*; 5 requests$/,
  );
  await page.keyboard.press("ArrowRight");
  await waitForText(page, "latency-readout", /^22 Jan 2021 01:00:15 UTC/);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("lines are searched in any case, and matches are marked", async () => {
  const { page, complaints } = await openLog({}, true);
  await waitForText(page, "lines-note", /of 1,200$/);
  await page.type(byId("lines-search"), "get /REPORT");
  await waitForText(page, "lines-note", /^1 to 12 of 12$/);
  await page.waitForFunction(
    (selector) => {
      const marks = [...document.querySelectorAll(selector)].map((it) => it.textContent);
      return marks.length === 12 && marks.every((it) => it === "GET /report");
    },
    {},
    `${byId("lines")} mark`,
  );
  await page.type(byId("lines-search"), "x");
  await waitForText(page, "lines-empty", /^No line that matches the filters contains this text\.$/);
  assert.deepEqual(complaints, []);
  await page.close();
});

for (const [width, height] of [
  [390, 844],
  [1440, 900],
]) {
  for (const scheme of ["light", "dark"]) {
    test(`values and latencies fit ${width} px in ${scheme}`, async () => {
      const { page } = await openLog({ width, height, scheme });
      await waitForText(page, "latency-time-note", /^to ± 1\.0 %/);
      const [content, shown] = await page.evaluate(() => [
        document.documentElement.scrollWidth,
        document.documentElement.clientWidth,
      ]);
      assert.ok(content <= shown, `${content} px of content in ${shown} px`);
      for (const id of ["values-panel", "latency-time"]) {
        const panel = await page.$(byId(id));
        await panel.screenshot({ path: join(PICTURES, `logs-${id}-${width}-${scheme}.png`) });
      }
      await page.close();
    });
  }
}
