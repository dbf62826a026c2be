// One connection to a server, by whatever carries it.

import type { Endpoints } from "./endpoints.js";
import type { Environment } from "./environment.js";
import type { Reply } from "./messages.js";

/** How messages are carried. */
export type Transport = "websocket" | "http_stream";

/** What a link tells; nothing after `closed`, and nothing after it was told to close. */
export interface LinkEvents {
  /** Commands can be sent. */
  opened(): void;
  /** Messages that came at once. */
  messages(replies: Reply[]): void;
  /** Publications in blocks, several perhaps. */
  blocks(bytes: Uint8Array): void;
  closed(code: number, reason: string): void;
}

export interface Link {
  /** Sends a command. */
  send(text: string): void;
  /** Ends the link, without a word to the events. */
  close(): void;
}

export type OpenLink = (endpoints: Endpoints, environment: Environment, events: LinkEvents) => Link;

/** Reads control messages, one a line; throws a `SyntaxError` if one is no JSON. */
export function parseLines(text: string): Reply[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => JSON.parse(line) as Reply);
}
