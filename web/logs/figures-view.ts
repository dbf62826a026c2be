// Everything that shows figures: tiles, chart, strip, panels, lines.

import { element, setText } from "../shared/page.js";
import { BytesChart } from "./bytes-chart.js";
import { ChangesPanel } from "./changes-panel.js";
import { damageNote } from "./damage.js";
import type { SideQuestion, SideTopic } from "./enquiry.js";
import { FilterBar } from "./filter-bar.js";
import { LatencyOverTime } from "./latency-over-time.js";
import { LatencyPanel } from "./latency.js";
import { LinesTable } from "./lines-table.js";
import { OverviewStrip } from "./overview-strip.js";
import { Panels } from "./panels.js";
import type { Misplaced, Row } from "./protocol.js";
import type { TimeRange } from "./query.js";
import { RangeBar } from "./range-bar.js";
import { RatesPanel } from "./rates.js";
import { spanOnAxis } from "./ranges.js";
import { RequestsChart } from "./requests-chart.js";
import type { Summary } from "./summary.js";
import { clearTotals, showTotals } from "./totals.js";
import { clearUnparsedLines, showUnparsedLines } from "./unparsed-lines.js";
import { ValuesPanel } from "./values-panel.js";
import type { Choose } from "./value-table.js";
import { comparedRange, type View, withMore, withToggled } from "./view.js";

/** The current figures of a log. */
export interface Figures {
  /** Of everything that was read. */
  whole: Summary;
  /** Of the part that the view selects. */
  shown: Summary;
  compared: { summary: Summary; range: TimeRange } | undefined;
  /** How much of the log has been read, 0 to 1. */
  fraction: number;
  /** True if no more lines will follow. */
  isFinal: boolean;
}

export interface FiguresViewEvents {
  /** The user chose another view. */
  view(view: View): void;
  /** A part of the page asks a question; null withdraws it. */
  aside(topic: SideTopic, question: SideQuestion | null): void;
  /** The user requested another page of lines. */
  lines(): void;
}

export class FiguresView {
  readonly chart: RequestsChart;
  readonly lines: LinesTable;
  /** The parts of the page that ask questions of their own. */
  readonly asides: {
    changes: ChangesPanel;
    latency: LatencyOverTime;
    rates: RatesPanel;
    values: ValuesPanel;
  };
  readonly #strip: OverviewStrip;
  readonly #range: RangeBar;
  readonly #filters: FilterBar;
  readonly #panels: Panels;
  readonly #latency = new LatencyPanel();
  readonly #bytes = new BytesChart();
  #view: View;
  /** The view that is shown because another one was refused, and why. */
  #refusal: { instead: View; why: string } | undefined;

  constructor(view: View, events: FiguresViewEvents) {
    this.#view = view;
    const change = (changes: Partial<View>) => events.view({ ...this.#view, ...changes });
    this.chart = new RequestsChart((range) => change({ range }));
    this.lines = new LinesTable(() => events.lines());
    this.#strip = new OverviewStrip((target, range) => {
      if (target === "shown") {
        change({ range });
      } else if (range !== null) {
        change({ comparison: { kind: "range", range } });
      }
    });
    this.#range = new RangeBar({
      range: (range) => change({ range }),
      comparison: (comparison) => change({ comparison }),
    });
    this.#filters = new FilterBar({ change: (filters) => change({ filters }) });
    const choose: Choose = (choice) => events.view(withToggled(this.#view, choice));
    const asker = (topic: SideTopic) => (question: SideQuestion | null) =>
      events.aside(topic, question);
    this.asides = {
      changes: new ChangesPanel({ ask: asker("changes"), choose }),
      latency: new LatencyOverTime(asker("latency")),
      rates: new RatesPanel({ ask: asker("rates"), choose }),
      values: new ValuesPanel({ ask: asker("values"), choose }),
    };
    this.#panels = new Panels({
      choose,
      more: (panel) => events.view(withMore(this.#view, panel)),
    });
    this.showView(view, undefined);
  }

  /** Shows the chosen view before its figures have arrived. */
  showView(view: View, whole: Summary | undefined): void {
    this.#view = view;
    document.body.dataset["compare"] = comparedRange(view) === null ? "off" : "on";
    this.#filters.show(view.filters);
    this.#range.show(view, whole === undefined ? null : spanOnAxis(whole));
    this.#strip.mark(view.range, comparedRange(view));
  }

  /** Lets the parts of the page ask about the chosen view. */
  askAside(view: View): void {
    for (const panel of Object.values(this.asides)) {
      panel.showView(view);
    }
  }

  show(figures: Figures): void {
    const { whole, shown, compared, fraction, isFinal } = figures;
    document.body.dataset["figures"] = "some";
    const { range, filters, more } = this.#view;
    this.#filters.showRefusal(whole.filterable.refusal);
    showTotals(shown, compared?.summary, whole);
    this.chart.show({ summary: shown, fraction, range, compared }, isFinal);
    this.#strip.show(whole, fraction);
    this.#range.show(this.#view, spanOnAxis(whole));
    this.#panels.show({ summary: shown, compared: compared?.summary, filters, more, isFinal });
    this.#latency.show(shown, compared?.summary);
    this.#bytes.show(shown, range);
    for (const panel of Object.values(this.asides)) {
      panel.handleFigures(figures);
    }
    showUnparsedLines(whole);
    setText(element("damage"), damageNote(whole.damaged));
  }

  showLines(total: number, rows: readonly Row[]): void {
    this.lines.show(total, rows);
  }

  /** Shows what the figures of the view do not cover; clears the message if it is empty. */
  showObjection(why: string): void {
    // A refusal stays until another view is chosen.
    if (this.#refusal?.instead === this.#view) {
      setText(element("objection"), this.#refusal.why);
    } else {
      setText(element("objection"), why);
      this.#filters.accept();
    }
  }

  /** Explains why the present view was refused, before `instead` is shown. */
  showRefusal(instead: View, why: string, at?: Misplaced): void {
    this.#refusal = { instead, why };
    this.#filters.refuse(this.#view.filters, why, at);
  }

  clear(): void {
    document.body.dataset["figures"] = "none";
    clearTotals();
    this.chart.clear();
    Object.values(this.asides).forEach((panel) => panel.clear());
    this.#strip.clear();
    this.#panels.clear();
    this.#latency.clear();
    this.#bytes.clear();
    this.lines.clear();
    this.#refusal = undefined;
    this.#filters.showRefusal(null);
    this.showObjection("");
    clearUnparsedLines();
    setText(element("damage"), "");
  }
}
