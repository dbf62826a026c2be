// Servers that Socket.IO clients can connect to, and clients.

import { io } from "socket.io-client";
import { startBackend } from "./backend.mjs";
import { Journal } from "./journal.mjs";
import { startServer } from "./server.mjs";

/** Every client is in the room `all` of its namespace; the namespace `/silent` has no backend. */
const TOML = `
[protocols]
socketio = true

[socketio]
namespaces = ["/", "/chat", "/silent"]
rooms = ["all", "/chat:all"]

[socketio.replies]
saved = '["ok", 1]'

[[namespace]]
name = "/silent"
rpc_backend = ""
`;

const EVENTS = ["connect", "connect_error", "created", "disconnect", "linerate:error", "message"];

/** Starts a server; `environment` and `toml` change its configuration. */
export async function startSocketIo(environment = {}, toml = "") {
  return startServer(environment, TOML + toml);
}

/**
 * Starts a backend that answers with `answer`, and a server that asks it what clients call and,
 * with `LINERATE_CLIENT_SEND_BACKEND`, what they send. `stop` stops both.
 */
export async function startSocketIoWithBackend(answer, environment = {}) {
  const backend = await startBackend(answer);
  const toml = `[[backend]]\nname = "app"\nurl = "${backend.url}"\n`;
  const server = await startSocketIo({ LINERATE_CHANNEL_RPC_BACKEND: "app", ...environment }, toml);
  const stop = async () => {
    await server.stop();
    await backend.stop();
  };
  return { server, stop };
}

const open = new Set();

/** Returns a socket that connects, and its journal. Each socket has a connection of its own. */
export function connect(url, auth = {}, { namespace = "/", ...options } = {}) {
  const socket = io(url + namespace, {
    auth,
    forceNew: true,
    reconnectionDelay: 50,
    reconnectionDelayMax: 200,
    transports: ["websocket"],
    ...options,
  });
  open.add(socket);
  return { socket, journal: journal(socket) };
}

/** Returns the journal of a socket. What an event `created` has is the list of its arguments. */
export function journal(socket) {
  const on = (name, listen) =>
    socket.on(name, (...values) => listen(name === "created" ? values : values[0]));
  return new Journal({ on }, EVENTS);
}

/** Connects, and waits until the server has accepted that. */
export async function connected(url, auth, options) {
  const connection = connect(url, auth, options);
  await connection.journal.next("connect");
  return connection;
}

/** Disconnects all sockets. */
export function close() {
  open.forEach((socket) => socket.disconnect());
  open.clear();
}
