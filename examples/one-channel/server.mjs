// The application: serves the page, and emits what people say as any Socket.IO application does. It
// has no connections to browsers; linerate has them.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { Emitter } from "@socket.io/redis-emitter";
import { createClient } from "redis";

const PORT = Number(process.env.PORT ?? 8081);
const REDIS_URL = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const LINERATE_URL = process.env.LINERATE_URL ?? "http://127.0.0.1:8080";

const TEXT_LENGTH_MAX = 200;
const BODY_BYTES_MAX = 16_384;

/** The files of the page, and the published packages, as their authors built them. */
const FILES = new Map([
  ["/", ["public/index.html", "text/html; charset=utf-8"]],
  ["/style.css", ["public/style.css", "text/css"]],
  ["/clients.mjs", ["public/clients.mjs", "text/javascript"]],
  ["/sdk/centrifuge.js", ["node_modules/centrifuge/dist/centrifuge.js", "text/javascript"]],
  ["/sdk/echo.js", ["node_modules/laravel-echo/dist/echo.js", "text/javascript"]],
  ["/sdk/phoenix.js", ["node_modules/phoenix/priv/static/phoenix.mjs", "text/javascript"]],
  ["/sdk/pusher.js", ["node_modules/pusher-js/dist/web/pusher.min.js", "text/javascript"]],
  [
    "/sdk/socket.io.js",
    ["node_modules/socket.io-client/dist/socket.io.esm.min.js", "text/javascript"],
  ],
]);

const redis = createClient({ url: REDIS_URL });
redis.on("error", (error) => console.error(`Redis: ${error.message}`));
await redis.connect();
const io = new Emitter(redis);

/** Emits a message to everyone in the room, whatever protocol they speak. */
function say({ text, from }) {
  if (typeof text !== "string" || text.trim() === "" || text.length > TEXT_LENGTH_MAX) {
    const message = `text must have 1 to ${TEXT_LENGTH_MAX} characters`;
    return { error: { code: 400, message } };
  }
  io.to("chat").emit("said", { text: text.trim(), from: String(from), at: Date.now() });
  return { result: { data: { said: true } } };
}

/** Answers what linerate asks on behalf of a client. Socket.IO's arguments are an array. */
function answer({ method, data }) {
  return method === "say"
    ? say(Array.isArray(data) ? data[0] : data)
    : { error: { code: 404, message: `no method ${method}` } };
}

async function body(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) {
      throw new Error(`body has more than ${BODY_BYTES_MAX} bytes`);
    }
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

async function serve({ method, url, ...request }, response) {
  const json = (value, status = 200) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(value));
  };
  if (method === "GET" && url === "/linerate.json") {
    return json({ url: LINERATE_URL });
  }
  const file = FILES.get(url);
  if (method === "GET" && file !== undefined) {
    const [path, type] = file;
    const text = await readFile(fileURLToPath(new URL(path, import.meta.url)));
    response.writeHead(200, { "Content-Type": type });
    return response.end(text);
  }
  json({ error: "not found" }, 404);
}

const listener = createServer(async (request, response) => {
  try {
    if (request.method === "POST" && request.url === "/linerate/rpc") {
      response.writeHead(200, { "Content-Type": "application/json" });
      return response.end(JSON.stringify(answer(await body(request))));
    }
    // Echo has no calls: the page asks the application itself, as pages of Laravel do.
    if (request.method === "POST" && request.url === "/say") {
      const { error } = say(await body(request));
      response.writeHead(error === undefined ? 204 : 400, { "Content-Type": "text/plain" });
      return response.end(error?.message);
    }
    await serve(request, response);
  } catch (error) {
    response.writeHead(400, { "Content-Type": "text/plain" });
    response.end(`${error.message}\n`);
  }
});
listener.listen(PORT, "127.0.0.1");
await once(listener, "listening");
console.log(`open http://127.0.0.1:${listener.address().port}`);
