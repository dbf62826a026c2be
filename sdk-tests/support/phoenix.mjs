// Servers that Phoenix clients can connect to, and clients.

import { LongPoll, Presence, Socket } from "phoenix";
import WebSocket from "ws";
import { startBalancer } from "./balancer.mjs";
import { Journal } from "./journal.mjs";
import { startServer } from "./server.mjs";

/** Clients that poll get bytes as Base64. */
const base64 = (payload) => Buffer.from(payload, "base64");

/**
 * The transports of the npm package: `options` of a socket, `bytes` which reads a payload that is
 * not JSON, and `front`, which starts what is in front of the server, if there is something.
 */
export const TRANSPORTS = [
  { name: "WebSocket", options: { transport: WebSocket }, bytes: Buffer.from },
  { name: "long polling", options: { transport: LongPoll }, bytes: base64 },
  {
    name: "long polling, since WebSockets are refused",
    options: { transport: WebSocket, longPollFallbackMs: 20_000 },
    bytes: base64,
    front: (url) => startBalancer([url], { upgrades: false }),
  },
];

const EVENTS = ["closed", "error", "joined", "refused", "message", "created"];

/** Starts a server; `environment` and `toml` change its configuration. */
export async function startPhoenix(environment = {}, toml = "") {
  return startServer({ LINERATE_PROTOCOLS_PHOENIX: "true", ...environment }, toml);
}

const open = new Set();

/** Returns a socket that connects, and its journal. */
export function connect(url, authToken, options = {}) {
  const socket = new Socket(`${url.replace("http", "ws")}/socket`, {
    authToken,
    reconnectAfterMs: () => 100,
    rejoinAfterMs: () => 100,
    transport: WebSocket,
    ...options,
  });
  const on = (name, listen) =>
    ({ open: () => socket.onOpen(listen), close: () => socket.onClose(listen) })[name]();
  const journal = new Journal({ on }, ["open", "close"]);
  socket.connect();
  open.add(socket);
  return { socket, journal };
}

/** Returns a channel that joins, and its journal. */
export function join(socket, topic, params = {}) {
  const channel = socket.channel(topic, params);
  const journal = new Journal(
    {
      on: (name, listen) => {
        const known = {
          closed: () => channel.onClose(listen),
          error: () => channel.onError(listen),
          joined: () => channel.joinPush.receive("ok", listen),
          refused: () => channel.joinPush.receive("error", listen),
        };
        (known[name] ?? (() => channel.on(name, listen)))();
      },
    },
    EVENTS,
  );
  channel.join();
  return { channel, journal };
}

/** Returns a channel that the client has joined. */
export async function joined(socket, topic, params) {
  const joining = join(socket, topic, params);
  await joining.journal.next("joined");
  return joining;
}

/** Sends an event, and returns the status and the response. */
export function push(channel, event, payload) {
  return new Promise((resolve) => {
    const pushed = channel.push(event, payload);
    for (const status of ["ok", "error", "timeout"]) {
      pushed.receive(status, (response) => resolve({ status, response }));
    }
  });
}

/** Returns who is in a channel, and a way to wait until certain users are. */
export function presence(channel) {
  const known = new Presence(channel);
  let wake = () => {};
  known.onSync(() => wake());
  const users = () => known.list((user, { metas }) => `${user} ${metas.length}`).sort();
  const until = async (expected) => {
    while (users().join() !== expected.join()) {
      await new Promise((resolve) => (wake = resolve));
    }
  };
  return { known, until };
}

/** Disconnects all sockets. */
export function close() {
  open.forEach((socket) => socket.disconnect());
  open.clear();
}
