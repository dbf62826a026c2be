// An app of Pusher: servers that know it, its backend, and clients.

import Backend from "pusher";
import Pusher from "pusher-js";
import { Journal } from "./journal.mjs";
import { startServer } from "./server.mjs";

const APP = { appId: "7", key: "app-key", secret: "the secret of the app" };

/** Public channels are open, as in an app of Pusher. */
const ENVIRONMENT = {
  LINERATE_CHANNEL_ALLOW_ANONYMOUS: "true",
  LINERATE_CHANNEL_ALLOW_SUBSCRIBE: "true",
  LINERATE_PROTOCOLS_PUSHER: "true",
  LINERATE_PUSHER_APP_ID: APP.appId,
  LINERATE_PUSHER_CLIENT_EVENTS: "true",
  LINERATE_PUSHER_KEY: APP.key,
  LINERATE_PUSHER_SECRET: APP.secret,
  LINERATE_PUSHER_SUBSCRIPTION_COUNTS: "true",
};

const EVENTS = [
  "created",
  "client-typing",
  "message",
  "pusher:cache_miss",
  "pusher:member_added",
  "pusher:member_removed",
  "pusher:subscription_count",
  "pusher:subscription_error",
  "pusher:subscription_succeeded",
];

/**
 * Starts a server that knows the app; `environment` changes its configuration, and `toml` is added
 * to it.
 */
export async function startApp(environment = {}, toml = "") {
  return startServer({ ...ENVIRONMENT, ...environment }, toml);
}

/** Returns the server library of a backend. */
export function backend({ url }) {
  return new Backend({
    ...APP,
    host: new URL(url).hostname,
    port: new URL(url).port,
    useTLS: false,
    encryptionMasterKeyBase64: Buffer.alloc(32, 7).toString("base64"),
  });
}

const open = new Set();

/** Returns the options of a client whose backend signs everything for `user`. */
export function options(url, { user = "ann" } = {}) {
  const signer = backend({ url });
  const authorize = ({ socketId, channelName }, callback) => {
    const isPresence = channelName.startsWith("presence-");
    const member = isPresence ? { user_id: user, user_info: { name: user } } : undefined;
    callback(null, signer.authorizeChannel(socketId, channelName, member));
  };
  const authenticate = ({ socketId }, callback) =>
    callback(null, signer.authenticateUser(socketId, { id: user }));
  return {
    cluster: "none",
    wsHost: new URL(url).hostname,
    wsPort: Number(new URL(url).port),
    forceTLS: false,
    enabledTransports: ["ws"],
    channelAuthorization: { customHandler: authorize },
    userAuthentication: { customHandler: authenticate },
  };
}

/** Returns a client that connects, and the journal of its connection. */
export function connect(url, { key = APP.key, ...more } = {}) {
  const client = new Pusher(key, { ...options(url, more), ...more });
  open.add(client);
  const connection = { on: (name, listen) => client.connection.bind(name, listen) };
  const names = ["connected", "disconnected", "error", "failed", "unavailable"];
  return { client, journal: new Journal(connection, names) };
}

/** Subscribes, and returns the channel and its journal. */
export function follow(client, name) {
  const channel = client.subscribe(name);
  const on = (event, listen) =>
    channel.bind(event, (data, metadata) => listen(metadata?.user_id ? { data, metadata } : data));
  return { channel, journal: new Journal({ on }, EVENTS) };
}

/** Subscribes, and waits until the server has accepted that. */
export async function subscribed(client, name) {
  const following = follow(client, name);
  const context = await following.journal.next("pusher:subscription_succeeded");
  return { ...following, context };
}

/** Disconnects all clients. */
export function close() {
  open.forEach((client) => client.disconnect());
  open.clear();
}
