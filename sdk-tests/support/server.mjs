// The server under test: the real binary, configured by `linerate.toml`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { within } from "./journal.mjs";

const BINARY =
  process.env.LINERATE_BIN ??
  fileURLToPath(new URL("../../target/release/linerate", import.meta.url));

const CONFIGURATION = fileURLToPath(new URL("../linerate.toml", import.meta.url));

/** As in the configuration. */
const API_KEY = "the key of the sdk tests";

/**
 * Starts `linerate serve` on a free port; `environment` changes its configuration, and `toml` is
 * added to it.
 */
export async function startServer(environment = {}, toml = "") {
  const directory = await mkdtemp(join(tmpdir(), "linerate-sdk-"));
  const configuration = join(directory, "linerate.toml");
  await writeFile(configuration, (await readFile(CONFIGURATION, "utf8")) + toml);
  const child = spawn(BINARY, ["serve", "--config", configuration], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...environment },
  });
  const exited = once(child, "exit");
  exited.then(() => rm(directory, { recursive: true, force: true }));
  const ended = exited.then(([code]) => Promise.reject(new Error(`${BINARY} exited with ${code}`)));
  ended.catch(() => {});
  const url = await within(Promise.race([addressFrom(child.stdout), ended]), "an address");
  return new Server(url, child, exited);
}

class Server {
  #child;
  #exited;

  constructor(url, child, exited) {
    this.url = url;
    this.#child = child;
    this.#exited = exited;
  }

  /** Calls the server API; throws unless it succeeds. */
  async api(method, parameters) {
    const response = await fetch(`${this.url}/api/${method}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-API-Key": API_KEY },
      body: JSON.stringify(parameters),
    });
    const reply = await response.json();
    if (!response.ok || reply.error !== undefined) {
      throw new Error(`${method}: ${response.status} ${JSON.stringify(reply)}`);
    }
    return reply.result;
  }

  /** Publishes the payloads in order. */
  async publish(channel, ...payloads) {
    for (const data of payloads) {
      await this.api("publish", { channel, data });
    }
  }

  /** Waits until it knows `count` nodes, including itself, and receives from the broker. */
  async untilNodes(count) {
    const know = async () => {
      for (;;) {
        const { nodes } = await this.api("info", {});
        const { status } = await fetch(`${this.url}/ready`);
        if (nodes.length === count && status === 200) {
          return;
        }
        await pause(50);
      }
    };
    await within(know(), `${count} nodes`);
  }

  /** Asks the server to shut down, which notifies its clients first. */
  drain() {
    this.#child.kill("SIGTERM");
  }

  async stop() {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }
}

async function addressFrom(stdout) {
  for await (const line of createInterface(stdout)) {
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (address !== undefined) {
      stdout.resume(); // A full pipe would stop the server.
      return address;
    }
  }
  throw new Error("the server did not print an address");
}
