// Publications, as they arrive in a channel.

import { fromBase64 } from "./base64.js";
import type { Gap } from "./gap.js";
import type { ClientInfo, PublicationMessage } from "./messages.js";

const DECODER = new TextDecoder();
const ENCODER = new TextEncoder();

/** The fields of a publication other than its payload. */
export interface PublicationContext {
  channel: string;
  offset?: number | undefined;
  info?: ClientInfo | undefined;
  tags?: Record<string, string> | undefined;
}

/** A publication. Its payload is decoded on demand. */
export class Publication {
  /**
   * The channel that it was published in. If a pattern is subscribed, this is the pattern unless
   * the server names the channel.
   */
  readonly channel: string;
  /** Its position in the stream of the channel, from 1 on, if the channel keeps a stream. */
  readonly offset: number | undefined;
  /** The client that published it, if the server names one. */
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

  /** @internal Creates one from a control message. */
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
      publication.#bytes = fromBase64(message.b64data);
    }
    return publication;
  }

  /** The gap right before it, if there is one. */
  get gap(): Gap | undefined {
    return this.#gap;
  }

  /** @internal Puts a gap before it. */
  follow(gap: Gap | undefined): void {
    this.#gap = gap;
  }

  /**
   * Returns the payload as it was published, as a view of the block that it arrived in: copy it if
   * you keep it for long. Over HTTP streaming it is the JSON serialized again.
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
   * Throws a `SyntaxError` if the payload is not JSON.
   */
  json<Value = unknown>(): Value {
    if (this.#value === undefined) {
      this.#value = JSON.parse(this.text());
    }
    return this.#value as Value;
  }
}
