// A report of `linerate logs --html`, opened from the disk without any network: its figures are
// those that `linerate logs --json` prints for the same filters.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  byId,
  figure,
  openPage,
  PROGRAM,
  rowsOf,
  startBrowser,
  temporaryFolder,
  textOf,
  writeLog,
} from "./support.mjs";

const PICTURES = fileURLToPath(new URL("../../.screenshots/", import.meta.url));

let chromium, folder, log;

before(async () => {
  await mkdir(PICTURES, { recursive: true });
  folder = await temporaryFolder();
  log = await writeLog(folder.path);
  // Every request that leaves the machine or goes to a server fails.
  const noNetwork = "--host-resolver-rules=MAP * ~NOTFOUND";
  chromium = await startBrowser({ extraArguments: [noNetwork, "--proxy-server=127.0.0.1:9"] });
});

after(async () => {
  await chromium?.close();
  await folder?.remove();
});

function logs(...options) {
  return execFileSync(PROGRAM, ["logs", log.path, ...options], {
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
}

/** Writes a report with the size limit `bytesMax`, and returns its path. */
function writeReport(name, bytesMax = 5_000_000) {
  const path = join(folder.path, name);
  logs("--html", path, "--html-bytes-max", String(bytesMax));
  return path;
}

/** Opens a report with a view; `requests` collects the addresses that the page requests. */
async function openReport(path, fragment = "", look = {}) {
  const opened = await openPage(chromium.browser, "about:blank", look);
  const requests = [];
  opened.page.on("request", (request) => requests.push(request.url()));
  await opened.page.goto(`${pathToFileURL(path)}${fragment === "" ? "" : `#${fragment}`}`);
  await waitForFigures(opened.page);
  return { ...opened, requests };
}

/** Waits until the figures of the view are shown. */
function waitForFigures(page) {
  return page.waitForFunction(
    (requests) =>
      document.body.dataset.filtering === "off" &&
      document.querySelector(requests)?.dataset.value !== undefined,
    {},
    byId("requests"),
  );
}

/** Waits until the page shows the number of requests in `expected`, and compares the rest. */
async function assertShows(page, expected) {
  await page.waitForFunction(
    (selector, wanted) => document.querySelector(selector)?.dataset.value === wanted,
    {},
    byId("requests"),
    String(expected.requests),
  );
  assert.equal(await figure(page, "bytes-sent"), expected.bytes_sent);
  assert.equal(await figure(page, "unique-addresses"), expected.unique_addresses);
  assert.equal(await figure(page, "unparsed"), expected.unparsed);
  for (const name of ["1xx", "2xx", "3xx", "4xx", "5xx"]) {
    assert.equal(await figure(page, `class-${name}`), expected.status_classes[name], name);
  }
  for (const name of ["path", "address", "agent", "referrer", "status"]) {
    const shown = await rowsOf(page, name);
    const top = expected.panels[name].top.slice(0, shown.length);
    assert.equal(shown.length, Math.min(12, expected.panels[name].top.length), name);
    assert.deepEqual(
      shown.map(({ value, cells }) => [value, cells[0]]),
      top.map(({ value, requests }) => [value, requests]),
      name,
    );
  }
}

test("a report has the figures of the program for any filter, and requests nothing", async () => {
  const path = writeReport("report.html");
  const whole = JSON.parse(logs("--json"));
  const middle = Math.floor((whole.first_time + whole.last_time) / 2);
  const address = whole.panels.address.top[0].value;
  const views = [
    {},
    { filters: ["status >= 400"] },
    { filters: [`address == "${address}"`, 'method in ["GET", "HEAD"]'] },
    { filters: ['path.contains("a") && !(status_class == "3xx") || bot != ""'] },
    { from: middle, filters: ["bytes_sent > 500"] },
    { until: middle },
    { filters: ['path == "/there is no such path"'] },
  ];
  for (const { from, until, filters = [] } of views) {
    const fragment = new URLSearchParams(filters.map((filter) => ["filter", filter]));
    fragment.append("from", String(from ?? whole.first_time));
    fragment.append("until", String(until ?? whole.last_time + 1));
    const options = filters.flatMap((filter) => ["--filter", filter]);
    const range = ["--from", fragment.get("from"), "--until", fragment.get("until")];
    const expected = JSON.parse(logs("--json", ...range, ...options));
    const { page, complaints, requests } = await openReport(path, fragment.toString());
    await assertShows(page, expected);
    assert.deepEqual(complaints, []);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith("data:")),
      [`${pathToFileURL(path)}#${fragment}`],
    );
    await page.close();
  }
});

test("a value is clicked, the range changes, and a comparison is shown", async () => {
  const path = writeReport("clicked.html");
  const whole = JSON.parse(logs("--json"));
  const { page, complaints } = await openReport(path);
  await assertShows(page, whole);
  assert.match(await textOf(page, "note"), /^Filters cover all requests/);

  await page.click(`${byId("status-rows")} tr:first-child button`);
  const { value } = whole.panels.status.top[0];
  const filter = `status == ${value}`;
  await assertShows(page, JSON.parse(logs("--json", "--filter", filter)));
  assert.equal(await textOf(page, "filter"), `${filter}×`);

  const middle = Math.floor((whole.first_time + whole.last_time) / 2);
  const moment = new Date(middle * 1_000).toISOString().slice(0, 19).replace("T", " ");
  await page.$eval(byId("range-from"), (input) => (input.value = ""));
  await page.type(byId("range-from"), moment);
  await page.keyboard.press("Enter");
  const half = JSON.parse(logs("--json", "--filter", filter, "--from", String(middle)));
  await assertShows(page, half);

  await page.select(byId("compare"), "previous");
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent.trim() !== "",
    {},
    byId("requests-change"),
  );
  assert.deepEqual(complaints, []);

  await page.goBack();
  await page.goBack();
  await page.goBack();
  await assertShows(page, whole);
  await page.close();
});

test("a wrong filter is explained, and the figures stay", async () => {
  const { page } = await openReport(writeReport("wrong.html"));
  await page.click(byId("filter-open"));
  await page.type(byId("filter-text"), "status = 5");
  await page.keyboard.press("Enter");
  await page.waitForFunction(
    (selector) => /column 8: found =/.test(document.querySelector(selector).textContent),
    {},
    byId("filter-problem"),
  );
  await assertShows(page, JSON.parse(logs("--json")));
  await page.close();
});

test("a report with little space says what its filters cover", async () => {
  const whole = JSON.parse(logs("--json"));
  const exact = (await readFile(writeReport("exact.html"))).length;

  const minutes = await openReport(writeReport("minutes.html", exact - 4));
  await assertShows(minutes.page, whole);
  assert.match(await textOf(minutes.page, "note"), /times rounded down to minutes/);
  await minutes.page.close();

  const none = await openReport(writeReport("none.html", 1));
  await assertShows(none.page, whole);
  assert.match(await textOf(none.page, "filters-off"), /unavailable.*1 bytes/);
  await none.page.close();
});

for (const [width, height] of [
  [390, 844],
  [1440, 900],
]) {
  for (const scheme of ["light", "dark"]) {
    test(`a report fits ${width} px in ${scheme}`, async () => {
      const path = writeReport("look.html");
      const look = { width, height, scheme };
      const { page, complaints } = await openReport(path, "filter=status+%3E%3D+400", look);
      await assertShows(page, JSON.parse(logs("--json", "--filter", "status >= 400")));
      const [content, shown] = await page.evaluate(() => [
        document.documentElement.scrollWidth,
        document.documentElement.clientWidth,
      ]);
      assert.ok(content <= shown, `${content} px of content in ${shown} px`);
      const picture = join(PICTURES, `report-${width}-${scheme}.png`);
      await page.screenshot({ path: picture, fullPage: true });
      assert.deepEqual(complaints, []);
      await page.close();
    });
  }
}
