// The native protocol over WebSocket: control messages in text frames, blocks in binary frames.

import { BAD_PROTOCOL, TRANSPORT_CLOSED } from "./codes.js";
import type { Endpoints } from "./endpoints.js";
import type { WebSocketConstructor, WebSocketLike } from "./environment.js";
import { type Link, type LinkEvents, parseLines } from "./link.js";

const SUBPROTOCOL = "linerate.v1";

export class WebSocketLink implements Link {
  readonly #socket: WebSocketLike;
  readonly #events: LinkEvents;
  #ended = false;

  /** Throws if `WebSocket` refuses the address. */
  constructor(endpoints: Endpoints, WebSocket: WebSocketConstructor, events: LinkEvents) {
    this.#events = events;
    const socket = new WebSocket(endpoints.websocket, [SUBPROTOCOL]);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#ended || events.opened();
    socket.onmessage = ({ data }: { data: string | ArrayBuffer }) => this.#receive(data);
    socket.onclose = ({ code, reason }: { code: number; reason: string }) =>
      this.#end(code, reason === "" ? "connection closed" : reason);
    // Some implementations report an error but never close.
    socket.onerror = () => this.#end(TRANSPORT_CLOSED, "connection failed");
    this.#socket = socket;
  }

  send(text: string): void {
    if (!this.#ended) {
      this.#socket.send(text);
    }
  }

  close(): void {
    this.#ended = true;
    this.#socket.close();
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#ended) {
      return;
    }
    try {
      if (typeof data === "string") {
        this.#events.messages(parseLines(data));
      } else {
        this.#events.blocks(new Uint8Array(data));
      }
    } catch (error) {
      this.#socket.close();
      this.#end(BAD_PROTOCOL, String(error));
    }
  }

  #end(code: number, reason: string): void {
    if (!this.#ended) {
      this.#ended = true;
      this.#events.closed(code, reason);
    }
  }
}
