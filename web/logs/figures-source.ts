// Where figures come from: the server pushes those of the whole log, and answers queries about a
// part.

import { grouped, utcClock, utcDay } from "../shared/format.js";
import { Enquiry, isAside, type Page, type SideQuestion, type SideTopic } from "./enquiry.js";
import type { Figures } from "./figures-view.js";
import type { Answer, Misplaced, Question, Row } from "./protocol.js";
import type { TimeRange } from "./query.js";
import type { SidePanel } from "./standing-question.js";
import type { Summary } from "./summary.js";
import {
  comparedRange,
  comparisonQueryOf,
  isPushed,
  isSameQuery,
  isSameSelection,
  isWhole,
  queryOf,
  type View,
  wholeOf,
} from "./view.js";

/** While lines arrive, a part of the log is queried at most this often. */
const ASK_EVERY_MS = 500;
/** The share of the time, as a divisor, that the server may spend on queries while lines arrive. */
const ASK_SHARE = 4;

export interface FiguresSourceEvents {
  figures(figures: Figures): void;
  /** The figures of a view that was chosen have arrived. */
  arrived(shown: Summary): void;
  lines(total: number, rows: readonly Row[]): void;
  /** The lines cannot be shown, for the server's reason. */
  linesRefused(why: string): void;
  /** Some figures of the view are unavailable. `why` is empty once they are available. */
  objection(why: string): void;
  /**
   * The view cannot be shown, so `instead` must be shown: the last view that could be. `at` is the
   * filter that caused this, if one did.
   */
  refused(instead: View, why: string, at?: Misplaced): void;
  /**
   * True while the figures shown are not those of the view yet; `fraction` is how much of the log
   * was examined for them.
   */
  pending(isPending: boolean, fraction?: number): void;
}

export class FiguresSource {
  readonly #enquiry: Enquiry;
  readonly #events: FiguresSourceEvents;
  readonly #size: number;
  readonly #pageOf: () => Page;
  readonly #panels: Record<SideTopic, SidePanel>;
  #view: View;
  /** The last view whose figures were shown. */
  #applied: View;
  #whole: Summary | undefined;
  #shown: Summary | undefined;
  #compared: { summary: Summary; range: TimeRange } | undefined;
  #isFinal = false;
  /** True from the choice of a view until its figures arrive. */
  #isAwaited = false;
  #askedAtMs = -Infinity;
  /** How long the latest answer took. */
  #tookMs = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * `size` is the log's size in bytes, 0 if unknown; `pageOf` returns which lines to show. `panels`
   * get the answers to their questions.
   */
  constructor(
    view: View,
    size: number,
    ask: (question: Question) => void,
    pageOf: () => Page,
    panels: Record<SideTopic, SidePanel>,
    events: FiguresSourceEvents,
  ) {
    this.#view = view;
    this.#applied = wholeOf(view);
    this.#size = size;
    this.#pageOf = pageOf;
    this.#panels = panels;
    this.#events = events;
    this.#enquiry = new Enquiry(ask, {
      figures: (summary) => {
        this.#shown = summary;
        this.#tookMs = performance.now() - this.#askedAtMs;
        this.#applied = this.#view;
        events.pending(false);
        events.objection(reachOf(summary));
        this.#tell();
        this.#handleArrival(summary);
      },
      comparison: (summary) => {
        const range = comparedRange(this.#view);
        this.#compared = range === null ? undefined : { summary, range };
        this.#tell();
      },
      rows: (total, rows) => events.lines(total, rows),
      side: (topic, answer) => this.#panels[topic].show(answer),
      searching: (topic, fraction) => {
        if (topic === "figures" && !isSameQuery(this.#view, this.#applied)) {
          events.pending(true, fraction);
        } else if (isAside(topic)) {
          this.#panels[topic].showProgress(fraction);
        }
      },
      refused: (topic, message, at) => {
        if (topic === "rows") {
          events.linesRefused(message);
        } else if (isAside(topic)) {
          this.#panels[topic].refuse(sentence(message));
        } else if (topic === "figures") {
          this.#refuse(message, at);
        } else {
          events.refused({ ...this.#view, comparison: { kind: "none" } }, message, at);
        }
      },
    });
  }

  /** The figures of everything read so far. */
  get whole(): Summary | undefined {
    return this.#whole;
  }

  /** The figures shown. */
  get shown(): Summary | undefined {
    return this.#shown;
  }

  handleSnapshot(whole: Summary, isFinal: boolean): void {
    this.#whole = whole;
    this.#isFinal = isFinal;
    if (isPushed(this.#view) || this.#shown === undefined) {
      this.#shown = whole;
      this.#tell();
    }
    if (!this.#refuseUnfilterable()) {
      this.#events.pending(!isSameQuery(this.#view, this.#applied));
      this.#askSoon(isFinal);
    }
  }

  handleAnswer(answer: Answer): void {
    this.#enquiry.handleAnswer(answer);
  }

  handleView(view: View): void {
    this.#view = view;
    this.#events.objection("");
    if (comparedRange(view) === null) {
      this.#compared = undefined;
      this.#enquiry.drop("comparison");
    }
    if (isPushed(view) && this.#whole !== undefined) {
      this.#enquiry.drop("figures");
      this.#shown = this.#whole;
      this.#applied = view;
    }
    const isShown = this.#shown !== undefined && isSameQuery(view, this.#applied);
    if (isShown) {
      this.#enquiry.drop("figures");
    }
    this.#events.pending(!isShown && this.#whole !== undefined);
    this.#tell();
    this.#isAwaited = true;
    if (isShown && this.#shown !== undefined) {
      this.#handleArrival(this.#shown);
    }
    if (!this.#refuseUnfilterable()) {
      this.#ask(isShown);
    }
  }

  #handleArrival(shown: Summary): void {
    if (this.#isAwaited) {
      this.#isAwaited = false;
      this.#events.arrived(shown);
    }
  }

  /** Asks a question of a part of the page; null withdraws the question on the topic. */
  askAside(topic: SideTopic, question: SideQuestion | null): void {
    if (question === null) {
      this.#enquiry.drop(topic);
    } else {
      this.#enquiry.askAside(question);
    }
  }

  /** Requests another page of lines. */
  turnPage(): void {
    this.#enquiry.askForRows(queryOf(this.#view), this.#pageOf());
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#events.pending(false);
  }

  #askSoon(now: boolean): void {
    const everyMs = Math.max(ASK_EVERY_MS, ASK_SHARE * this.#tookMs);
    const wait = this.#askedAtMs + everyMs - performance.now();
    if (now || wait <= 0) {
      this.#ask();
    } else {
      this.#timer ??= setTimeout(() => this.#ask(), wait);
    }
  }

  /** Asks for the figures of the view, unless it `hasFigures` already, and for the rest. */
  #ask(hasFigures = false): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#askedAtMs = performance.now();
    if (this.#whole === undefined) {
      return;
    }
    if (!isPushed(this.#view) && !hasFigures) {
      this.#enquiry.askForFigures("figures", queryOf(this.#view));
    }
    const comparison = comparisonQueryOf(this.#view);
    if (comparison !== null) {
      this.#enquiry.askForFigures("comparison", comparison);
    }
    this.turnPage();
  }

  /** Refuses to filter a log that cannot be filtered; returns whether it did. */
  #refuseUnfilterable(): boolean {
    const why = this.#whole?.filterable.refusal ?? null;
    if (why === null || isWhole(this.#view)) {
      return false;
    }
    this.#refuse(why, undefined);
    return true;
  }

  /** Returns to the last view that could be shown. */
  #refuse(why: string, at: Misplaced | undefined): void {
    this.#events.pending(false);
    if (isWhole(this.#view)) {
      // Only more values were wanted than are pushed.
      this.#events.objection(why);
      this.#shown = this.#whole;
      this.#tell();
      return;
    }
    const isOutdated = isSameSelection(this.#applied, this.#view);
    const instead = isOutdated ? wholeOf(this.#view) : this.#applied;
    this.#events.refused({ ...instead, follow: this.#view.follow }, why, at);
  }

  #tell(): void {
    if (this.#whole !== undefined && this.#shown !== undefined) {
      this.#events.figures({
        whole: this.#whole,
        shown: this.#shown,
        compared: this.#compared,
        fraction: this.#size === 0 || this.#isFinal ? 1 : this.#whole.bytes_read / this.#size,
        isFinal: this.#isFinal,
      });
    }
  }
}

/** Returns a note on the requests that are kept, if older ones have been dropped. */
export function reachOf({ filterable }: Summary): string {
  const { since, requests } = filterable;
  if (since === null) {
    return "";
  }
  const from = `${utcDay(since)} ${utcClock(since)} UTC`;
  return `the server keeps the newest ${grouped(requests)} requests, from ${from} on; these figures cover only those`;
}

/** Makes a sentence of a reason. */
export function sentence(text: string): string {
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
