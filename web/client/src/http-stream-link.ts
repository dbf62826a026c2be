// The HTTP transport, for networks that block WebSocket: replies stream in one response, commands
// are posted.

import { BAD_PROTOCOL, TRANSPORT_CLOSED } from "./codes.js";
import type { Endpoints } from "./endpoints.js";
import type { Environment } from "./environment.js";
import { type Link, type LinkEvents, parseLines } from "./link.js";
import type { Reply } from "./messages.js";

export class HttpStreamLink implements Link {
  readonly #endpoints: Endpoints;
  readonly #environment: Environment;
  readonly #events: LinkEvents;
  readonly #abort = new AbortController();
  #started = false;
  #ended = false;
  /** The server's name for this connection, which commands must contain. */
  #session: { session: string; node: string } | undefined;
  /** Commands that wait for the current one, so that they arrive in order. */
  #unsent: string[] = [];
  #sending = false;

  constructor(endpoints: Endpoints, environment: Environment, events: LinkEvents) {
    this.#endpoints = endpoints;
    this.#environment = environment;
    this.#events = events;
    queueMicrotask(() => this.#ended || events.opened());
  }

  /** The first command opens the stream; the others are posted. */
  send(text: string): void {
    if (this.#ended) {
      return;
    }
    if (!this.#started) {
      this.#started = true;
      this.#stream(text).catch((error) => this.#end(TRANSPORT_CLOSED, String(error)));
      return;
    }
    this.#unsent.push(text);
    this.#sendUnsent();
  }

  close(): void {
    this.#ended = true;
    this.#abort.abort();
  }

  async #stream(connect: string): Promise<void> {
    const response = await this.#post(this.#endpoints.httpStream, connect);
    if (!response.ok || response.body === null) {
      this.#end(TRANSPORT_CLOSED, `server answered with status ${response.status}`);
      return;
    }
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    let line = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        this.#end(TRANSPORT_CLOSED, "connection closed");
        return;
      }
      const text = decoder.decode(value, { stream: true });
      const end = text.lastIndexOf("\n");
      if (end < 0) {
        line += text;
      } else {
        this.#receive(line + text.slice(0, end));
        line = text.slice(end + 1);
      }
    }
  }

  #receive(lines: string): void {
    let replies: Reply[];
    try {
      replies = parseLines(lines);
    } catch (error) {
      this.#end(BAD_PROTOCOL, String(error));
      return;
    }
    for (const { connect } of replies) {
      if (connect?.session !== undefined) {
        this.#session = { session: connect.session, node: connect.node ?? "" };
      }
    }
    this.#events.messages(replies);
    this.#sendUnsent();
  }

  #sendUnsent(): void {
    if (this.#sending || this.#session === undefined || this.#unsent.length === 0) {
      return;
    }
    this.#sending = true;
    const data = this.#unsent.splice(0).join("\n");
    const body = JSON.stringify({ ...this.#session, data });
    this.#post(this.#endpoints.emulation, body).then(
      (response) => {
        this.#sending = false;
        if (response.ok) {
          this.#sendUnsent();
        } else {
          this.#end(TRANSPORT_CLOSED, `server answered a command with status ${response.status}`);
        }
      },
      (error: unknown) => this.#end(TRANSPORT_CLOSED, String(error)),
    );
  }

  #post(url: string, body: string): Promise<Response> {
    return this.#environment.fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
      cache: "no-store",
      signal: this.#abort.signal,
    });
  }

  #end(code: number, reason: string): void {
    if (!this.#ended) {
      this.#ended = true;
      this.#abort.abort();
      this.#events.closed(code, reason);
    }
  }
}
