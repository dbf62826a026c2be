// How both pages look: no sideways scrolling, no complaints, and pictures for people to judge.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  chooseFile,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
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

for (const scheme of ["light", "dark"]) {
  for (const [width, height] of [
    [360, 740],
    [1440, 900],
    [1920, 1080],
  ]) {
    test(`both pages fit ${width} px in ${scheme}`, async () => {
      const look = { width, height, scheme };
      const picture = (page, name) =>
        page.screenshot({ path: join(PICTURES, `${name}-${width}-${scheme}.png`), fullPage: true });

      const overview = await openPage(chromium.browser, server.url, look);
      await overview.page.waitForSelector('body[data-live="live"]');
      await assertFits(overview.page, "overview");
      await picture(overview.page, "overview");
      assert.deepEqual(overview.complaints, []);
      await overview.page.close();

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
