// Compares the figures of the log page with an oracle, and checks how odd lines are handled.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertShows } from "./log-panels.mjs";
import { readLog, top } from "./oracle.mjs";
import {
  byId,
  chooseFile,
  figure,
  openPage,
  rowsOf,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
  waitForState,
  writeLog,
} from "./support.mjs";

let chromium, folder, log, server;
/** The log as parsed by the oracle. */
let oracle;

before(async () => {
  folder = await temporaryFolder();
  log = await writeLog(folder.path);
  oracle = readLog(await readFile(log.path, "latin1"));
  server = await startServer();
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await folder?.remove();
});

/** Opens the page and reads the log. */
async function openLog() {
  const opened = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(opened.page, log.path);
  await waitForState(opened.page, "finished", "failed");
  return opened;
}

test("every panel shows the oracle's figures", async () => {
  const { page, complaints } = await openLog();
  await assertShows(page, oracle.requests);
  assert.equal(await figure(page, "unparsed"), oracle.unparsed);
  for (const panel of ["host", "latency"]) {
    assert.match(await textOf(page, `${panel}-empty`), /^The log format /);
  }
  assert.deepEqual(complaints, []);
  await page.close();
});

test("every panel shows the counts of a Python script", async () => {
  const script = new URL("../../../crates/linerate-logview/tests/oracle.py", import.meta.url);
  const output = execFileSync("python3", ["-B", script.pathname], {
    input: readFileSync(log.path),
    maxBuffer: 64 << 20,
  });
  const [figures] = JSON.parse(output);
  const { page } = await openLog();
  assert.equal(await figure(page, "requests"), figures.requests);
  assert.equal(await figure(page, "unparsed"), figures.unparsed);
  assert.equal(await figure(page, "bytes-sent"), figures.bytes_sent);
  const tops = Object.entries(figures.panels).map(([panel, { top }]) => [panel, top]);
  tops.push(["bots", figures.bots.top]);
  for (const [panel, top] of tops) {
    const rows = await rowsOf(page, panel);
    assert.ok(rows.length >= Math.min(top.length, 6), `${panel} has ${rows.length} rows`);
    assert.deepEqual(
      rows.map(({ value, cells: [requests, , bytes] }) => ({ value, requests, bytes })),
      top.slice(0, rows.length).map(({ value, requests, bytes }) => ({ value, requests, bytes })),
      panel,
    );
  }
  await page.close();
});

test("figures and charts can be saved", async () => {
  const { page } = await openLog();
  const downloads = join(folder.path, "downloads");
  const session = await chromium.browser.target().createCDPSession();
  await session.send("Browser.setDownloadBehavior", {
    behavior: "allow",
    downloadPath: downloads,
    eventsEnabled: true,
  });
  const saved = async (id) => {
    const done = new Promise((resolve) =>
      session.on("Browser.downloadProgress", ({ state }) => state === "completed" && resolve()),
    );
    await page.click(`${byId("export")} summary`);
    await page.click(byId(id));
    await done;
    session.removeAllListeners("Browser.downloadProgress");
  };
  for (const id of ["export-json", "export-csv", "export-timeline", "export-svg", "export-png"]) {
    await saved(id);
  }
  assert.deepEqual((await readdir(downloads)).sort(), [
    "access-panels.csv",
    "access-timeline.csv",
    "access.json",
    "access.png",
    "access.svg",
  ]);
  const read = (name) => readFile(join(downloads, name), "utf8");
  const { figures } = JSON.parse(await read("access.json"));
  assert.equal(figures.requests, oracle.requests.length);
  const [head, ...rows] = (await read("access-panels.csv")).trimEnd().split("\r\n");
  assert.equal(head, "panel,value,requests,bytes,errors");
  assert.ok(
    rows.some((row) => row.startsWith(`status,${top(oracle.requests, "status").top[0].value},`)),
  );
  const [, ...buckets] = (await read("access-timeline.csv")).trimEnd().split("\r\n");
  const requests = buckets.flatMap((row) => row.split(",").slice(1, -1).map(Number));
  assert.equal(
    requests.reduce((a, b) => a + b),
    oracle.requests.length,
  );
  const svg = await read("access.svg");
  const wellFormed = await page.evaluate(
    (text) =>
      new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror") === null,
    svg,
  );
  assert.ok(wellFormed);
  assert.equal((await readFile(join(downloads, "access.png"))).subarray(1, 4).toString(), "PNG");
  await page.close();
});

test("every line is a request, blank, or unparsed for a reason", async () => {
  const good = (path) =>
    `192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "GET ${path} HTTP/1.1" 200 5 "-" "t"`;
  const lines = [
    ...Array.from({ length: 60 }, (_, i) => good(`/${i}`)),
    good("/with\\x22quote"),
    `2001:db8::1 - - [22/Jan/2021:01:47:06 +0000] "" 400 0 "-" "-"`,
    `192.0.2.8 - - [22/Jan/2021:01:47:07 +0000] "\\x16\\x03\\x01\\x02\\x00" 400 157 "-" "-"`,
    good(`/${"x".repeat(65_000)}`),
    `${good("/crlf")}\r`,
    "",
    "just text",
    "\0\0\0\0",
    `192.0.2.9 - - [99/Foo/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 5 "-" "t"`,
    `192.0.2.9 - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 2x0 5 "-" "t"`,
    good("/the-last-without-its-end"),
  ];
  const path = join(folder.path, "odd.log");
  await writeFile(path, lines.join("\n"), "latin1");
  const { page, complaints } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed");
  const [requests, unparsed] = [await figure(page, "requests"), await figure(page, "unparsed")];
  assert.equal(await textOf(page, "requests-note"), `in ${lines.length} lines`);
  assert.match(await textOf(page, "unparsed-note"), /, 1 blank$/);
  assert.equal(requests + unparsed + 1, lines.length);
  assert.equal(unparsed, 4);
  const reasons = await textOf(page, "unparsed-reasons");
  const counted = [...reasons.matchAll(/(\d+) × /g)].map(([, count]) => Number(count));
  assert.equal(
    counted.reduce((a, b) => a + b),
    unparsed,
  );
  const shown = await page.$$eval(byId("unparsed-line"), (all) =>
    all.map(({ dataset }) => Number(dataset.value)),
  );
  assert.deepEqual(shown, [67, 68, 69, 70]);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("percentiles of durations are within their error bound", async () => {
  const path = join(folder.path, "timed.log");
  const ms = Array.from({ length: 5_000 }, (_, i) => 1 + ((i * 7_919) % 5_000));
  const line = (duration, i) =>
    JSON.stringify({
      time_iso8601: new Date(Date.UTC(2021, 0, 22) + i * 1_000)
        .toISOString()
        .replace(".000Z", "+00:00"),
      remote_addr: `192.0.2.${i % 50}`,
      request: `GET /timed/${i % 3} HTTP/1.1`,
      status: "200",
      body_bytes_sent: "10",
      request_time: (duration / 1_000).toFixed(3),
      host: `host-${i % 4}.example`,
    });
  await writeFile(path, `${ms.map(line).join("\n")}\n`);
  const { page } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed");
  assert.equal(await figure(page, "requests"), 5_000);
  for (const [id, exact] of [
    ["p50", 2_500_000],
    ["p90", 4_500_000],
    ["p99", 4_950_000],
    ["max", 5_000_000],
  ]) {
    const shown = await figure(page, `latency-${id}`);
    assert.ok(Math.abs(shown - exact) <= 0.02 * exact, `${id}: ${shown} for ${exact}`);
  }
  assert.deepEqual(
    (await rowsOf(page, "host")).map(({ value, cells: [requests] }) => [value, requests]),
    [0, 1, 2, 3].map((i) => [`host-${i}.example`, 1_250]),
  );
  await page.close();
});

test("nothing moves while figures arrive", async () => {
  const { page } = await openPage(chromium.browser, `${server.url}/logs`);
  await chooseFile(page, log.path);
  await page.waitForSelector('body[data-figures="some"]');
  await page.evaluate(() => {
    window.shifts = [];
    new PerformanceObserver((list) => window.shifts.push(...list.getEntries())).observe({
      type: "layout-shift",
    });
  });
  await waitForState(page, "finished", "failed");
  // Wait for two more frames, with the mouse away from anything whose movement a click would
  // excuse.
  await page.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
  );
  const moved = await page.evaluate(() =>
    window.shifts.map(({ value, sources }) => [
      value,
      sources.map(({ node }) => node?.className ?? node?.nodeName),
    ]),
  );
  assert.ok(moved.reduce((all, [value]) => all + value, 0) < 0.005, JSON.stringify(moved));
  await page.close();
});
