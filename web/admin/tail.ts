// The tail of a channel: publications as they arrive.

import { grouped, humanBytes, utcClock } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import type { AdminApi } from "../shared/admin-api.js";
import type { StreamEvent } from "../shared/event-stream.js";
import type { Done, TailPublication } from "./views.js";

/** Number of publications kept on the page. */
const ROWS_MAX = 100;
/** How many are shown per second; the server skips the others and reports how many. */
const RATE = 20;

export class Tail {
  readonly #api: AdminApi;
  readonly #channel = element("tail-channel") as HTMLInputElement;
  readonly #data = element("tail-data") as HTMLInputElement;
  readonly #state = element("tail-state");
  readonly #rows = element("tail-rows");
  readonly #stop = element("tail-stop");
  #abort: AbortController | undefined;

  constructor(api: AdminApi) {
    this.#api = api;
    element("tail-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.follow(this.#channel.value.trim());
    });
    element("tail-publish").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#publish(this.#channel.value.trim(), this.#data.value);
    });
    this.#stop.addEventListener("click", () => this.stop());
  }

  /** Shows new publications in `channel`. */
  follow(channel: string): void {
    if (channel === "") {
      return;
    }
    this.stop();
    this.#channel.value = channel;
    this.#rows.replaceChildren();
    setText(this.#state, `connecting to ${channel} …`);
    this.#stop.hidden = false;
    const abort = new AbortController();
    this.#abort = abort;
    const query = new URLSearchParams({ channel, rate: String(RATE) });
    this.#api
      .follow(
        `tail?${query}`,
        abort.signal,
        () => setText(this.#state, `following ${channel}`),
        (event) => this.#show(event),
      )
      .then(() => "the server ended the tail", String)
      .then((reason) => {
        if (!abort.signal.aborted) {
          this.stop();
          setText(this.#state, `stopped: ${reason}`);
        }
      });
  }

  stop(): void {
    this.#abort?.abort();
    this.#abort = undefined;
    this.#stop.hidden = true;
    setText(this.#state, "not following");
  }

  #show({ name, data }: StreamEvent): void {
    const event: unknown = JSON.parse(data);
    if (name === "publication") {
      this.#add(publicationRow(event as TailPublication));
    } else if (name === "skipped") {
      const { skipped } = event as { skipped: number };
      this.#add(create("li", "tail-notice", `${grouped(skipped)} more in this second, not shown`));
    } else if (name === "gap") {
      const { missed } = event as { missed: number | null };
      const count =
        missed === null
          ? "some publications may be"
          : `${grouped(missed)} ${missed === 1 ? "publication is" : "publications are"}`;
      this.#add(create("li", "tail-notice tail-gap", `gap: ${count} missing here`));
    }
  }

  #add(row: HTMLElement): void {
    this.#rows.prepend(row);
    while (this.#rows.childElementCount > ROWS_MAX) {
      this.#rows.lastElementChild?.remove();
    }
  }

  async #publish(channel: string, data: string): Promise<void> {
    if (channel === "") {
      return;
    }
    try {
      await this.#api.post<Done>("publish", { channel, data });
      setText(element("tail-published"), `published in ${channel}`);
    } catch (error) {
      setText(element("tail-published"), `cannot publish: ${String(error)}`);
    }
  }
}

function publicationRow(publication: TailPublication): HTMLElement {
  const { at_ms, channel, offset, bytes, data, is_cut } = publication;
  const row = create("li", "tail-row");
  const place = offset > 0 ? `${channel} #${grouped(offset)}` : channel;
  const head = create(
    "p",
    "note",
    `${utcClock(at_ms / 1_000, true)} UTC, ${place}, ${humanBytes(bytes)}`,
  );
  const text = create("code", "tail-data", is_cut ? `${data} …` : data);
  text.dataset["testid"] = "tail-text";
  row.append(head, text);
  return row;
}
