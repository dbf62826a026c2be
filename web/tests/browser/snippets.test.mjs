// The code that the channel page shows, run as it is: each kind of client receives what is
// published.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  byId,
  openPage,
  startBrowser,
  startServer,
  temporaryFolder,
  textOf,
  untilText,
} from "./support.mjs";

const CHANNEL = "orders:today";
const API_KEY = "an API key of this test";
const ADMIN_KEY = "an admin key of this test";
const SECRET = "a secret of this test, long enough";
const PUSHER = `
[pusher]
app_id = "1"
key = "app-key"
secret = "a secret of an app in this test"
`;
const ALL_PROTOCOLS = `
[protocols]
phoenix = true
pusher = true
socketio = true
${PUSHER}`;
const KEYED = `
[auth]
api_key = "${API_KEY}"
admin_key = "${ADMIN_KEY}"
[auth.token]
hmac_secret_key = "${SECRET}"
${ALL_PROTOCOLS}`;
const KINDS_WITH_TOKENS = ["native", "centrifuge", "socketio", "phoenix", "raw", "sse"];

const SDKS = fileURLToPath(new URL("../../../sdk-tests/", import.meta.url));
const RUNTIME = new URL("snippet-runtime.mjs", import.meta.url).href;
const OUR_CLIENT = new URL("../../dist/assets/linerate.js", import.meta.url).href;

let chromium, folder, keyed, open;

before(async () => {
  folder = await temporaryFolder();
  const start = async (name, text) => {
    const path = join(folder.path, name);
    await writeFile(path, text);
    return startServer({ flags: ["--config", path] });
  };
  keyed = await start("keyed.toml", KEYED);
  open = await start("open.toml", ALL_PROTOCOLS);
  chromium = await startBrowser();
});

after(async () => {
  await chromium?.close();
  await keyed?.stop();
  await open?.stop();
  await folder?.remove();
});

/** Opens the channel page in a tab that knows the admin key, as one that comes from /admin does. */
async function openAsAdministrator(server) {
  const { page } = await openPage(chromium.browser, `${server.url}/docs/`);
  await page.evaluate((key) => sessionStorage.setItem("linerate.admin-key", key), ADMIN_KEY);
  await page.goto(`${server.url}/channel?name=${CHANNEL}`);
  await untilText(page, "state", "live");
  return page;
}

/** Returns the code that the page shows for a kind of client. */
async function codeOf(page, kind) {
  await page.$eval(byId(`kind-${kind}`), (choice) => choice.click());
  return textOf(page, "code");
}

async function publish(server, text) {
  const answer = await fetch(`${server.url}/api/publish`, {
    method: "POST",
    headers: { "X-API-Key": API_KEY },
    body: JSON.stringify({ channel: CHANNEL, data: { hello: text } }),
  });
  assert.equal(answer.status, 200, await answer.text());
}

/** Runs the code in Node.js until it has printed what is published meanwhile. */
async function assertReceives(server, kind, code) {
  const program = code.replace('"linerate"', JSON.stringify(OUR_CLIENT));
  const child = spawn(process.execPath, ["--import", RUNTIME, "--input-type=module"], {
    cwd: SDKS,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => (output += chunk));
  }
  child.stdin.end(program);
  const marker = `for ${kind}`;
  for (let tries = 0; !output.includes(marker); tries += 1) {
    assert.ok(tries < 300 && child.exitCode === null, `${kind} printed ${output}\n${program}`);
    await publish(server, marker);
    await pause(100);
  }
  child.kill();
  await exited;
}

test("the code works with the tokens in it, and has no other secrets", async () => {
  const page = await openAsAdministrator(keyed);
  for (const kind of KINDS_WITH_TOKENS) {
    const code = await codeOf(page, kind);
    assert.match(code, /ey[\w-]+\.[\w-]+\.[\w-]+/, `${kind} has a token`);
    for (const secret of [API_KEY, ADMIN_KEY, SECRET]) {
      assert.ok(!code.includes(secret), kind);
    }
    await assertReceives(keyed, kind, code);
  }
  await page.close();
});

test("the code for Pusher's client works, where clients need no token", async () => {
  const { page } = await openPage(chromium.browser, `${open.url}/channel?name=${CHANNEL}`);
  await untilText(page, "state", "live");
  for (const kind of ["pusher", "native", "sse"]) {
    const code = await codeOf(page, kind);
    assert.doesNotMatch(code, /token/i);
    await assertReceives(open, kind, code);
  }
  await page.close();
});

test("the command publishes what is typed, with a key from the environment", async () => {
  const page = await openAsAdministrator(keyed);
  await page.$eval(byId("publish-data"), (area) => (area.value = ""));
  await page.type(byId("publish-data"), `{"it's": "\$(id) \\n"}`);
  const command = await codeOf(page, "curl");
  assert.ok(!command.includes(API_KEY) && !command.includes(ADMIN_KEY));
  const shell = spawn("sh", ["-c", command], {
    env: { ...process.env, LINERATE_AUTH_API_KEY: API_KEY },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [status] = await once(shell, "exit");
  assert.equal(status, 0);
  await untilText(page, "message-text", `{"it's": "\$(id) \\n"}`);
  await page.close();
});

test("only kinds of clients that are switched on are offered", async (t) => {
  const few = await startServer({ flags: ["--set", "protocols.sse=false"] });
  t.after(() => few.stop());
  const { page } = await openPage(chromium.browser, `${few.url}/channel?name=${CHANNEL}`);
  await untilText(page, "state", "live");
  const kinds = await page.$$eval('input[name="kind"]', (all) => all.map(({ value }) => value));
  assert.deepEqual(kinds, ["native", "centrifuge", "raw", "curl"]);
  await page.close();
});
