// A node of Socket.IO with its Redis adapter. It reads JSON from a plain Redis channel and passes
// each message to the clients that requested its source, as an object or, with --binary, as the
// original bytes.
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import { createAdapter } from "@socket.io/redis-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";

const { values } = parseArgs({
  options: {
    listen: { type: "string", default: "127.0.0.1:0" },
    redis: { type: "string", default: "127.0.0.1:6379" },
    binary: { type: "boolean", default: false },
  },
});

const url = `redis://${values.redis}`;
const [publisher, subscriber, feed] = await Promise.all(
  [0, 1, 2].map(() =>
    createClient({ url })
      // Redis closes a connection that is too far behind; the client reconnects.
      .on("error", (error) => console.error(error.message))
      .connect(),
  ),
);
const [host, port] = values.listen.split(":");
const http = createServer();
const io = new Server(http, { adapter: createAdapter(publisher, subscriber) });
io.on("connection", (socket) => {
  socket.on("subscribe", (source, answer) => {
    socket.join(source);
    answer("subscribed");
  });
});

// Every node reads the same channel from Redis, so each has to serve only its own clients.
const listener = values.binary
  ? (bytes) => io.local.to(JSON.parse(bytes).source).emit("story", bytes)
  : (text) => {
      const message = JSON.parse(text);
      io.local.to(message.source).emit("story", message);
    };
await feed.subscribe("story", listener, values.binary);
http.listen(Number(port), host);
