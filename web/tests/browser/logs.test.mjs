// The log page in a real browser, against the real server.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFile, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import {
  byId,
  chooseFile,
  columnPixels,
  dropFile,
  figure,
  focused,
  openPage,
  startBrowser,
  startServer,
  tabTo,
  temporaryFolder,
  rowsOf,
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

const openLogs = (options) => openPage(chromium.browser, `${server.url}/logs`, options);

async function assertFigures(page) {
  for (const [id, expected] of Object.entries(log.figures)) {
    assert.equal(await figure(page, id), expected, id);
  }
  assert.equal(await textOf(page, "requests"), log.figures.requests.toLocaleString("en-US"));
  const bytesSent = log.figures["bytes-sent"].toLocaleString("en-US");
  assert.equal(await textOf(page, "bytes-sent-note"), `${bytesSent} bytes`);
  assert.equal(await figure(page, "percent"), 100);
  assert.ok((await columnPixels(page, "2xx")) > 500, "the chart has painted its columns");
}

test("a chosen log shows its figures", async (t) => {
  t.diagnostic(log.real ? "with the real log" : "with a generated log, as the real one is absent");
  const { page, complaints } = await openLogs();
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  await assertFigures(page);
  assert.equal(await textOf(page, "chart-title"), "Requests per minute");
  assert.equal(await textOf(page, "unparsed-line"), "Line 1");
  assert.match(await textOf(page, "unparsed-text"), /logfile turned over/);
  assert.notEqual(await textOf(page, "unparsed-reason"), "");
  if (log.real) {
    const classes = { "1xx": 1_595, "2xx": 26_486, "3xx": 4_977, "4xx": 407, "5xx": 3, other: 0 };
    for (const [name, expected] of Object.entries(classes)) {
      assert.equal(await figure(page, `class-${name}`), expected, name);
    }
  }
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a dropped log shows the same figures", async () => {
  const { page, complaints } = await openLogs();
  await dropFile(page, log.path);
  await waitForState(page, "finished", "failed");
  await assertFigures(page);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("both ways of reading give the same figures", async () => {
  for (const way of ["slices", "stream"]) {
    const { page } = await openPage(chromium.browser, `${server.url}/logs?reader=${way}`);
    await recordReaders(page);
    await chooseFile(page, log.path);
    await waitForState(page, "finished", "failed");
    // On a machine that stalls, slices may rightly have replaced the stream in the meantime.
    assert.equal(await page.evaluate(() => window.readers[0]), way);
    await assertFigures(page);
    await page.close();
  }
});

test("a file can be chosen, the chart read and a class hidden by keyboard alone", async () => {
  const { page } = await openLogs();
  const [dialog] = await Promise.all([
    page.waitForFileChooser(),
    (async () => {
      await tabTo(page, "choose");
      await page.keyboard.press("Enter");
    })(),
  ]);
  await dialog.accept([log.path]);
  await waitForState(page, "finished", "failed");
  assert.equal(await focused(page), "choose-another", "focus stays where Cancel was");

  await tabTo(page, "chart");
  await page.keyboard.press("Home");
  const first = await textOf(page, "chart-readout");
  assert.match(first, /^22 Jan 2021 \d\d:\d\d UTC: .*\d × \dxx/);
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await textOf(page, "chart-readout"), first);

  assert.ok((await columnPixels(page, "2xx")) > 500);
  const key = await page.$(`button:has(${byId("class-2xx")})`);
  await key.focus();
  await page.keyboard.press("Space");
  assert.equal(await key.evaluate((button) => button.ariaPressed), "false");
  await page.waitForFunction(() => true, { polling: "raf" });
  assert.equal(await columnPixels(page, "2xx"), 0, "the hidden class is gone from the chart");
  await page.close();
});

test("a file that is not an access log is refused on the page", async () => {
  const path = join(folder.path, "photo.jpg");
  const noise = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * i * 31 + i) % 256));
  await writeFile(path, Buffer.concat([Buffer.from("\xff\xd8\xff\xe0", "latin1"), noise]));
  const { page } = await openLogs();
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed");
  assert.equal(await textOf(page, "trouble-title"), "This is not an access log in a known format");
  assert.equal(
    await page.$eval(byId("trouble"), (box) => box.role ?? box.getAttribute("role")),
    "alert",
  );
  assert.equal(await page.$eval(byId("retry"), (button) => button.hidden), true);

  // The page is not stuck: the next file is read as usual.
  await chooseFile(page, log.path);
  await waitForState(page, "finished");
  await assertFigures(page);
  assert.equal(await page.$eval(byId("trouble"), (box) => box.hidden), true);
  await page.close();
});

test("an empty file is refused before it is sent", async () => {
  const empty = join(folder.path, "empty.log");
  await writeFile(empty, "");
  const { page } = await openLogs();
  await chooseFile(page, empty);
  await page.waitForSelector(`${byId("trouble")}:not([hidden])`);
  assert.equal(await textOf(page, "trouble-title"), "This file is empty");
  await page.close();
});

test("several files, some compressed, are read as one log", async () => {
  const text = await readFile(log.path);
  const packed = join(folder.path, "access.log.1.gz");
  const compressed = join(folder.path, "access.log.2.zst");
  await writeFile(packed, gzipSync(text));
  await promisify(execFile)("zstd", ["-q", "-f", log.path, "-o", compressed]);
  const { page, complaints } = await openLogs();
  await chooseFile(page, log.path, packed, compressed);
  await waitForState(page, "finished", "failed");
  assert.equal(await textOf(page, "file-name"), "access.log and 2 more");
  assert.equal(await figure(page, "requests"), 3 * log.figures.requests);
  assert.equal(await figure(page, "bytes-sent"), 3 * log.figures["bytes-sent"]);
  assert.equal(await figure(page, "unique-addresses"), log.figures["unique-addresses"]);
  assert.equal(await figure(page, "unparsed"), 3 * log.figures.unparsed);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a log of unknown format is read once its format is entered", async () => {
  const path = join(folder.path, "own.log");
  const line = (i) =>
    `22/Jan/2021:01:47:${String(i % 60).padStart(2, "0")} +0000|203.0.113.${i % 9}|GET /own/${i % 4} HTTP/2|${200 + (i % 2)}|17\n`;
  await writeFile(path, Array.from({ length: 900 }, (_, i) => line(i)).join(""));
  const { page } = await openLogs();
  await chooseFile(page, path);
  await waitForState(page, "failed");
  assert.equal(await textOf(page, "trouble-title"), "This is not an access log in a known format");
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent.includes("|203.0.113.0|"),
    {},
    byId("format-lines"),
  );
  await page.type(byId("format-input"), "nonsense without a variable");
  await page.keyboard.press("Enter");
  await page.waitForFunction(
    (selector) => document.querySelector(selector).textContent.includes("understand that format"),
    {},
    byId("trouble-title"),
  );
  await page.$eval(byId("format-input"), (input) => (input.value = ""));
  await page.type(
    byId("format-input"),
    "$time_local|$remote_addr|$request|$status|$body_bytes_sent",
  );
  await page.keyboard.press("Enter");
  await waitForState(page, "finished");
  assert.equal(await figure(page, "requests"), 900);
  assert.equal(await figure(page, "unique-addresses"), 9);
  assert.equal(await figure(page, "bytes-sent"), 900 * 17);
  await page.close();
});

test("lines are shown as text, not as markup", async () => {
  const path = join(folder.path, "markup.log");
  const request = `10.0.0.1 - - [22/Jan/2021:01:47:05 +0000] "GET /<i>a</i> HTTP/1.1" 200 5 "-" "t"\n`;
  await writeFile(path, request.repeat(50) + "<img src=x onerror=alert(1)>\n");
  const { page } = await openLogs();
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed");
  assert.equal(await textOf(page, "unparsed-text"), "<img src=x onerror=alert(1)>");
  assert.equal(await page.$(`${byId("unparsed-lines")} img, ${byId("path-rows")} i`), null);
  await page.close();
});

test("after cancelling, what was read can be filtered until the page is closed", async (t) => {
  const path = await writeLargeLog(folder.path, log.path, LARGE_BYTES);
  const gate = await startGate(server.url);
  t.after(() => gate.stop());
  const { page } = await openPage(chromium.browser, `${gate.url}/logs`);
  const overview = await openPage(chromium.browser, server.url);
  await page.bringToFront();
  await chooseFile(page, path);
  await waitUntilUnderWay(page);
  await waitForUploads(overview.page, 1);
  await page.click(byId("cancel"));
  await waitForState(page, "cancelled");
  assert.match(await textOf(page, "time-left"), /^cancelled after /);
  gate.open();
  // The figures of what the server has read are final once the address can be filtered.
  await page.$eval(`${byId("method-rows")} .value-name`, (button) => button.click());
  await page.waitForSelector('body[data-filtering="off"]');
  assert.equal(await page.$$eval(byId("filter"), (chips) => chips.length), 1);
  const [shown, [first]] = [await figure(page, "requests"), await rowsOf(page, "method")];
  assert.ok(shown > 0 && first.cells.includes(shown), "all requests have the chosen method");
  assert.equal(await textOf(page, "objection"), "");
  await page.close();
  await waitForUploads(overview.page, 0);
  await overview.page.close();
});

test("after the server has dropped a log, a filter is refused with the reason", async (t) => {
  const brief = await startServer({ flags: ["--set", "logs.idle_s=1"] });
  t.after(() => brief.stop());
  const { page } = await openPage(chromium.browser, `${brief.url}/logs`);
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  const whole = await figure(page, "requests");
  await page.waitForSelector(`${byId("trouble")}:not([hidden])`);
  await page.$eval(`${byId("method-rows")} .value-name`, (button) => button.click());
  await page.waitForSelector(`${byId("objection")}:not(:empty)`);
  assert.match(
    await textOf(page, "objection"),
    /^The filter method == "\w+" was not applied. The server no longer keeps this log; /,
  );
  assert.equal(await page.$$eval(byId("filter"), (chips) => chips.length), 0);
  assert.equal(await page.evaluate(() => location.hash), "");
  assert.equal(await figure(page, "requests"), whole);
  await page.close();
});

test("a file that changes while it is read is reported as unreadable", async (t) => {
  const path = await writeLargeLog(folder.path, log.path, LARGE_BYTES);
  const gate = await startGate(server.url);
  t.after(() => gate.stop());
  const { page } = await openPage(chromium.browser, `${gate.url}/logs`);
  await chooseFile(page, path);
  await waitUntilUnderWay(page);
  await appendFile(path, "one more line\n");
  gate.open();
  await waitForState(page, "finished", "failed");
  assert.equal(await textOf(page, "trouble-title"), "The file can no longer be read");
  await page.close();
});

test("after the server has restarted, the progress is shown and a retry is offered", async (t) => {
  const path = await writeLargeLog(folder.path, log.path, LARGE_BYTES);
  const doomed = await startServer();
  t.after(() => doomed.stop());
  const gate = await startGate(doomed.url);
  t.after(() => gate.stop());
  const { page } = await openPage(chromium.browser, `${gate.url}/logs`);
  await chooseFile(page, path);
  await waitUntilUnderWay(page);
  await doomed.kill();
  await page.waitForSelector('body[data-connection="lost"]');
  assert.equal(await textOf(page, "time-left"), "reconnecting …");

  const revived = await startServer();
  t.after(() => revived.stop());
  gate.leadTo(revived.url);
  await waitForState(page, "failed");
  assert.equal(await textOf(page, "trouble-title"), "The connection was lost");
  const acknowledged = (await figure(page, "acknowledged")).toLocaleString("en-US");
  assert.ok((await textOf(page, "trouble-detail")).includes(`acknowledged ${acknowledged} of `));

  await page.click(byId("retry"));
  await waitUntilUnderWay(page);
  await page.click(byId("cancel"));
  await waitForState(page, "cancelled");
  await page.close();
});

test("an unreachable server is distinguished from a lost one", async (t) => {
  const gone = await startServer();
  const gate = await startGate(gone.url);
  t.after(() => gate.stop());
  const { page } = await openPage(chromium.browser, `${gate.url}/logs`);
  await gone.kill();
  await chooseFile(page, log.path);
  await waitForState(page, "failed");
  assert.equal(await textOf(page, "trouble-title"), "Cannot reach the server");
  await page.close();
});

test("the first chart is shown before most of the file is sent", async (t) => {
  const path = await writeLargeLog(folder.path, log.path, LARGE_BYTES);
  const gate = await startGate(server.url);
  t.after(() => gate.stop());
  const { page } = await openPage(chromium.browser, `${gate.url}/logs`);
  await chooseFile(page, path);
  await page.waitForFunction(
    (selector) => Number(document.querySelector(selector).dataset.buckets) > 0,
    {},
    byId("chart"),
  );
  assert.equal(await page.$eval("body", (body) => body.dataset.state), "uploading");
  assert.ok((await columnPixels(page, "2xx")) > 100);
  await page.click(byId("cancel"));
  await page.close();
});

test("an upload continues after its connection was cut, with the same figures", async (t) => {
  const path = await writeLargeLog(folder.path, log.path, LARGE_BYTES);
  const times = (await stat(path)).size / (await stat(log.path)).size;
  const gate = await startGate(server.url);
  t.after(() => gate.stop());
  const { page, complaints } = await openPage(chromium.browser, `${gate.url}/logs`);
  await chooseFile(page, path);
  await waitUntilUnderWay(page);
  for (const bytes of [3_333_333, 700_001, Infinity]) {
    const before = await figure(page, "acknowledged");
    gate.cut(bytes);
    await page.waitForFunction(
      (selector, least) =>
        document.body.dataset.state === "finished" ||
        Number(document.querySelector(selector).dataset.value) > least,
      { polling: 20 },
      byId("acknowledged"),
      before,
    );
  }
  await waitForState(page, "finished", "failed");
  for (const id of ["requests", "unparsed", "bytes-sent"]) {
    assert.equal(await figure(page, id), log.figures[id] * times, id);
  }
  assert.equal(await figure(page, "unique-addresses"), log.figures["unique-addresses"]);
  assert.deepEqual(
    complaints.filter((text) => !/WebSocket connection/.test(text)),
    [],
  );
  await page.close();
});

/** Collects the ways of reading that the page reports in `window.readers`. */
function recordReaders(page) {
  return page.$eval(byId("progress"), (bar) => {
    window.readers = [];
    new MutationObserver(() => window.readers.push(bar.dataset.reader)).observe(bar, {
      attributes: true,
      attributeFilter: ["data-reader"],
    });
  });
}

/** Waits until an overview shows `count` running uploads; it may be in the background. */
function waitForUploads(page, count) {
  return page.waitForFunction(
    (selector, wanted) => document.querySelector(selector).dataset.value === wanted,
    { polling: 100 }, // Nothing is drawn in the background.
    byId("uploads"),
    String(count),
  );
}
