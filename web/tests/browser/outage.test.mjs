// The overview and the admin page while the broker is unreachable and after it is back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startRedis, withoutRedis } from "./redis.mjs";
import { byId, openPage, startBrowser, startServer, textOf } from "./support.mjs";

/** The server notices an outage within a second. */
const QUICKLY = ["broker.probe_interval_ms=100", "broker.probe_timeout_ms=500"];

let chromium, redis, server;

before(async () => {
  if (withoutRedis) {
    return;
  }
  redis = await startRedis();
  const flags = ["--broker", redis.url, ...QUICKLY.flatMap((setting) => ["--set", setting])];
  server = await startServer({ flags });
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
  await redis?.stop();
});

/** Waits until a condition holds, also in a tab in the background, where nothing is drawn. */
const until = (page, condition, ...values) =>
  page.waitForFunction(condition, { polling: 100 }, ...values);

test("an outage is announced, shaded and over", { skip: withoutRedis }, async () => {
  // A page in the background draws nothing, and does not ask the server.
  const { page: admin } = await openPage(chromium.browser, `${server.url}/admin`);
  await until(
    admin,
    (it) => Number(document.querySelector(it).dataset.points) > 2,
    byId("timelines"),
  );
  const outages = await admin.$eval(byId("timelines"), (it) => Number(it.dataset.outages));
  const { page } = await openPage(chromium.browser, server.url);
  await until(
    page,
    (broker) => document.querySelector(broker).textContent === "redis",
    byId("broker"),
  );
  await until(
    page,
    (published) => Number(document.querySelector(published).dataset.value) > 0,
    byId("publisher-state"),
  );
  assert.equal(await page.$eval(byId("outage"), (note) => note.hidden), true);

  await redis.stop();
  await until(page, (note) => !document.querySelector(note).hidden, byId("outage"));
  assert.match(
    await textOf(page, "outage"),
    /^The broker \(redis\) has been unreachable since \d\d:\d\d:\d\d UTC\./,
  );
  assert.match(await textOf(page, "broker-state"), /^unreachable/);
  await until(
    page,
    (note) => document.querySelector(note).textContent !== "",
    byId("demo-trouble"),
  );
  await until(page, shadedPixels, `${byId("chart-rate")} canvas`);
  await admin.bringToFront();
  await until(
    admin,
    (state) => document.querySelector(state).dataset.link === "deaf",
    byId("broker-state"),
  );

  await redis.start();
  await page.bringToFront();
  await until(page, (note) => document.querySelector(note).hidden, byId("outage"));
  await until(
    page,
    (note) => document.querySelector(note).textContent === "",
    byId("demo-trouble"),
  );
  await admin.bringToFront();
  await until(
    admin,
    (timelines, before) => Number(document.querySelector(timelines).dataset.outages) > before,
    byId("timelines"),
    outages,
  );
  await until(admin, shadedPixels, `${byId("timelines")} figure:last-child canvas`);
  await page.close();
  await admin.close();
});

/** Returns the number of pixels of a canvas in the colour of outages, in the light scheme. */
function shadedPixels(selector) {
  const canvas = document.querySelector(selector);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let shaded = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [red, green, alpha] = [data[i], data[i + 1], data[i + 3]];
    shaded += red > 140 && green < 60 && alpha > 20 && alpha < 60 ? 1 : 0;
  }
  return shaded;
}
