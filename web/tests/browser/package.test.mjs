// The npm package as users get it: packed, installed elsewhere, imported in Node.js, and checked by
// TypeScript.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startServer, temporaryFolder } from "./support.mjs";

const WEB = fileURLToPath(new URL("../../", import.meta.url));
const CLIENT = join(WEB, "client");

/** Runs a program; if it fails, its output is the error. */
async function run(program, args, cwd) {
  const options = { cwd, timeout: 120_000 };
  const failed = ({ stdout, stderr }) => assert.fail(`${program}: ${stdout}${stderr}`);
  return (await promisify(execFile)(program, args, options).catch(failed)).stdout;
}

let folder, server;

before(async () => {
  server = await startServer();
  folder = await temporaryFolder();
  // Packing builds the package, but `npm run` passes on settings that would prevent this.
  const pack = ["pack", "--silent", "--ignore-scripts=false", "--pack-destination", folder.path];
  const archive = (await run("npm", pack, CLIENT)).trim().split("\n").at(-1);
  await writeFile(join(folder.path, "package.json"), '{ "private": true, "type": "module" }');
  // Without dependencies, no registry is needed.
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", archive], folder.path);
  // What `npm install ws` does, without a registry.
  await cp(join(WEB, "node_modules/ws"), join(folder.path, "node_modules/ws"), { recursive: true });
});

after(async () => {
  await server?.stop();
  await folder?.remove();
});

test("the package contains its code, types and manual, and nothing else", async () => {
  const inPackage = join(folder.path, "node_modules/linerate");
  const files = await readdir(inPackage, { recursive: true });
  const isMeant = (file) =>
    /^(dist(\/upload)?(\/[a-z0-9-]+(\.d\.ts|\.js))?|README\.md|package\.json)$/.test(file);
  assert.deepEqual(
    files.filter((file) => !isMeant(file)),
    [],
  );
  for (const module of ["linerate", "upload"]) {
    assert.ok(files.includes(`dist/${module}.js`) && files.includes(`dist/${module}.d.ts`));
  }
  const manifest = JSON.parse(await readFile(join(inPackage, "package.json"), "utf8"));
  assert.equal(manifest.dependencies, undefined);
});

test("Node.js can import the package and connect to the server", async () => {
  const program = `
    import { connect } from "linerate";
    const client = connect(process.argv[2]);
    const channel = client.subscribe("demo:package");
    await new Promise((resolve) => channel.on("subscribed", resolve));
    const first = channel[Symbol.asyncIterator]().next();
    await client.publish("demo:package", { hello: "world" });
    console.log(JSON.stringify((await first).value.json()));
    console.log(client.transport);
    client.close();
  `;
  await writeFile(join(folder.path, "consumer.mjs"), program);
  const printed = await run(process.execPath, ["consumer.mjs", server.url], folder.path);
  assert.equal(printed, '{"hello":"world"}\nwebsocket\n');
});

test("the example for Node.js prints what it publishes, and ends when it is interrupted", async () => {
  await cp(join(CLIENT, "examples/node.mjs"), join(folder.path, "node.mjs"));
  const program = spawn(process.execPath, ["node.mjs", server.url, "demo:node"], {
    cwd: folder.path,
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 120_000,
  });
  const [line] = await once(createInterface(program.stdout), "line");
  assert.deepEqual(JSON.parse(line), { from: program.pid });
  program.kill("SIGINT");
  assert.deepEqual(await once(program, "exit"), [0, null]);
});

/** Application code that TypeScript must accept, and lines that it must refuse. */
const APPLICATION = `
  import { connect, ServerError, TimedOut, Unauthorized, type Gap, type Publication } from "linerate";
  import { UploadError, Uploader, type UploadState } from "linerate/upload";

  const client = connect("https://example.org", {
    token: async () => {
      const answer = await fetch("/token");
      if (answer.status === 403) throw new Unauthorized("no token");
      return answer.text();
    },
    transports: ["websocket", "http_stream"],
  });
  client.on("connected", ({ client: id, transport }) => console.log(id.length, transport));
  const prices = client.subscribe("prices", { filter: "price > 10", conflate: "/symbol", batchIntervalMs: 200 });
  const told: Gap[] = [];
  prices.on("gap", (gap) => told.push(gap));
  prices.on("batch", (batch: readonly Publication[]) => console.log(batch.length));
  for await (const publication of prices) {
    const bytes: Uint8Array = publication.bytes();
    const text: string = publication.text();
    console.log(bytes.length, text, publication.offset, publication.gap?.missed);
  }
  try {
    await client.publish("prices", { price: 1 });
  } catch (error) {
    if (error instanceof ServerError) console.log(error.code, error.temporary);
    if (error instanceof TimedOut) console.log(error.message);
  }
  const uploader = new Uploader("wss://example.org/upload", { filesMax: 2 });
  const upload = uploader.add(new File(["Spam"], "spam.txt"));
  upload.on("progress", ({ acknowledged, size }) => console.log(acknowledged / size));
  upload.on("state", (state: UploadState) => console.log(state));
  try {
    const result: unknown = await upload.finished;
    console.log(result);
  } catch (error) {
    if (error instanceof UploadError) console.log(error.code);
  }
  // @ts-expect-error Applications do not say what the server has.
  upload.handleAcknowledgement(1);
  // @ts-expect-error There is no such transport.
  connect("", { transports: ["smoke"] });
  // @ts-expect-error There is no such event.
  prices.on("smoke", () => {});
  // @ts-expect-error The interval is a number.
  client.subscribe("prices", { batchIntervalMs: "200" });
`;

/** The examples of the manual form one program, given these declarations. */
async function manual() {
  const text = await readFile(join(CLIENT, "README.md"), "utf8");
  const examples = [...text.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, example]) => example);
  assert.ok(examples.length >= 2, "the manual has examples");
  const declared = [
    "declare function draw(publications: readonly unknown[]): void;",
    "declare const input: HTMLInputElement;",
    "declare const bar: HTMLProgressElement;",
  ];
  return [...declared, ...examples].join("\n");
}

for (const [module, resolution] of [
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
]) {
  test(`TypeScript accepts the types with resolution by ${resolution}`, async () => {
    await writeFile(join(folder.path, "application.ts"), APPLICATION);
    await writeFile(join(folder.path, "manual.ts"), await manual());
    const compilerOptions = {
      lib: ["ES2022", "DOM", "DOM.Iterable"],
      module,
      moduleResolution: resolution,
      noEmit: true,
      // Check the types of the package as well.
      skipLibCheck: false,
      strict: true,
      target: "es2022",
      types: [],
    };
    const configuration = { compilerOptions, files: ["application.ts", "manual.ts"] };
    await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify(configuration));
    await run(join(WEB, "node_modules/.bin/tsc"), ["-p", "."], folder.path);
  });
}
