// The text/event-stream format (WHATWG HTML §9.2.6), for streams whose request needs a header.

export interface StreamEvent {
  name: string;
  data: string;
}

/** Assembles events from text that may be split anywhere. */
export class EventStream {
  readonly #handle: (event: StreamEvent) => void;
  #rest = "";
  #name = "";
  #data: string[] = [];

  constructor(handle: (event: StreamEvent) => void) {
    this.#handle = handle;
  }

  handleInput(text: string): void {
    // A CR at the end may be the first half of a CRLF.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#handleLine(line);
    }
  }

  #handleLine(line: string): void {
    if (line === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    const [field, value] =
      colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    if (field === "event") {
      this.#name = value;
    } else if (field === "data") {
      this.#data.push(value);
    }
  }

  #dispatch(): void {
    if (this.#data.length > 0) {
      this.#handle({ name: this.#name || "message", data: this.#data.join("\n") });
    }
    this.#name = "";
    this.#data = [];
  }
}
