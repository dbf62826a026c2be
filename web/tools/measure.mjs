// Measures how fast the log page sends a file, and what that costs the server: `npm run measure`.
//
// It measures each way of reading, and the choice between them, in each browser, against a server
// that does not parse and against linerate itself (LINERATE_BIN, default
// ../target/release/linerate). linerate also receives the file from a sender without a browser.
// Each round runs all of them in turn, because machines drift. Figures are medians, except for
// memory, which is the maximum. The results are also written as JSON to MEASURE_RECORD (default
// .build/measure.json).
//
// The server that does not parse is the example `discard_log` of linerate-cli (DISCARD_BIN, default
// ../target/release/examples/discard_log). It uses the same library, so that only parsing differs.
//
// MEASURE_BYTES (default 1 GiB) and MEASURE_ROUNDS (default 3) set the amount of work.
// MEASURE_BROWSERS (default chromium,firefox: CHROMIUM_BIN, FIREFOX_BIN) and MEASURE_SERVERS
// (default discard,linerate) select browsers and servers. With MEASURE_LINES=kept the server keeps
// the lines.

import assert from "node:assert/strict";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  byId,
  chooseFile,
  figure,
  startBrowser,
  startFirefox,
  startProgram,
  startServer,
  temporaryFolder,
  waitForState,
  writeLargeLog,
  writeLog,
} from "../tests/browser/support.mjs";
import { uploadDirectly } from "./direct-upload.mjs";
import { ServerProcess } from "./server-process.mjs";

const BYTES = Number(process.env.MEASURE_BYTES ?? 1024 * 1024 * 1024);
const ROUNDS = Number(process.env.MEASURE_ROUNDS ?? 3);
const SERVERS = (process.env.MEASURE_SERVERS ?? "discard,linerate").split(",");
const BROWSERS = (process.env.MEASURE_BROWSERS ?? "chromium,firefox").split(",");
const RECORD =
  process.env.MEASURE_RECORD ?? fileURLToPath(new URL("../.build/measure.json", import.meta.url));
const DISCARD =
  process.env.DISCARD_BIN ??
  fileURLToPath(new URL("../../target/release/examples/discard_log", import.meta.url));
const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const KEEPS_LINES = process.env.MEASURE_LINES === "kept";
const NO_BROWSER = "no browser";
const WAYS = ["slices", "stream", "chosen by the page"];
/** How long a slow machine may take for one file. */
const PATIENCE_MS = 600_000;
const START = {
  chromium: () => startBrowser({ networkEnabled: false }),
  firefox: startFirefox,
};

const folder = await temporaryFolder();
const browsers = await Promise.all(
  BROWSERS.map(async (name) => ({ name, ...(await START[name]()) })),
);
const servers = await Promise.all(SERVERS.map(start));
try {
  const log = await writeLog(folder.path);
  const path = await writeLargeLog(folder.path, log.path, BYTES);
  const work = { log, path, times: (await stat(path)).size / (await stat(log.path)).size };
  console.log(`${log.real ? "the real log" : "a generated log"}, ${work.times} times`);
  const contenders = servers.flatMap((server) =>
    sendersTo().map((sender) => ({
      ...{ server, sender, rates: [], seconds: [], growths: [], readers: [] },
    })),
  );
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const contender of contenders) {
      await measure(contender, work);
    }
  }
  contenders.forEach(report);
  await record(contenders, work);
} finally {
  await Promise.all(browsers.map((browser) => browser.close()));
  await Promise.all(servers.map((server) => server.stop()));
  await folder.remove();
}

/** Starts the server `name`. */
async function start(name) {
  const server = name === "discard" ? await startProgram(DISCARD, [DIST]) : await startServer();
  return { name, ...server, process: await ServerProcess.watch(server.pid) };
}

function sendersTo() {
  const pages = browsers.flatMap((browser) => WAYS.map((way) => ({ browser, way })));
  return [...pages, { way: NO_BROWSER }];
}

async function measure({ server, sender, rates, seconds, growths, readers }, work) {
  const upload = () =>
    sender.way === NO_BROWSER ? sendDirectly(server, work) : sendFromPage(server, sender, work);
  const cost = await server.process.during(upload);
  const { rate, requests, reader } = cost.result;
  const expected = server.name === "discard" ? 0 : work.log.figures.requests * work.times;
  assert.equal(requests, expected);
  seconds.push(cost.seconds);
  growths.push(cost.growth);
  rates.push(rate);
  readers.push(reader);
}

async function sendDirectly({ url }, { log, times }) {
  const { rate, summary } = await uploadDirectly(url, log.path, times);
  return { rate, requests: summary.requests, reader: NO_BROWSER };
}

/** Measures from choosing the file to the final figures, as reported by the page. */
async function sendFromPage({ url }, { browser, way }, { path }) {
  const page = await browser.browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${url}/logs?reader=${way}`, { waitUntil: "load" });
  await page.$eval(byId("keep-lines"), (box, keep) => (box.checked = keep), KEEPS_LINES);
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed", "cancelled");
  assert.equal(await page.$eval("body", (body) => body.dataset.state), "finished");
  const reader = await page.$eval(byId("progress"), (bar) => bar.dataset.reader);
  const result = {
    ...{ rate: await figure(page, "speed"), requests: await figure(page, "requests"), reader },
  };
  await page.close();
  return result;
}

function report({ server, sender, rates, seconds, growths, readers }) {
  const inMegabytes = rates.map((rate) => Math.round(rate / 1e6)).sort((a, b) => a - b);
  const cost =
    `  server: ${median(seconds).toFixed(2)} s of processor,` +
    ` +${(Math.max(...growths) / 2 ** 20).toFixed(1)} MiB at most`;
  const rate = `${median(inMegabytes)} MB/s`.padStart(9);
  const name = `${sender.browser?.name ?? ""} ${sender.way}`.trim();
  const ends = sender.way.startsWith("chosen") ? `  (${[...new Set(readers)].join(", ")})` : "";
  console.log(
    `${server.name.padEnd(9)} ${name.padEnd(28)} ${rate}  (${inMegabytes.join(", ")})${cost}${ends}`,
  );
}

async function record(contenders, { log, times }) {
  const versions = Object.fromEntries(
    await Promise.all(browsers.map(async ({ name, browser }) => [name, await browser.version()])),
  );
  const measurements = contenders.map(({ server, sender, rates, seconds, growths, readers }) => ({
    ...{ server: server.name, browser: sender.browser?.name ?? null, way: sender.way },
    ...{ bytes_per_second: rates, readers },
    ...{ server_cpu_seconds: seconds, server_memory_growth_bytes: growths },
  }));
  const machine = { cpu: cpus()[0]?.model ?? "", cores: availableParallelism() };
  const file = { log: log.real ? "the real log" : "a generated log", times, bytes: BYTES };
  const made = { at: new Date().toISOString(), machine, versions, file, lines_kept: KEEPS_LINES };
  await mkdir(dirname(RECORD), { recursive: true });
  await writeFile(RECORD, `${JSON.stringify({ ...made, measurements }, null, 2)}\n`);
  console.log(`recorded in ${RECORD}`);
}

function median(figures) {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)];
}
