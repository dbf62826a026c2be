// The history of the channel: the last messages that the server keeps, with their positions.

import type { Client } from "../client/src/linerate.js";
import { counted } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import { messageOf, messageRow } from "./message-row.js";
import { preview } from "./payload.js";

export class HistoryBox {
  readonly #client: Client;
  readonly #channel: string;
  readonly #explain: (error: unknown) => string;
  readonly #limit = element("history-limit") as HTMLSelectElement;
  readonly #state = element("history-state");
  readonly #trouble = element("history-trouble");
  readonly #rows = element("history-rows");

  /** `explain` returns what an error means. */
  constructor(client: Client, channel: string, explain: (error: unknown) => string) {
    this.#client = client;
    this.#channel = channel;
    this.#explain = explain;
    element("history-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.load();
    });
  }

  async load(): Promise<void> {
    const limit = Number(this.#limit.value);
    try {
      const { publications, position } = await this.#client.history(this.#channel, {
        limit,
        reverse: true,
      });
      const { epoch, offset } = position;
      const rows = publications.map((publication) => {
        const message = messageOf(publication, this.#channel);
        const at = `${preview(epoch, 24)}:${publication.offset ?? "?"}`;
        return messageRow({ ...message, position: at });
      });
      this.#rows.replaceChildren(...rows);
      setText(this.#trouble, "");
      const where = `the stream is at ${preview(epoch, 24)}:${offset}`;
      const text = `${counted(publications.length, "message")}, newest first; ${where}`;
      setFigure(this.#state, text, publications.length);
    } catch (error) {
      this.#rows.replaceChildren();
      setText(this.#state, "");
      setText(this.#trouble, this.#explain(error));
    }
  }
}
