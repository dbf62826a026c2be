// Answers the page's questions from the report itself, offline.

import { type Answer, parseServerMessage, type Question } from "./protocol.js";
import type { Summary } from "./summary.js";

/** What crates/linerate-report exports. */
interface Exports {
  memory: WebAssembly.Memory;
  report_reserve(bytes: number): number;
  report_open(): number;
  report_answer(): number;
  report_buffer(): number;
}

export class ReportEngine {
  readonly #exports: Exports;
  readonly #whole: Summary;

  private constructor(exports: Exports, whole: Summary) {
    this.#exports = exports;
    this.#whole = whole;
  }

  /**
   * Starts the engine with a packed log, whose figures as a whole are `whole`.
   *
   * Throws if the log is invalid.
   */
  static async open(
    program: Uint8Array<ArrayBuffer>,
    packed: Uint8Array,
    whole: Summary,
  ): Promise<ReportEngine> {
    const { instance } = await WebAssembly.instantiate(program);
    const engine = new ReportEngine(instance.exports as unknown as Exports, whole);
    engine.#write(packed);
    const objection = engine.#read(engine.#exports.report_open());
    if (objection !== "") {
      throw new Error(objection);
    }
    return engine;
  }

  /** Answers a question; undefined for one that is withdrawn. */
  answer(question: Question): Answer | undefined {
    this.#write(new TextEncoder().encode(JSON.stringify(question)));
    const text = this.#read(this.#exports.report_answer());
    if (text === "") {
      return undefined;
    }
    const answer = parseServerMessage(text) as Answer;
    return answer.type === "figures"
      ? { ...answer, summary: { ...answer.summary, ...linesOf(this.#whole) } }
      : answer;
  }

  #write(bytes: Uint8Array): void {
    const at = this.#exports.report_reserve(bytes.length);
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
  }

  #read(length: number): string {
    const at = this.#exports.report_buffer();
    return new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, at, length));
  }
}

/** The figures of the log's lines, which are the same for all queries and not packed. */
function linesOf(whole: Summary): Partial<Summary> {
  const { lines, unparsed, blank, unparsed_reasons, unparsed_samples } = whole;
  const { bytes_read, damaged, format, format_fit } = whole;
  return {
    ...{ lines, unparsed, blank, unparsed_reasons, unparsed_samples },
    ...{ bytes_read, damaged, format, format_fit },
  };
}
