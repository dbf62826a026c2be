// The latest messages. The list is drawn once per frame, and holds still while the user pauses it,
// points at it, or works in it.

import type { Publication } from "../client/src/linerate.js";
import { counted } from "../shared/format.js";
import { element, oncePerFrame, setText } from "../shared/page.js";
import { type Message, messageOf, messageRow } from "./message-row.js";
import { Recent } from "./recent.js";

/** Number of messages kept. */
const MESSAGES_MAX = 50;
/** Number of payload bytes kept. */
const BYTES_MAX = 8_388_608;

export class MessageList {
  readonly #list = element("messages");
  readonly #frame = element("messages-frame");
  readonly #pause = element("messages-pause");
  readonly #state = element("messages-state");
  readonly #recent = new Recent<Message>(MESSAGES_MAX, BYTES_MAX);
  readonly #rows = new Map<Message, HTMLElement>();
  readonly #draw = oncePerFrame(() => this.#drawRows());
  #isPaused = false;
  /** Messages that arrived since the list was drawn last. */
  #unseen = 0;

  constructor() {
    this.#pause.addEventListener("click", () => {
      this.#isPaused = !this.#isPaused;
      this.#pause.setAttribute("aria-pressed", String(this.#isPaused));
      setText(this.#pause, this.#isPaused ? "Resume" : "Pause");
      this.#draw();
    });
    for (const event of ["pointerenter", "pointerleave", "focusin", "focusout"]) {
      this.#frame.addEventListener(event, this.#draw);
    }
    this.#draw();
  }

  /** Shows messages that arrived together in a subscription to `channel`. */
  add(batch: readonly Publication[], channel: string): void {
    const atMs = Date.now();
    this.#recent.add(
      batch.slice(-MESSAGES_MAX).map((publication) => messageOf(publication, channel, atMs)),
    );
    this.#unseen += batch.length;
    this.#draw();
  }

  clear(): void {
    this.#recent.clear();
    this.#unseen = 0;
    this.#list.replaceChildren();
    this.#rows.clear();
    this.#draw();
  }

  get #isHeld(): boolean {
    return this.#frame.matches(":hover") || this.#frame.matches(":focus-within");
  }

  #drawRows(): void {
    if (this.#rows.size > 0 && (this.#isPaused || this.#isHeld)) {
      const why = this.#isPaused ? "paused" : "held while you are in the list";
      setText(this.#state, `${why}, ${counted(this.#unseen, "newer message")}`);
      return;
    }
    const { items } = this.#recent;
    if (this.#unseen > 0) {
      this.#unseen = 0;
      const rows = items.map((message) => this.#rowOf(message));
      this.#list.replaceChildren(...rows);
      const kept = new Set(items);
      for (const message of this.#rows.keys()) {
        if (!kept.has(message)) {
          this.#rows.delete(message);
        }
      }
    }
    setText(this.#state, items.length === 0 ? "nothing has arrived yet" : "newest first");
  }

  #rowOf(message: Message): HTMLElement {
    const row = this.#rows.get(message) ?? messageRow(message);
    this.#rows.set(message, row);
    return row;
  }
}
