// Support for the browser tests: the server under test, Chromium, and a log with known figures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import puppeteer from "puppeteer-core";

const inRepository = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** The program under test. */
export const PROGRAM = process.env.LINERATE_BIN ?? inRepository("target/release/linerate");
const CHROMIUM = process.env.CHROMIUM_BIN ?? "/usr/bin/chromium";
export const FIREFOX = process.env.FIREFOX_BIN ?? "/usr/bin/firefox-esr";
const REAL_LOG = inRepository("../shared/data/nginx-access-rhit.log.gz");
/** Generous because the machine may be small and busy; only a failure takes this long. */
const PATIENCE_MS = 90_000;

/**
 * Starts `linerate serve`, on a free port unless one is given, with the defaults and `environment`.
 * `stop` shuts it down, `kill` kills it. `flags` are added to its command line. `log`, if given, is
 * called with the lines of the server's log.
 */
export function startServer({ port = 0, environment = {}, flags = [], log } = {}) {
  const serve = ["serve", "--listen", `127.0.0.1:${port}`, ...flags];
  return startProgram(PROGRAM, serve, { environment, log });
}

/** Starts a program that prints its address, in the same way. */
export async function startProgram(program, flags, { environment = {}, log } = {}) {
  const child = spawn(program, flags, {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", log === undefined ? "inherit" : "pipe"],
  });
  if (log !== undefined) {
    createInterface(child.stderr).on("line", log);
  }
  const exited = once(child, "exit");
  const url = await Promise.race([
    addressFrom(child.stdout, program),
    exited.then(([code]) => Promise.reject(new Error(`${program} exited with ${code}`))),
    failAfter(PATIENCE_MS, `${program} did not print an address`),
  ]);
  const end = async (signal) => {
    child.kill(signal);
    await exited;
  };
  return { url, pid: child.pid, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
}

async function addressFrom(stdout, program) {
  for await (const line of createInterface(stdout)) {
    const [address] = /(?:https?|ws):\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (address !== undefined) {
      stdout.resume(); // A full pipe would stop the server.
      return address;
    }
  }
  throw new Error(`${program} did not print an address`);
}

function failAfter(ms, message) {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(message)), ms).unref();
  });
}

/**
 * Starts Chromium with a new profile, which `close` removes.
 *
 * `extraArguments` are added to its command line. With `networkEnabled` it reports everything that
 * it sends, with every WebSocket message in base64; leave this off when measuring.
 */
export async function startBrowser({ networkEnabled = true, extraArguments = [] } = {}) {
  const profile = await mkdtemp(join(tmpdir(), "linerate-chromium-"));
  const browser = await puppeteer.launch({
    executablePath: CHROMIUM,
    headless: true,
    networkEnabled,
    timeout: PATIENCE_MS,
    userDataDir: profile,
    args: [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...extraArguments,
    ],
  });
  return {
    browser,
    async close() {
      await browser.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Starts Debian's Firefox (FIREFOX_BIN) over WebDriver BiDi, with a new profile. */
export async function startFirefox() {
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: FIREFOX,
    headless: true,
    timeout: PATIENCE_MS,
  });
  return { browser, close: () => browser.close() };
}

/** Opens a page; `complaints` collects the errors that it logs or throws. */
export async function openPage(
  browser,
  url,
  { width = 1440, height = 900, scheme = "light", pixelRatio = 1 } = {},
) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warn") {
      complaints.push(`${message.text()} (${message.location().url ?? ""})`);
    }
  });
  await page.setViewport({ width, height, deviceScaleFactor: pixelRatio });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url, { waitUntil: "load" });
  return { page, complaints };
}

/** Returns the exact figure of an element. */
export async function figure(page, id) {
  const value = await page.$eval(byId(id), (element) => element.dataset.value);
  return Number(value);
}

/** Returns the text of an element. */
export function textOf(page, id) {
  return page.$eval(byId(id), (element) => element.textContent.trim());
}

export function byId(id) {
  return `[data-testid="${id}"]`;
}

/** Presses Tab until the element marked `id` has the focus. */
export async function tabTo(page, id) {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await focused(page)) === id) {
      return;
    }
  }
  assert.fail(`Tab does not reach ${id}`);
}

/** Returns the mark of the element that has the focus. */
export function focused(page) {
  return page.evaluate(() => document.activeElement?.dataset.testid);
}

/** Waits until the log page is in one of `states`. */
export function waitForState(page, ...states) {
  return page.waitForFunction((wanted) => wanted.includes(document.body.dataset.state), {}, states);
}

/** Sets the files of the page's file input, as its dialog would. */
export async function chooseFile(page, ...paths) {
  const input = await page.$(byId("file-input"));
  await input.uploadFile(...paths);
}

/** Returns the rows of a panel: their values and the exact figures of their cells. */
export function rowsOf(page, panel) {
  return page.$$eval(`${byId(`${panel}-rows`)} tr:not([data-value=""])`, (rows) =>
    rows.map((row) => ({
      value: row.dataset.value,
      cells: [...row.querySelectorAll("td[data-value]")].map((cell) => Number(cell.dataset.value)),
    })),
  );
}

/** Drops a file onto the middle of the page, through the browser's own drag and drop. */
export async function dropFile(page, path) {
  const session = await page.createCDPSession();
  const { width, height } = page.viewport();
  const drag = (type) =>
    session.send("Input.dispatchDragEvent", {
      type,
      x: width / 2,
      y: height / 2,
      data: { items: [], files: [path], dragOperationsMask: 1 },
    });
  await drag("dragEnter");
  await drag("dragOver");
  await drag("drop");
  await session.detach();
}

/** Counts the pixels of the chart in exactly the colour of a status class. */
export function columnPixels(page, statusClass) {
  return page.$eval(
    `${byId("chart")} canvas`,
    (canvas, name) => {
      const context = canvas.getContext("2d");
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      const colour = getComputedStyle(document.documentElement).getPropertyValue(`--class-${name}`);
      const [red, green, blue] = [1, 3, 5].map((i) => parseInt(colour.trim().slice(i, i + 2), 16));
      let painted = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (
          data[i] === red &&
          data[i + 1] === green &&
          data[i + 2] === blue &&
          data[i + 3] === 255
        ) {
          painted += 1;
        }
      }
      return painted;
    },
    statusClass,
  );
}

/**
 * Returns why a test is skipped; throws in CI, where no test may be skipped.
 */
export function skipReason(lacking) {
  if (process.env.CI) {
    throw new Error(`this test must not be skipped in CI: ${lacking}`);
  }
  return lacking;
}

/**
 * Writes the log for the tests into `folder`: the real one if it is next to the repository, or else
 * a generated one. Returns its path and figures.
 */
export async function writeLog(folder) {
  const path = join(folder, "access.log");
  if (!existsSync(REAL_LOG)) {
    skipReason(`${REAL_LOG} is absent`);
  }
  if (existsSync(REAL_LOG)) {
    await writeFile(path, gunzipSync(await readFile(REAL_LOG)));
    const figures = {
      requests: 33_468,
      unparsed: 1,
      "bytes-sent": 404_908_179,
      "unique-addresses": 1_085,
    };
    return { path, figures, real: true };
  }
  const { text, figures } = madeLog(20_000);
  await writeFile(path, text);
  return { path, figures, real: false };
}

/** Generates a log in the combined format with known figures and one line that is not a request. */
export function madeLog(requests) {
  const statuses = [200, 200, 200, 304, 404, 500, 101];
  const lines = ["host newsyslog[1]: logfile turned over"];
  let bytesSent = 0;
  for (let i = 0; i < requests; i += 1) {
    const at = new Date(Date.UTC(2021, 0, 22) + i * 2_000).toISOString();
    const size = 100 + (i % 900);
    bytesSent += size;
    lines.push(
      `10.0.${(i >> 8) % 4}.${i & 255} - - [22/Jan/2021:${at.slice(11, 19)} +0000] ` +
        `"GET /page/${i % 40} HTTP/1.1" ${statuses[i % statuses.length]} ${size} "-" "test"`,
    );
  }
  const figures = {
    requests,
    unparsed: 1,
    "bytes-sent": bytesSent,
    "unique-addresses": Math.min(requests, 1_024),
  };
  return { text: `${lines.join("\n")}\n`, figures };
}

/** Creates a folder; `remove` deletes it. */
export async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), "linerate-web-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Writes `source` repeatedly into a file of at least `bytes` in `folder`; returns its path. */
export async function writeLargeLog(folder, source, bytes) {
  const path = join(folder, "large.log");
  const content = await readFile(source);
  const file = await open(path, "w");
  for (let written = 0; written < bytes; written += content.length) {
    await file.write(content);
  }
  await file.close();
  return path;
}

/** Waits until the server has acknowledged part of the upload, and checks that it still runs. */
export async function waitUntilUnderWay(page) {
  await page.waitForFunction(
    (selector) => Number(document.querySelector(selector).dataset.value) > 0,
    { polling: 10 },
    byId("acknowledged"),
  );
  assert.equal(await page.$eval("body", (body) => body.dataset.state), "uploading");
}

/** Waits until the text of an element is `text`. */
export function untilText(page, id, text) {
  return page.waitForFunction(
    (selector, wanted) => document.querySelector(selector)?.textContent.trim() === wanted,
    {},
    byId(id),
    text,
  );
}

/** Waits until the exact figure of an element is `value`. */
export function untilFigure(page, id, value) {
  return page.waitForFunction(
    (selector, wanted) => Number(document.querySelector(selector)?.dataset.value) === wanted,
    {},
    byId(id),
    value,
  );
}
