// Code that subscribes to a channel, or publishes in it, for each kind of client.

import { visible } from "./payload.js";

/** The kinds of clients, by the keys of `[protocols]`, in the order of the page. */
export const KINDS = {
  native: "linerate",
  centrifuge: "Centrifuge SDK",
  socketio: "Socket.IO",
  pusher: "Pusher",
  phoenix: "Phoenix",
  raw: "WebSocket",
  sse: "EventSource",
  curl: "curl, to publish",
} as const;

export type Kind = keyof typeof KINDS;

/** How to connect, as `/channel/clients` reports it. */
export interface ClientAccess {
  is_open: boolean;
  needs_token: boolean;
  protocols: string[];
  pusher_key: string | null;
}

/** Tokens of the admin API. */
export interface Tokens {
  user: string;
  expires_in_s: number;
  connection: string;
  channel: string;
  subscribed: string;
}

/** What a subscriber asks for, where its protocol can. */
export interface Wishes {
  filter?: string;
  batchIntervalMs?: number;
  conflate?: string;
}

export interface Subject {
  channel: string;
  /** The origin of the server. */
  origin: string;
  access: ClientAccess;
  tokens?: Tokens | undefined;
  wishes: Wishes;
  /** The payload to publish, as JSON. */
  payload: string;
}

/** What stands in place of a token that the page does not have. */
export const PLACEHOLDER = "TOKEN";
const HOW_TO_GET = `// ${PLACEHOLDER}: a token that your backend signs. For a test: linerate token --user ann\n`;

/** Returns the kinds of clients that the server has switched on, and curl. */
export function kindsOf(access: ClientAccess): Kind[] {
  const all = Object.keys(KINDS) as Kind[];
  return all.filter((kind) => kind === "curl" || access.protocols.includes(kind));
}

/** Returns the code for a kind of client. */
export function snippet(kind: Kind, subject: Subject): string {
  return SNIPPETS[kind](subject, tokensOf(subject));
}

/** The tokens of a snippet; none if clients need none. */
interface Given {
  connection?: string;
  channel?: string;
  subscribed?: string;
  /** A comment that says how to get a token. */
  note: string;
}

const SNIPPETS: Record<Kind, (subject: Subject, given: Given) => string> = {
  native: ({ channel, origin, wishes }, given) => {
    const options = fields({ ...wishes, token: given.channel });
    const connection = fields({ token: given.connection });
    return `${given.note}import { connect } from "linerate";

const client = connect(${list(quoted(origin), connection)});
const channel = client.subscribe(${list(quoted(channel), options)});

for await (const publication of channel) {
  console.log(publication.text());
}
`;
  },
  centrifuge: ({ channel, origin }, given) => {
    const url = quoted(`${socketOf(origin)}/connection/websocket`);
    return `${given.note}import { Centrifuge } from "centrifuge";

const client = new Centrifuge(${list(url, fields({ token: given.connection }))});
const subscription = client.newSubscription(${list(quoted(channel), fields({ token: given.channel }))});
subscription.on("publication", ({ data }) => console.log(data));
subscription.subscribe();
client.connect();
`;
  },
  socketio: ({ channel, origin }, given) => {
    const [namespace, room] = roomOf(channel);
    const auth =
      given.subscribed === undefined ? "" : `{ auth: ${fields({ token: given.subscribed })} }`;
    // Clients of Socket.IO do not subscribe; the server decides in which rooms they are.
    const why =
      given.subscribed === undefined
        ? `The server puts clients into the rooms in socketio.rooms: add ${quoted(channel)}.`
        : `"channels" of the token puts the client into the room ${quoted(room)}.`;
    return `${given.note}// ${why}
import { io } from "socket.io-client";

const socket = io(${list(quoted(origin + namespace), auth)});
socket.onAny((event, ...args) => console.log(event, ...args));
`;
  },
  pusher: ({ channel, origin, access }) => {
    const { hostname, port, protocol } = new URL(origin);
    const isSecure = protocol === "https:";
    const number = port === "" ? (isSecure ? 443 : 80) : Number(port);
    const isSigned = /^(private|presence)-/.test(channel);
    return `import Pusher from "pusher-js";

const pusher = new Pusher(${quoted(access.pusher_key ?? "APP_KEY")}, {
  cluster: "none",
  wsHost: ${quoted(hostname)},
  ${isSecure ? "wssPort" : "wsPort"}: ${number},
  forceTLS: ${isSecure},
  enabledTransports: ["ws", "wss"],
${isSigned ? '  channelAuthorization: { endpoint: "/your-pusher-auth" },\n' : ""}});
const channel = pusher.subscribe(${quoted(channel)});
channel.bind_global((event, data) => console.log(event, data));
`;
  },
  phoenix: ({ channel, origin }, given) => {
    const url = quoted(`${socketOf(origin)}/socket`);
    return `${given.note}import { Socket } from "phoenix";

const socket = new Socket(${list(url, fields({ authToken: given.connection }))});
socket.connect();
const channel = socket.channel(${list(quoted(channel), fields({ token: given.channel }))});
// The tag "event" of a publication is the name of its event; without it, it is "message".
channel.on("message", (payload) => console.log(payload));
channel.join();
`;
  },
  raw: (subject, given) => `${given.note}const socket = new WebSocket(
  ${quoted(`${socketOf(subject.origin)}/raw?${parameters(subject, given)}`)},
);
socket.onmessage = ({ data }) => console.log(data);
`,
  sse: (subject, given) => `${given.note}const events = new EventSource(
  ${quoted(`${subject.origin}/sse?${parameters(subject, given)}`)},
);
events.onmessage = ({ data }) => console.log(data);
`,
  curl: ({ channel, origin, access, payload }) => {
    const body = harmless(`{"channel":${JSON.stringify(channel)},"data":${payload}}`);
    const key = access.is_open ? "" : ` \\\n  -H "X-API-Key: $LINERATE_AUTH_API_KEY"`;
    return `${access.is_open ? "" : "# LINERATE_AUTH_API_KEY: the key in auth.api_key of the server\n"}curl ${inShell(`${origin}/api/publish`)}${key} \\
  -d ${inShell(body)}
`;
  },
};

function tokensOf({ access, tokens }: Subject): Given {
  if (tokens !== undefined) {
    const { connection, channel, subscribed } = tokens;
    return { connection, channel, subscribed, note: "" };
  }
  return access.needs_token
    ? { connection: PLACEHOLDER, subscribed: PLACEHOLDER, note: HOW_TO_GET }
    : { note: "" };
}

/** Returns the query of raw WebSockets and event streams. */
function parameters({ channel, wishes }: Subject, given: Given): string {
  const all = [
    ["channel", channel],
    ["filter", wishes.filter],
    ["batch_interval_ms", wishes.batchIntervalMs?.toString()],
    ["conflate", wishes.conflate],
    ["token", given.connection],
    ["channel_token", given.channel],
  ];
  const present = all.filter(([, value]) => value !== undefined) as [string, string][];
  return present.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

/** Returns the namespace of Socket.IO and the room that a channel is. */
function roomOf(channel: string): [string, string] {
  const colon = channel.indexOf(":");
  return channel.startsWith("/") && colon > 0
    ? [channel.slice(0, colon), channel.slice(colon + 1)]
    : ["", channel];
}

function socketOf(origin: string): string {
  return origin.replace(/^http/, "ws");
}

/** Returns the fields that are present as an object of JavaScript; nothing if there are none. */
function fields(all: Record<string, string | number | undefined>): string {
  const present = Object.entries(all).filter(([, value]) => value !== undefined);
  if (present.length === 0) {
    return "";
  }
  const texts = present.map(
    ([name, value]) => `${name}: ${typeof value === "string" ? quoted(value) : String(value)}`,
  );
  const line = `{ ${texts.join(", ")} }`;
  return line.length <= 60 ? line : `{\n${texts.map((text) => `  ${text},\n`).join("")}}`;
}

function list(...parts: string[]): string {
  return parts.filter((part) => part !== "").join(", ");
}

/** Returns `text` as a string of JavaScript. */
function quoted(text: string): string {
  return harmless(JSON.stringify(text));
}

/** Escapes, in JSON, characters that are invisible or reorder others, and the end of a script. */
function harmless(json: string): string {
  return visible(json).replaceAll("</", "<\\/");
}

/** Returns `word` quoted for a POSIX shell. */
function inShell(word: string): string {
  return /^[\w:.@/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
