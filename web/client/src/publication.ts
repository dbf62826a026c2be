// What arrives in a channel.

import type { Gap } from "./gap.js";
import type { ClientInfo, PublicationMessage } from "./messages.js";

const DECODER = new TextDecoder();
const ENCODER = new TextEncoder();

/** What a publication carries beside its payload. */
export interface PublicationContext {
  channel: string;
  offset?: number | undefined;
  info?: ClientInfo | undefined;
  tags?: Record<string, string> | undefined;
}

/** A publication. Its payload is decoded when somebody asks for it. */
export class Publication {
  /** The channel it was published in; with a pattern subscribed, not the pattern, where the server says so. */
  readonly channel: string;
  /** Its place in the stream of the channel, from 1 on, if the channel keeps one. */
  readonly offset: number | undefined;
  /** Who published it, if a client did and the server says so. */
  readonly info: ClientInfo | undefined;
  readonly tags: Readonly<Record<string, string>> | undefined;
  #gap: Gap | undefined;
  #bytes: Uint8Array | undefined;
  #value: unknown;

  private constructor(context: PublicationContext) {
    this.channel = context.channel;
    this.offset = context.offset;
    this.info = context.info;
    this.tags = context.tags;
  }

  /** @internal Creates one from the payload as it was published. */
  static fromBytes(bytes: Uint8Array, context: PublicationContext): Publication {
    const publication = new Publication(context);
    publication.#bytes = bytes;
    return publication;
  }

  /** @internal Creates one from what arrived inside of a control message. */
  static fromMessage(message: PublicationMessage, channel: string): Publication {
    const publication = new Publication({
      channel: message.channel ?? channel,
      offset: message.offset,
      info: message.info,
      tags: message.tags,
    });
    if (message.b64data === undefined) {
      publication.#value = message.data;
    } else {
      const decoded = atob(message.b64data);
      publication.#bytes = Uint8Array.from(decoded, (char) => char.charCodeAt(0));
    }
    return publication;
  }

  /** What was missed right before it, if anything was. */
  get gap(): Gap | undefined {
    return this.#gap;
  }

  /** @internal Puts a gap before it. */
  follow(gap: Gap | undefined): void {
    this.#gap = gap;
  }

  /**
   * Returns the payload as it was published, as a view of the block it came in: copy what you keep
   * for long. Over HTTP streaming it is the JSON written anew.
   */
  bytes(): Uint8Array {
    this.#bytes ??= ENCODER.encode(JSON.stringify(this.#value));
    return this.#bytes;
  }

  /** Returns the payload as text. */
  text(): string {
    return DECODER.decode(this.bytes());
  }

  /**
   * Returns the payload as parsed JSON; each call after the first returns the same object.
   *
   * Throws a `SyntaxError` if it is no JSON.
   */
  json<Value = unknown>(): Value {
    if (this.#value === undefined) {
      this.#value = JSON.parse(this.text());
    }
    return this.#value as Value;
  }
}
