// Blocks of publications, as binary frames of the native protocol carry them
// (docs/gateway/protocols.md).

import { ProtocolError } from "./errors.js";
import type { ClientInfo } from "./messages.js";

/**
 * Flags of a block. Each adds a field, in this order; the last three add one before each payload.
 */
const FLAGS = {
  OFFSETS: 0x01,
  CONFLATED: 0x02,
  GAP: 0x04,
  SPARSE: 0x08,
  SOURCES: 0x10,
  EXTRAS: 0x20,
} as const;

const FLAGS_KNOWN = 0x3f;

const DECODER = new TextDecoder();

/** Publications of one channel, oldest first. */
export interface Block {
  readonly channelId: number;
  /** How many more were omitted because newer ones with the same key replaced them. */
  readonly conflated: number;
  /** The gap before the first publication. */
  readonly gap: { readonly missed: number | undefined; readonly cause: number } | undefined;
  readonly items: readonly BlockItem[];
}

/** A publication in a block. */
export interface BlockItem {
  readonly offset: number | undefined;
  /** The channel that it was published in, if a pattern is subscribed. */
  readonly source: string | undefined;
  readonly extras: { readonly info?: ClientInfo; readonly tags?: Record<string, string> };
  /** A view of the frame. */
  readonly payload: Uint8Array;
}

/** Parses the blocks of one binary frame; throws a `ProtocolError` if they are malformed. */
export function* readBlocks(bytes: Uint8Array): Generator<Block> {
  const reader = new Reader(bytes);
  while (!reader.isAtEnd) {
    yield readBlock(reader);
  }
}

function readBlock(reader: Reader): Block {
  const channelId = reader.varint();
  const flags = reader.byte();
  if ((flags & ~FLAGS_KNOWN) !== 0) {
    throw new ProtocolError(`block has unknown flags: ${flags}`);
  }
  let nextOffset = flags & FLAGS.OFFSETS ? reader.varint() : undefined;
  const conflated = flags & FLAGS.CONFLATED ? reader.varint() : 0;
  const gap = flags & FLAGS.GAP ? readGap(reader) : undefined;
  const items: BlockItem[] = [];
  for (let count = reader.varint(); count > 0; count -= 1) {
    if (flags & FLAGS.SPARSE) {
      nextOffset = (nextOffset ?? 0) + reader.varint();
    }
    const source = flags & FLAGS.SOURCES ? DECODER.decode(reader.bytes()) : "";
    const extras = flags & FLAGS.EXTRAS ? readExtras(reader.bytes()) : {};
    const payload = reader.bytes();
    items.push({ offset: nextOffset, source: source === "" ? undefined : source, extras, payload });
    nextOffset = nextOffset === undefined ? undefined : nextOffset + 1;
  }
  return { channelId, conflated, gap, items };
}

function readGap(reader: Reader): Block["gap"] {
  const missedAndOne = reader.varint();
  return { missed: missedAndOne === 0 ? undefined : missedAndOne - 1, cause: reader.varint() };
}

function readExtras(json: Uint8Array): BlockItem["extras"] {
  return json.length === 0 ? {} : (JSON.parse(DECODER.decode(json)) as BlockItem["extras"]);
}

/** Reads bytes from the front to the back. */
class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Reads a number in groups of seven bits, lowest first; it must be exact in JavaScript. */
  varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 49; factor *= 128) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) {
        throw new ProtocolError("block ends within a number");
      }
      this.#at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) {
          break;
        }
        return value;
      }
    }
    throw new ProtocolError("block contains a number above 2^53 - 1");
  }

  byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) {
      throw new ProtocolError("block ends before its flags");
    }
    this.#at += 1;
    return byte;
  }

  /** Reads a length, and returns a view of that many bytes. */
  bytes(): Uint8Array {
    const length = this.varint();
    const end = this.#at + length;
    if (end > this.#bytes.length) {
      throw new ProtocolError("block ends within a payload");
    }
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
