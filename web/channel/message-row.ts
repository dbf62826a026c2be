// A message as a row that unfolds: when it came, its position and size, and its payload.

import type { Publication } from "../client/src/linerate.js";
import { humanBytes, utcClock } from "../shared/format.js";
import { create } from "../shared/page.js";
import { jsonTree } from "./json-tree.js";
import { inFull, preview, previewOf, read } from "./payload.js";

/** The largest payload that is read as JSON; longer ones are shown as text. */
const JSON_BYTES_MAX = 4_194_304;

/** A publication, copied from the block in which it arrived. */
export interface Message {
  readonly bytes: Uint8Array;
  /** Where it was published, if that is not the channel of the page. */
  readonly source: string | undefined;
  /** Its position: an offset, or an epoch and an offset. */
  readonly position: string;
  /** When it arrived, in milliseconds since 1970; unknown for the history. */
  readonly atMs: number | undefined;
  readonly tags: Readonly<Record<string, string>>;
  /** The user who published it, if the server names one. */
  readonly user: string | undefined;
}

/** Copies a publication that arrived in a subscription to `channel`. */
export function messageOf(publication: Publication, channel: string, atMs?: number): Message {
  const { offset, tags, info } = publication;
  return {
    bytes: payloadOf(publication).slice(),
    source: publication.channel === channel ? undefined : publication.channel,
    position: offset === undefined ? "" : `#${offset}`,
    atMs,
    tags: tags ?? {},
    user: info?.user,
  };
}

/**
 * Returns the payload of a publication. One that came as part of a JSON message is serialized
 * again, which browsers cannot do if it is nested very deeply: an explanation then stands in its
 * place.
 */
export function payloadOf(publication: Publication): Uint8Array {
  try {
    return publication.bytes();
  } catch (error) {
    return new TextEncoder().encode(`This payload cannot be shown: ${String(error)}`);
  }
}

/** Returns the row of a message, which is read when the user unfolds it. */
export function messageRow(message: Message): HTMLElement {
  const row = create("li");
  const details = create("details", "message");
  const summary = create("summary");
  const { atMs, position, bytes, source, tags, user } = message;
  const time = atMs === undefined ? "" : clock(atMs);
  const head = [time, position, humanBytes(bytes.length)].filter((part) => part !== "");
  const text = create("span", "message-text", previewOf(bytes));
  text.dataset["testid"] = "message-text";
  summary.append(create("span", "message-head", head.join("  ")), text);
  const marks = [
    ...(source === undefined ? [] : [source]),
    ...Object.entries(tags).map(([name, value]) => `${name}=${value}`),
    ...(user === undefined || user === "" ? [] : [`by ${user}`]),
  ];
  summary.append(...marks.map((mark) => create("span", "mark", preview(mark, 60))));
  details.append(summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      details.append(bodyOf(bytes));
    }
  });
  row.append(details);
  return row;
}

function bodyOf(bytes: Uint8Array): HTMLElement {
  const body = create("div", "message-body");
  const payload = bytes.length <= JSON_BYTES_MAX ? read(bytes) : undefined;
  const full = create("pre", "message-full", inFull(bytes));
  full.tabIndex = 0;
  if (payload?.kind === "json") {
    const published = create("details", "published");
    published.append(create("summary", "", "As published"), full);
    body.append(jsonTree(payload.value), published);
  } else {
    body.append(full);
  }
  return body;
}

/** Returns the time of day in UTC to a millisecond. */
function clock(ms: number): string {
  const thousandth = String(Math.floor(ms % 1_000)).padStart(3, "0");
  return `${utcClock(ms / 1_000, true)}.${thousandth}`;
}
