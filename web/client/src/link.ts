// One connection to a server, over any transport.

import type { Reply } from "./messages.js";

/** The transport of messages. */
export type Transport = "websocket" | "http_stream";

/** The events of a link: none after `closed`, and none after `close` was called. */
export interface LinkEvents {
  /** Commands can be sent. */
  opened(): void;
  /** Messages that arrived together. */
  messages(replies: Reply[]): void;
  /** One or more blocks of publications. */
  blocks(bytes: Uint8Array): void;
  closed(code: number, reason: string): void;
}

export interface Link {
  /** Sends a command. */
  send(text: string): void;
  /** Ends the link without an event. */
  close(): void;
}

/** Parses control messages, one per line; throws a `SyntaxError` if one is not JSON. */
export function parseLines(text: string): Reply[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => JSON.parse(line) as Reply);
}
