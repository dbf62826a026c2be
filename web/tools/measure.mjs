// Measures how fast the log page sends a file: `npm run measure`.
//
// Each way of reading, and the choice between them, to a server that parses nothing and to
// linerate itself (LINERATE_BIN, default ../target/release/linerate). The rounds go through all
// of them in turn, since machines drift; the figure is the median. MEASURE_BYTES (default 1 GiB)
// and MEASURE_ROUNDS (default 3) change the work; MEASURE_SERVERS=discard leaves linerate out.

import assert from "node:assert/strict";
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
import { startDiscardServer } from "./discard-server.mjs";

const BYTES = Number(process.env.MEASURE_BYTES ?? 1024 * 1024 * 1024);
const ROUNDS = Number(process.env.MEASURE_ROUNDS ?? 3);
const SERVERS = (process.env.MEASURE_SERVERS ?? "discard,linerate").split(",");
const WAYS = ["slices", "stream", "chosen by the page"];
const starters = { discard: startDiscardServer, linerate: startServer };

const folder = await temporaryFolder();
const chromium = await startBrowser({ networkEnabled: false });
const servers = await Promise.all(SERVERS.map(async (name) => [name, await starters[name]()]));
try {
  const source = await writeLog(folder.path);
  const path = await writeLargeLog(folder.path, source.path, BYTES);
  console.log(
    `${source.real ? "the real log" : "a made log"}, repeated to ${BYTES} bytes or just over`,
  );
  const contenders = servers.flatMap(([name, { url }]) =>
    WAYS.map((way) => ({ name, url, way, rates: [] })),
  );
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const contender of contenders) {
      contender.rates.push(await measure(contender, path));
    }
  }
  for (const { name, way, rates } of contenders) {
    const sorted = rates.map((rate) => Math.round(rate / 1e6)).sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    console.log(`${name.padEnd(9)} ${way.padEnd(19)} ${median} MB/s  (${sorted.join(", ")})`);
  }
} finally {
  await chromium.close();
  await Promise.all(servers.map(([, server]) => server.stop()));
  await folder.remove();
}

/** Returns bytes per second from choosing the file to the last figures, as the page itself says. */
async function measure({ url, way }, path) {
  const { page } = await openPage(chromium.browser, `${url}/logs?reader=${way}`);
  page.setDefaultTimeout(180_000);
  await chooseFile(page, path);
  await waitForState(page, "finished", "failed", "cancelled");
  assert.equal(await page.$eval("body", (body) => body.dataset.state), "finished");
  const rate = await figure(page, "speed");
  await page.close();
  return rate;
}
