// The example of one channel with clients of four protocols, with Redis, in a real browser.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { BROKERS, freePort, missing, startBroker } from "../../../sdk-tests/support/brokers.mjs";
import { openPage, startBrowser, startProgram, startServer } from "./support.mjs";

const EXAMPLE = fileURLToPath(new URL("../../../examples/one-channel/", import.meta.url));

const [redis] = BROKERS;

const NAMES = ["Socket.IO", "Laravel Echo", "Phoenix", "Centrifuge"];

test("all clients show what each of them says", { skip: missing(redis) }, async (t) => {
  const ends = [];
  t.after(async () => {
    for (const end of ends.reverse()) {
      await end();
    }
  });
  const broker = await startBroker(redis);
  ends.push(() => broker.stop());
  const directory = await mkdtemp(join(tmpdir(), "linerate-example-"));
  ends.push(() => rm(directory, { recursive: true, force: true }));
  const port = await freePort();
  const configuration = join(directory, "linerate.toml");
  const text = await readFile(join(EXAMPLE, "linerate.toml"), "utf8");
  const adapted = text
    .replaceAll("redis://127.0.0.1:6379", broker.url)
    .replaceAll(":8081", `:${port}`);
  await writeFile(configuration, adapted);
  const server = await startServer({ flags: ["--config", configuration] });
  ends.push(() => server.stop());
  const environment = { PORT: `${port}`, REDIS_URL: broker.url, LINERATE_URL: server.url };
  const program = join(EXAMPLE, "server.mjs");
  const application = await startProgram(process.execPath, [program], { environment });
  ends.push(() => application.kill());
  const chromium = await startBrowser();
  ends.push(() => chromium.close());

  const { page, complaints } = await openPage(chromium.browser, application.url);
  await page.waitForFunction(
    (count) => {
      const states = [...document.querySelectorAll(".state")];
      return states.length === count && states.every((one) => one.textContent === "connected");
    },
    {},
    NAMES.length,
  );
  const said = [];
  for (const name of NAMES) {
    const input = await page.waitForSelector(`input[aria-label="Say something with ${name}"]`);
    await input.type(`hello from ${name}`);
    await input.press("Enter");
    said.push(`${name}hello from ${name}`);
    await page.waitForFunction(
      (expected) =>
        [...document.querySelectorAll("ol")].every(
          (list) => [...list.children].map((item) => item.textContent).join() === expected,
        ),
      {},
      said.join(),
    );
  }
  assert.deepEqual(complaints, []);
});
