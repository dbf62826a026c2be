// Redis and NATS, each started on a free port in a new directory.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { within } from "./journal.mjs";

const LOCAL = "127.0.0.1";

export const BROKERS = [
  {
    name: "Redis",
    program: "redis-server",
    scheme: "redis",
    flags: (port) => ["--bind", LOCAL, "--port", `${port}`, "--save", "", "--loglevel", "warning"],
  },
  {
    name: "NATS",
    program: process.env.NATS_SERVER_BIN ?? "nats-server",
    scheme: "nats",
    flags: (port, directory) => ["-a", LOCAL, "-p", `${port}`, "-js", "-sd", directory],
  },
];

/** Returns why a broker cannot be started here; `false` if it can. */
export function missing({ program }) {
  if (spawnSync(program, ["--version"]).error === undefined) {
    return false;
  }
  if (process.env.CI !== undefined) {
    throw new Error(`${program} is not installed`);
  }
  return `${program} is not installed`;
}

/** Starts a broker; `stop` ends it and removes its data. */
export async function startBroker({ program, scheme, flags }) {
  const directory = await mkdtemp(join(tmpdir(), "linerate-sdk-"));
  const port = await freePort();
  const child = spawn(program, flags(port, directory), { cwd: directory, stdio: "ignore" });
  const exited = once(child, "exit");
  await within(untilReady(port), `${program} on port ${port}`);
  return {
    url: `${scheme}://${LOCAL}:${port}`,
    async stop() {
      child.kill("SIGKILL");
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Returns a port that is free. */
export async function freePort() {
  const listener = createServer().listen(0, LOCAL);
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

async function untilReady(port) {
  for (;;) {
    const socket = connect(port, LOCAL);
    const isReady = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isReady) {
      return;
    }
    await pause(20);
  }
}
