// The messages of subprotocol linerate.upload.v1, read strictly (docs/library/uploads.md).

export const SUBPROTOCOL = "linerate.upload.v1";

export type ClientMessage =
  | { type: "start"; upload: number; name: string; size: number }
  | { type: "resume"; upload: number; id: string; name: string; size: number }
  /** The binary messages that follow are bytes of this upload. */
  | { type: "data"; upload: number; offset: number }
  | { type: "cancel"; upload: number };

export type ServerMessage =
  | { type: "hello"; uploads_max: number; window_bytes: number }
  | { type: "ready"; upload: number; id: string; offset: number }
  | { type: "ack"; upload: number; bytes: number }
  | { type: "done"; upload: number; result: unknown }
  /** The connection ends: an `error` without a number. */
  | { type: "failed"; code: string; message: string }
  | { type: "error"; upload: number; code: string; message: string };

/** The server sent something that the protocol does not define. */
export class NotUnderstood extends Error {}

/** Parses a message from the server. Throws `NotUnderstood`. */
export function parseServerMessage(data: unknown): ServerMessage {
  const fields = objectFrom(data);
  const count = (name: string) => {
    const value = fields[name];
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
      throw new NotUnderstood(`message has no valid ${name}`);
    }
    return value;
  };
  const text = (name: string) => {
    const value = fields[name];
    if (typeof value !== "string") {
      throw new NotUnderstood(`message has no valid ${name}`);
    }
    return value;
  };
  const type = text("type");
  switch (type) {
    case "hello":
      return { type, uploads_max: count("uploads_max"), window_bytes: count("window_bytes") };
    case "ready":
      return { type, upload: count("upload"), id: text("id"), offset: count("offset") };
    case "ack":
      return { type, upload: count("upload"), bytes: count("bytes") };
    case "done":
      return { type, upload: count("upload"), result: fields["result"] };
    case "error":
      return fields["upload"] === undefined
        ? { type: "failed", code: text("code"), message: text("message") }
        : { type, upload: count("upload"), code: text("code"), message: text("message") };
    default:
      throw new NotUnderstood(`unknown message type ${type}`);
  }
}

function objectFrom(data: unknown): Record<string, unknown> {
  if (typeof data !== "string") {
    throw new NotUnderstood("unexpected binary message");
  }
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw new NotUnderstood("message is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new NotUnderstood("message is not an object");
  }
  return value as Record<string, unknown>;
}
