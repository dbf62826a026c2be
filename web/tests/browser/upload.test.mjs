// The module `linerate/upload` in Node.js, against the examples of `linerate-files`.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, openAsBlob } from "node:fs";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import WebSocket from "ws";
import { startGate } from "./gate.mjs";
import { openPage, PROGRAM, startBrowser, startProgram, temporaryFolder } from "./support.mjs";

const WEB = fileURLToPath(new URL("../../", import.meta.url));
const MIB = 1024 * 1024;

/** The path of an example, which `cargo build -p linerate-files --examples` has built. */
function example(name) {
  const path = join(dirname(PROGRAM), "examples", name);
  assert.ok(existsSync(path), `${path} exists: cargo build -p linerate-files --examples`);
  return path;
}

let folder, module, Uploader;

before(async () => {
  folder = await temporaryFolder();
  module = join(folder.path, "upload.mjs");
  const entryPoints = [join(WEB, "client/src/upload.ts")];
  await build({ entryPoints, outfile: module, bundle: true, format: "esm", target: "es2022" });
  ({ Uploader } = await import(pathToFileURL(module)));
});

after(() => folder?.remove());

/** Starts an example; its gate lets connections be cut. */
async function serve(name, ...flags) {
  const server = await startProgram(example(name), ["127.0.0.1:0", ...flags]);
  const gate = await startGate(server.url);
  return {
    url: gate.url.replace("http", "ws"),
    gate,
    server,
    async stop() {
      gate.stop();
      await server.kill();
    },
  };
}

/** Random files, and their digests. */
async function someFiles(...sizes) {
  const names = sizes.map((size, index) => `${index}-${size}.bin`);
  const paths = names.map((name) => join(folder.path, name));
  const contents = sizes.map((size) => randomBytes(size));
  await Promise.all(paths.map((path, index) => writeFile(path, contents[index])));
  return names.map((name, index) => ({
    name,
    path: paths[index],
    digest: sha256(contents[index]),
  }));
}

function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

function uploaderTo(url, options = {}) {
  return new Uploader(url, { environment: { WebSocket }, ...options });
}

/** Resolves once `upload` has at least `bytes` at the server. */
function reached(upload, bytes) {
  return new Promise((resolve) => {
    const check = () => upload.acknowledged >= bytes && resolve();
    upload.on("progress", check);
    check();
  });
}

test("several files are hashed, although the connection is cut", async () => {
  const { url, gate, stop } = await serve("upload_hash");
  const files = await someFiles(9 * MIB, 0, 1, 3 * MIB + 1, 70_000);
  const uploader = uploaderTo(url);
  const uploads = [];
  for (const { name, path } of files) {
    uploads.push(uploader.add(await openAsBlob(path), { name }));
  }
  // The gate stops the connection after 8 MiB of all files together.
  await reached(uploads[0], MIB);
  gate.cut(2 * MIB);
  await new Promise((resolve) => {
    uploads[0].on("state", (state) => state === "sending" && resolve());
  });
  gate.cut(Infinity);
  const results = await Promise.all(uploads.map((upload) => upload.finished));
  assert.deepEqual(
    results.map(({ sha256 }) => sha256),
    files.map(({ digest }) => digest),
  );
  await stop();
});

test("a runtime without a WebSocket of its own uses the package ws", async () => {
  const { url, gate, stop } = await serve("upload_hash");
  const [{ name, path, digest }] = await someFiles(9 * MIB + 5);
  const environment = { WebSocket: undefined, importPackage: () => import("ws") };
  const upload = uploaderTo(url, { environment }).add(await openAsBlob(path), { name });
  await reached(upload, MIB);
  gate.open();
  assert.deepEqual(await upload.finished, { sha256: digest });
  await stop();
});

test("an upload continues after a restart of the server", async () => {
  const into = join(folder.path, "received");
  const { url, gate, server, stop } = await serve("upload_to_disk", into);
  const [{ name, path, digest }] = await someFiles(20 * MIB);
  const upload = uploaderTo(url).add(await openAsBlob(path), { name });
  const offsets = [];
  upload.on("progress", ({ acknowledged }) => offsets.push(acknowledged));
  await reached(upload, 5 * MIB);
  await server.kill();
  const again = await startProgram(example("upload_to_disk"), ["127.0.0.1:0", into]);
  gate.leadTo(again.url);
  gate.cut(Infinity);
  assert.deepEqual(await upload.finished, { name });
  assert.deepEqual(
    offsets,
    [...offsets].sort((one, two) => one - two),
    "nothing is sent twice",
  );
  assert.equal(sha256(await readFile(join(into, name))), digest);
  assert.deepEqual(await readdir(join(into, ".partial")), []);
  // The server never replaces a file.
  const second = uploaderTo(url).add(await openAsBlob(path), { name });
  await assert.rejects(second.finished, { code: "exists" });
  await again.kill();
  await stop();
});

test("another process continues an upload by its id", async () => {
  const { url, gate, stop } = await serve("upload_to_disk", join(folder.path, "by-id"));
  const [{ name, path }] = await someFiles(12 * MIB);
  const uploader = uploaderTo(url);
  const first = uploader.add(await openAsBlob(path), { name });
  await reached(first, MIB);
  uploader.close();
  await assert.rejects(first.finished, { code: "closed" });
  gate.cut(Infinity);
  const second = uploaderTo(url).add(await openAsBlob(path), { name, id: first.id });
  const begins = new Promise((resolve) => {
    second.on("progress", ({ acknowledged }) => resolve(acknowledged));
  });
  assert.ok((await begins) >= MIB);
  assert.deepEqual(await second.finished, { name });
  await stop();
});

test("a paused upload sends nothing, and a cancelled one is deleted", async () => {
  const into = join(folder.path, "paused");
  const { url, gate, stop } = await serve("upload_to_disk", into);
  // Much more than the window, so that it cannot have been sent before it is paused.
  const [large, small] = await someFiles(40 * MIB, 100);
  const uploader = uploaderTo(url, { filesMax: 1 });
  const paused = uploader.add(await openAsBlob(large.path), { name: large.name });
  await reached(paused, MIB);
  paused.pause();
  gate.open();
  const other = uploader.add(await openAsBlob(small.path), { name: small.name });
  assert.deepEqual(await other.finished, { name: small.name });
  assert.equal(paused.state, "paused");
  assert.ok(paused.acknowledged < 40 * MIB);
  paused.resume();
  assert.deepEqual(await paused.finished, { name: large.name });

  const cancelled = uploader.add(await openAsBlob(large.path), { name: "cancelled.bin" });
  await reached(cancelled, 1);
  cancelled.cancel();
  await assert.rejects(cancelled.finished, { code: "cancelled" });
  // The server handles this after the cancelled upload.
  const last = uploaderTo(url).add(await openAsBlob(small.path), { name: "last.bin" });
  await last.finished;
  assert.deepEqual((await readdir(into)).sort(), [".partial", large.name, small.name, "last.bin"]);
  await stop();
});

test("names that lead elsewhere are refused", async () => {
  const { url, gate, stop } = await serve("upload_to_disk", join(folder.path, "names"));
  gate.cut(Infinity);
  const uploader = uploaderTo(url);
  for (const name of ["../evil", "a/b", "a\\b", "a\0", "..", "", ".hidden", "CON"]) {
    const upload = uploader.add(new Blob(["Spam"]), { name });
    await assert.rejects(upload.finished, { code: "bad_name" }, JSON.stringify(name));
  }
  await stop();
});

test("a page uploads in Chromium, after the connection was cut", async () => {
  const { url, gate, stop } = await serve("upload_hash");
  const { browser, close } = await startBrowser({ networkEnabled: false });
  // A page of the server's origin, although it only says that a WebSocket is expected.
  const { page } = await openPage(browser, gate.url);
  const source = await readFile(module, "utf8");
  const result = page.evaluate(
    async (source, url, size) => {
      const { Uploader } = await import(
        URL.createObjectURL(new Blob([source], { type: "text/javascript" }))
      );
      const bytes = new Uint8Array(size).map((_, index) => index * 31);
      const upload = new Uploader(url).add(new File([bytes], "page.bin"));
      upload.on("progress", ({ acknowledged }) => (globalThis.acknowledged = acknowledged));
      return await upload.finished;
    },
    source,
    url,
    12 * MIB,
  );
  await page.waitForFunction((bytes) => globalThis.acknowledged >= bytes, {}, MIB);
  gate.cut(Infinity);
  const bytes = new Uint8Array(12 * MIB).map((_, index) => index * 31);
  assert.deepEqual(await result, { sha256: sha256(bytes) });
  await close();
  await stop();
});
