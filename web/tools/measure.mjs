// Measures how fast the log page sends a file, and what that costs the server: `npm run measure`.
//
// Each way of reading and the choice between them, to a server that parses nothing and to linerate
// itself (LINERATE_BIN, default ../target/release/linerate), which also gets the file from a sender
// that is no browser. The rounds go through all of them in turn, since machines drift; figures are medians, but for memory
// the maximum. MEASURE_BYTES (default 1 GiB) and MEASURE_ROUNDS (default 3) change the work;
// MEASURE_SERVERS=discard leaves linerate out.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import {
  chooseFile,
  figure,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  waitForState,
  writeLargeLog,
  writeLog,
} from "../tests/browser/support.mjs";
import { uploadDirectly } from "./direct-upload.mjs";
import { startDiscardServer } from "./discard-server.mjs";
import { ServerProcess } from "./server-process.mjs";

const BYTES = Number(process.env.MEASURE_BYTES ?? 1024 * 1024 * 1024);
const ROUNDS = Number(process.env.MEASURE_ROUNDS ?? 3);
const SERVERS = (process.env.MEASURE_SERVERS ?? "discard,linerate").split(",");
const NO_BROWSER = "no browser";
const WAYS = ["slices", "stream", "chosen by the page"];

const folder = await temporaryFolder();
const chromium = await startBrowser({ networkEnabled: false });
const servers = await Promise.all(SERVERS.map(start));
try {
  const log = await writeLog(folder.path);
  const path = await writeLargeLog(folder.path, log.path, BYTES);
  const work = { log, path, times: (await stat(path)).size / (await stat(log.path)).size };
  console.log(`${log.real ? "the real log" : "a made log"}, ${work.times} times`);
  const contenders = servers.flatMap((server) =>
    waysTo(server).map((way) => ({ server, way, rates: [], seconds: [], growths: [] })),
  );
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const contender of contenders) {
      await measure(contender, work);
    }
  }
  contenders.forEach(report);
} finally {
  await chromium.close();
  await Promise.all(servers.map((server) => server.stop()));
  await folder.remove();
}

/** Starts the server called `name`. The one that parses nothing runs in this process, unwatched. */
async function start(name) {
  if (name === "discard") {
    return { name, ...(await startDiscardServer()) };
  }
  const server = await startServer();
  return { name, ...server, process: await ServerProcess.watch(server.pid) };
}

/** The sender that is no browser would share this process with the server that parses nothing. */
function waysTo(server) {
  return server.process === undefined ? WAYS : [...WAYS, NO_BROWSER];
}

async function measure({ server, way, rates, seconds, growths }, work) {
  const upload = () =>
    way === NO_BROWSER ? sendDirectly(server, work) : sendFromPage(server, way, work);
  const cost = await (server.process?.during(upload) ?? upload().then((result) => ({ result })));
  const { rate, requests } = cost.result;
  if (server.process !== undefined) {
    assert.equal(requests, work.log.figures.requests * work.times);
    seconds.push(cost.seconds);
    growths.push(cost.growth);
  }
  rates.push(rate);
}

async function sendDirectly({ url }, { log, times }) {
  const { rate, summary } = await uploadDirectly(url, log.path, times);
  return { rate, requests: summary.requests };
}

/** From choosing the file to the last figures, as the page itself says. */
async function sendFromPage({ url }, way, { path }) {
  const { page } = await openPage(chromium.browser, `${url}/logs?reader=${way}`);
  page.setDefaultTimeout(180_000);
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed", "cancelled");
  assert.equal(await page.$eval("body", (body) => body.dataset.state), "finished");
  const result = { rate: await figure(page, "speed"), requests: await figure(page, "requests") };
  await page.close();
  return result;
}

function report({ server, way, rates, seconds, growths }) {
  const inMegabytes = rates.map((rate) => Math.round(rate / 1e6)).sort((a, b) => a - b);
  const cost =
    server.process === undefined
      ? ""
      : `  server: ${median(seconds).toFixed(2)} s of processor,` +
        ` +${(Math.max(...growths) / 2 ** 20).toFixed(1)} MiB at most`;
  const rate = `${median(inMegabytes)} MB/s`.padStart(9);
  console.log(
    `${server.name.padEnd(9)} ${way.padEnd(19)} ${rate}  (${inMegabytes.join(", ")})${cost}`,
  );
}

function median(figures) {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)];
}
