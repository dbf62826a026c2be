// What the user wishes of the subscription: a filter, conflation, a batch interval; and what the
// server says about it.

import { counted, grouped, percentage } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import type { Meter } from "./meter.js";
import type { Wishes } from "./snippets.js";

/** The filter is applied when the user has stopped typing for this long. */
const TYPING_MS = 400;

export class WishesForm {
  readonly #filter = element("filter") as HTMLInputElement;
  readonly #conflate = element("conflate") as HTMLSelectElement;
  readonly #pointer = element("pointer") as HTMLInputElement;
  readonly #batch = element("batch") as HTMLSelectElement;
  readonly #filterTrouble = element("filter-trouble");
  readonly #trouble = element("wishes-trouble");
  readonly #account = element("account");
  readonly #changed: () => void;
  #applied = "{}";

  /** `changed` is called when the wishes have changed. */
  constructor(changed: () => void) {
    this.#changed = changed;
    let timer: ReturnType<typeof setTimeout> | undefined;
    for (const field of [this.#filter, this.#pointer]) {
      field.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(() => this.#apply(), TYPING_MS);
      });
    }
    element("wishes").addEventListener("change", () => this.#apply());
    element("wishes").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#apply();
    });
    this.#showPointer();
  }

  get wishes(): Wishes {
    const filter = this.#filter.value.trim();
    const conflate = this.#isKeyed ? this.#pointer.value.trim() : this.#conflate.value;
    const batch = this.#batch.value;
    return {
      ...(filter !== "" && { filter }),
      ...(conflate !== "" && { conflate }),
      ...(batch !== "" && { batchIntervalMs: Number(batch) }),
    };
  }

  /** Shows why the server refuses the wishes; nothing if it does not. */
  showTrouble(text: string): void {
    const isFilters =
      text !== "" && this.wishes.filter !== undefined && !/batch|conflat|pointer/i.test(text);
    setText(this.#filterTrouble, isFilters ? text : "");
    setText(this.#trouble, isFilters ? "" : text);
    this.#filter.setAttribute("aria-invalid", String(isFilters));
  }

  /** Shows how much of what was published a subscriber with these wishes receives. */
  showAccount(published: Meter, received: Meter): void {
    const { filter, conflate } = this.wishes;
    const { messages: all } = published;
    const { messages, batches } = received;
    if (Object.keys(this.wishes).length === 0) {
      setText(this.#account, "A subscriber without options receives all that is published.");
      delete this.#account.dataset["value"];
      return;
    }
    const share = all === 0 ? "" : ` (${percentage(Math.min(messages, all), all)})`;
    const why =
      filter !== undefined && conflate === undefined
        ? `${grouped(messages)} of ${counted(all, "message")} match${share}`
        : `${grouped(messages)} of ${counted(all, "message")} received${share}`;
    const size = batches === 0 ? "" : `, ${(messages / batches).toFixed(1)} at a time`;
    setFigure(this.#account, why + size, messages);
    this.#account.dataset["published"] = String(all);
  }

  get #isKeyed(): boolean {
    return this.#conflate.value === "key";
  }

  #showPointer(): void {
    element("pointer-field").hidden = !this.#isKeyed;
  }

  #apply(): void {
    this.#showPointer();
    const now = JSON.stringify(this.wishes);
    if (now !== this.#applied) {
      this.#applied = now;
      this.showTrouble("");
      this.#changed();
    }
  }
}
