// A log as the page shows it: its figures, and the view of them, which is kept in the address.
//
// The figures come from whatever answers the page's questions: a session at the server, or the
// engine in a report.

import { counted } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import { announce } from "./announcer.js";
import { watchDownloads } from "./downloads.js";
import { FiguresSource, sentence } from "./figures-source.js";
import { FiguresView } from "./figures-view.js";
import type { Answer, Question } from "./protocol.js";
import type { Summary } from "./summary.js";
import { fragmentOf, parseView, subjectOf, type View } from "./view.js";

export class LogView {
  readonly #figures: FiguresView;
  #view = parseView(location.hash);
  #source: FiguresSource | undefined;

  /**
   * `nameOf` returns the name of the log, for files that are saved. `visit` shows the view of an
   * address that the user went to.
   */
  constructor(nameOf: () => string, visit = (next: View) => this.show(next)) {
    this.#figures = new FiguresView(this.#view, {
      view: (chosen) => this.change(chosen),
      aside: (topic, question) => this.#source?.askAside(topic, question),
      lines: () => this.#source?.turnPage(),
    });
    watchDownloads(this.#figures.chart, () => {
      const summary = this.#source?.shown;
      return summary === undefined ? undefined : { summary, view: this.#view, name: nameOf() };
    });
    addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        closeMenus();
      }
    });
    addEventListener("popstate", () => visit(parseView(location.hash)));
  }

  get view(): View {
    return this.#view;
  }

  /**
   * Begins to show another log. `size` is its size in bytes, 0 if unknown; `ask` takes a question
   * whose answer is then passed to `handleAnswer`.
   */
  open(size: number, ask: (question: Question) => void): void {
    this.#source?.stop();
    const figures = this.#figures;
    figures.clear();
    const pageOf = () => figures.lines.page;
    figures.askAside(this.#view);
    this.#source = new FiguresSource(this.#view, size, ask, pageOf, figures.asides, {
      figures: (shown) => figures.show(shown),
      arrived: ({ requests }) => announce(`${counted(requests, "request")} shown`),
      lines: (total, rows) => figures.showLines(total, rows),
      linesRefused: (why) => figures.lines.refuse(sentence(why)),
      objection: (why) => figures.showObjection(sentence(why)),
      refused: (instead, why, at) => {
        const subject = subjectOf(this.#view, instead);
        const shown = { ...instead, log: this.#view.log };
        figures.showRefusal(shown, `${subject} not applied. ${sentence(why)}`, at);
        this.replace(shown);
      },
      pending: (isPending, fraction = 0) => {
        const share = fraction === 0 ? "" : ` ${Math.floor(100 * fraction)} %`;
        setText(element("filtering"), `Filtering …${share}`);
        document.body.dataset["filtering"] = isPending ? "on" : "off";
      },
    });
  }

  handleSnapshot(whole: Summary, isFinal: boolean): void {
    this.#source?.handleSnapshot(whole, isFinal);
  }

  handleAnswer(answer: Answer): void {
    this.#source?.handleAnswer(answer);
  }

  /** Nothing is asked or answered any more; the figures stay. */
  stop(): void {
    this.#source?.stop();
  }

  /** Stops showing the log. */
  close(): void {
    this.stop();
    this.#source = undefined;
    this.#figures.clear();
  }

  /** Shows another view and stores it in the address. */
  change(chosen: View): void {
    const fragment = fragmentOf(chosen);
    const address = `${location.pathname}${location.search}${fragment === "" ? "" : `#${fragment}`}`;
    if (address !== `${location.pathname}${location.search}${location.hash}`) {
      history.pushState(null, "", address);
    }
    this.show(chosen);
  }

  /** Shows another view in place of one that cannot be shown, also in the address. */
  replace(chosen: View): void {
    const fragment = fragmentOf(chosen);
    const address = `${location.pathname}${location.search}`;
    history.replaceState(null, "", fragment === "" ? address : `${address}#${fragment}`);
    this.show(chosen);
  }

  /** Shows another view, which is already in the address. */
  show(chosen: View): void {
    this.#view = chosen;
    this.#figures.lines.rewind();
    this.#figures.showView(chosen, this.#source?.whole);
    this.#source?.handleView(chosen);
    // After the figures, which are more urgent. If the view was refused, another one is shown.
    this.#figures.askAside(this.#view);
  }
}

/** Closes menus that are open although the focus is elsewhere. */
function closeMenus(): void {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")) {
    menu.open = false;
  }
}
