// The page's queries to the server: one at a time, and only the latest of each kind counts.

import type { ChangesQuery } from "./changes.js";
import type { Answer, Misplaced, Question, Row } from "./protocol.js";
import type { Query } from "./query.js";
import type { RateQuery } from "./rates-figures.js";
import type { Summary } from "./summary.js";
import type { ListQuery } from "./value-list.js";

/** The subjects of queries in the order in which they are asked. */
const TOPICS = ["figures", "comparison", "changes", "values", "latency", "rates", "rows"] as const;

/** The figures shown, those to compare them with, lines, or what a part of the page asks. */
export type Topic = (typeof TOPICS)[number];

/** Returns whether a part of the page asks on the topic. */
export function isAside(topic: Topic): topic is SideTopic {
  return topic === "changes" || topic === "latency" || topic === "rates" || topic === "values";
}

/** Which of the selected lines to show. */
export interface Page {
  /** A text that the lines contain, in upper or lower case; empty for all lines. */
  containing: string;
  offset: number;
  limit: number;
}

export interface EnquiryListener {
  figures(summary: Summary): void;
  comparison(summary: Summary): void;
  rows(total: number, rows: Row[]): void;
  /** The answer to a question of a part of the page. */
  side(topic: SideTopic, answer: Answer): void;
  /** How much of the log was examined for the answer on this topic, 0 to 1. */
  searching(topic: Topic, fraction: number): void;
  refused(topic: Topic, message: string, at: Misplaced | undefined): void;
}

/** A question of a part of the page; its type is also its topic. */
export type SideQuestion =
  | { type: "changes"; query: ChangesQuery }
  | { type: "latency"; query: Query }
  | { type: "rates"; query: Query; rates: RateQuery }
  | { type: "values"; query: ListQuery };
export type SideTopic = SideQuestion["type"];

type Unnumbered =
  | SideQuestion
  | { type: "query"; query: Query }
  | { type: "rows"; query: Query; containing: string; offset: number; limit: number };

/**
 * A newer query on the same topic replaces an older one, also if the server is working on that, so
 * that dragging across the chart never builds a queue.
 */
export class Enquiry {
  readonly #ask: (question: Question) => void;
  readonly #listener: EnquiryListener;
  readonly #waiting = new Map<Topic, Unnumbered>();
  #underWay: { seq: number; topic: Topic; question: Unnumbered } | undefined;
  #seq = 0;

  constructor(ask: (question: Question) => void, listener: EnquiryListener) {
    this.#ask = ask;
    this.#listener = listener;
  }

  askForFigures(topic: "figures" | "comparison", query: Query): void {
    this.#want(topic, { type: "query", query });
  }

  askAside(question: SideQuestion): void {
    this.#want(question.type, question);
  }

  askForRows(query: Query, page: Page): void {
    this.#want("rows", { type: "rows", query, ...page });
  }

  /** Drops the query on `topic` that has not been sent, and the answer to the one that has. */
  drop(topic: Topic): void {
    this.#waiting.delete(topic);
    if (this.#underWay?.topic === topic) {
      this.#dropUnderWay();
      this.#next();
    }
  }

  handleAnswer(answer: Answer): void {
    const underWay = this.#underWay;
    if (underWay?.seq !== answer.seq) {
      return;
    }
    if (answer.type !== "searching") {
      this.#underWay = undefined;
    }
    this.#tell(underWay.topic, answer);
    this.#next();
  }

  /** Returns whether an answer on `topic` is outstanding. */
  awaits(topic: Topic): boolean {
    return this.#waiting.has(topic) || this.#underWay?.topic === topic;
  }

  #tell(topic: Topic, answer: Answer): void {
    switch (answer.type) {
      case "figures":
        if (topic === "comparison") {
          this.#listener.comparison(answer.summary);
        } else {
          this.#listener.figures(answer.summary);
        }
        break;
      case "rows":
        this.#listener.rows(answer.total, answer.rows);
        break;
      case "changes":
      case "latency":
      case "rates":
      case "values":
        this.#listener.side(answer.type, answer);
        break;
      case "searching":
        this.#listener.searching(topic, answer.fraction);
        break;
      case "refused":
        this.#listener.refused(topic, answer.message, answer.at);
        break;
    }
  }

  #want(topic: Topic, question: Unnumbered): void {
    this.#waiting.set(topic, question);
    if (this.#underWay?.topic === topic && !isSame(this.#underWay.question, question)) {
      this.#dropUnderWay();
    }
    this.#next();
  }

  #dropUnderWay(): void {
    if (this.#underWay !== undefined) {
      this.#ask({ type: "drop", seq: this.#underWay.seq });
      this.#underWay = undefined;
    }
  }

  #next(): void {
    if (this.#underWay !== undefined) {
      return;
    }
    for (const topic of TOPICS) {
      const question = this.#waiting.get(topic);
      if (question !== undefined) {
        this.#waiting.delete(topic);
        this.#seq += 1;
        this.#underWay = { seq: this.#seq, topic, question };
        this.#ask({ ...question, seq: this.#seq });
        return;
      }
    }
  }
}

function isSame(a: Unnumbered, b: Unnumbered): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
