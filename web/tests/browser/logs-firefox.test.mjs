// The log page in Firefox, if it is installed: the same figures and filters.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { assertShows } from "./log-panels.mjs";
import { readLog, select, top } from "./oracle.mjs";
import {
  byId,
  chooseFile,
  FIREFOX,
  skipReason,
  startFirefox,
  startServer,
  temporaryFolder,
  waitForState,
  writeLog,
} from "./support.mjs";

const skip = existsSync(FIREFOX) ? false : skipReason(`${FIREFOX} is absent`);

test("Firefox shows and filters the oracle's figures", { skip }, async (t) => {
  const folder = await temporaryFolder();
  t.after(() => folder.remove());
  const server = await startServer();
  t.after(() => server.stop());
  const firefox = await startFirefox();
  t.after(() => firefox.close());
  const log = await writeLog(folder.path);
  const oracle = readLog(await readFile(log.path, "latin1"));

  const page = await firefox.browser.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${server.url}/logs`, { waitUntil: "load" });
  await chooseFile(page, log.path);
  await waitForState(page, "finished", "failed");
  await assertShows(page, oracle.requests);

  const [{ value }] = top(oracle.requests, "status").top;
  await page.$eval(`${byId("status-rows")} .value-exclude`, (button) => button.click());
  const conditions = [{ dimension: "status", value, exclude: true }];
  await assertShows(page, select(oracle.requests, { conditions }));
  assert.deepEqual(complaints, []);
});
