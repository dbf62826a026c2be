// Takes the screenshot of the log page for the README: `npm run picture`.

import { fileURLToPath } from "node:url";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import {
  chooseFile,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  waitForState,
  writeLog,
} from "../tests/browser/support.mjs";

const PICTURE = fileURLToPath(new URL("../../docs/logs/log-page.png", import.meta.url));

const folder = await temporaryFolder();
const chromium = await startBrowser();
const server = await startServer();
try {
  const log = await writeLog(folder.path);
  const { page } = await openPage(chromium.browser, `${server.url}/logs`, {
    width: 1200,
    height: 900,
  });
  await chooseFile(page, log.path);
  await waitForState(page, "finished");
  // Then it does not say how fast the log was read, which depends on the machine.
  await page.reload();
  await waitForState(page, "finished");
  await page.evaluate(() => document.activeElement?.blur());
  await mkdir(dirname(PICTURE), { recursive: true });
  await page.screenshot({ path: PICTURE, clip: await upToPanels(page) });
  console.log(`${PICTURE}${log.real ? "" : " (of a generated log: the real one is absent)"}`);
} finally {
  await chromium.close();
  await server.stop();
  await folder.remove();
}

/** Returns the part of the page that ends within the first two panels. */
function upToPanels(page) {
  return page.$eval(".panel", (panel) => ({
    x: 0,
    y: 0,
    width: document.documentElement.clientWidth,
    height: Math.ceil(panel.getBoundingClientRect().top) + 300,
  }));
}
