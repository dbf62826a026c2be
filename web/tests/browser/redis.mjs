// A Redis server that tests stop and start again.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, connect } from "node:net";
import { skipReason } from "./support.mjs";

/** Returns why tests with Redis are skipped, or false. */
export const withoutRedis =
  spawnSync("redis-server", ["--version"]).status !== 0 &&
  skipReason("redis-server is not installed");

/** Starts Redis on a free port. `stop` kills it, and `start` starts it again on the same port. */
export async function startRedis() {
  const port = await freePort();
  let child;
  const redis = {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      const flags = ["--port", String(port), "--bind", "127.0.0.1", "--save", ""];
      child = spawn("redis-server", [...flags, "--appendonly", "no"], { stdio: "ignore" });
      while (!(await accepts(port))) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
  await redis.start();
  return redis;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => socket.end(() => resolve(true)));
    socket.on("error", () => resolve(false));
  });
}
