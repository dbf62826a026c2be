// The panels of values: paths, statuses, addresses and so on, each a table of the most frequent.

import { counted, grouped, humanBytes, percentage, utcClock, utcDay } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { changeOf, directionOf } from "./change.js";
import type { Field } from "./query.js";
import { classOf, reasonOf } from "./status-classes.js";
import {
  DISTINCT_ERROR,
  type FirewallEntry,
  type PanelFigures,
  type PanelName,
  type Summary,
  type ValueCount,
} from "./summary.js";
import { type Cell, type Choose, type ValueRow, ValueTable } from "./value-table.js";
import { MORE_TOP } from "./view.js";

/** The data of the panels: the figures, and those they are compared with, if any. */
export interface Shown {
  summary: Summary;
  compared: Summary | undefined;
  filters: readonly string[];
  /** The panels that are expanded to show many values. */
  more: readonly string[];
  /** True if no more lines will follow, so that tables need no space for more values. */
  isFinal: boolean;
}

export interface PanelEvents {
  /** A value was clicked. */
  choose: Choose;
  /** A panel was expanded to many values, or collapsed. */
  more(panel: string): void;
}

interface Panel {
  show(shown: Shown | undefined): void;
}

/** The number of rows of a tall panel, of a short one, and of one with few values. */
const TALL = 12;
const SHORT = 8;
const FEW = 6;
/** Keeps the height of an empty note. */
const NOTHING = "\u00a0";

interface ValuePanelSpec {
  id: string;
  title: string;
  /** The heading of the column of values. */
  heading: string;
  rows: number;
  /** The field of the filter that a click on a value adds. */
  field: Field;
  /** The width of the panel, in twelfths of the page. */
  width: number;
  figuresOf(summary: Summary): { top: ValueCount[]; figures?: PanelFigures };
  /** The text of the panel if no request has a value. */
  why(summary: Summary): string;
  /** The words after the number of requests without a value. */
  noValue?: string;
  /** Returns whether to show the panel; without this function it is always shown. */
  isThere?(summary: Summary): boolean;
  meaningOf?(value: string, summary: Summary | undefined): string;
  colourOf?(value: string): string;
  /** The class of errors that the panel counts; its shares are of that class. */
  errors?: "4xx" | "5xx";
}

const named = (field: PanelName) => (summary: Summary) => ({
  top: summary.panels[field].top,
  figures: summary.panels[field],
});

const VALUE_PANELS: ValuePanelSpec[] = [
  {
    ...{ id: "path", title: "Paths", heading: "Path", field: "path", rows: TALL, width: 7 },
    figuresOf: named("path"),
    why: () => "No request line has a path.",
  },
  {
    ...{
      id: "status",
      title: "Statuses",
      heading: "Status",
      field: "status",
      rows: TALL,
      width: 5,
    },
    figuresOf: named("status"),
    why: () => "The log format has no status.",
    meaningOf: reasonOf,
    colourOf: (status) => `swatch-${classOf(status)}`,
  },
  {
    ...{
      id: "address",
      title: "Addresses",
      heading: "Address",
      field: "address",
      rows: TALL,
      width: 6,
    },
    figuresOf: named("address"),
    why: () => "The log format has no address.",
  },
  {
    ...{
      id: "referrer",
      title: "Referrers",
      heading: "Referrer",
      field: "referrer",
      rows: TALL,
      width: 6,
    },
    figuresOf: named("referrer"),
    why: () => "No request has a referrer; the common format does not include it.",
  },
  {
    ...{
      id: "country",
      title: "Countries",
      heading: "Country of address",
      field: "country",
      rows: SHORT,
      width: 12,
    },
    isThere: ({ countries }) => countries !== null,
    figuresOf: ({ countries }) =>
      countries === null ? { top: [] } : { top: countries.figures.top, figures: countries.figures },
    noValue: "from unknown addresses",
    why: () => "The country database contains none of the addresses.",
    meaningOf: (code, summary) => summary?.countries?.names[code] ?? "",
  },
  {
    ...{ id: "agent", title: "Agents", heading: "Agent", field: "agent", rows: TALL, width: 7 },
    figuresOf: named("agent"),
    why: () => "No request has an agent; the common format does not include it.",
  },
  {
    ...{
      id: "bots",
      title: "Bots",
      heading: "Bot, by agent",
      field: "bot",
      rows: TALL,
      width: 5,
    },
    figuresOf: ({ bots }) => ({ top: bots.top }),
    why: () => "No agent identifies itself as a bot.",
  },
  {
    ...{
      id: "browser",
      title: "Browsers",
      heading: "Browser, by agent",
      field: "browser",
      rows: SHORT,
      width: 6,
    },
    figuresOf: ({ browsers }) => ({ top: browsers.top, figures: browsers }),
    noValue: "from bots and others",
    why: () => "No agent is that of a known browser.",
  },
  {
    ...{
      id: "system",
      title: "Systems",
      heading: "Operating system, by agent",
      field: "system",
      rows: SHORT,
      width: 6,
    },
    figuresOf: ({ systems }) => ({ top: systems.top, figures: systems }),
    noValue: "from bots and others",
    why: () => "No agent names a known operating system.",
  },
  {
    ...{
      id: "errors-4xx",
      title: "Paths of client errors (4xx)",
      heading: "Path",
      field: "path",
      rows: SHORT,
      width: 6,
    },
    figuresOf: ({ error_paths }) => ({ top: error_paths["4xx"] }),
    errors: "4xx",
    why: () => "No request was answered with a status from 400 to 499.",
    colourOf: () => "swatch-4xx",
  },
  {
    ...{
      id: "errors-5xx",
      title: "Paths of server errors (5xx)",
      heading: "Path",
      field: "path",
      rows: SHORT,
      width: 6,
    },
    figuresOf: ({ error_paths }) => ({ top: error_paths["5xx"] }),
    errors: "5xx",
    why: () => "No request was answered with a status from 500 to 599.",
    colourOf: () => "swatch-5xx",
  },
  {
    ...{
      id: "method",
      title: "Methods",
      heading: "Method",
      field: "method",
      rows: FEW,
      width: 6,
    },
    figuresOf: named("method"),
    why: () => "No request line has a method.",
  },
  {
    ...{ id: "host", title: "Hosts", heading: "Host", field: "host", rows: FEW, width: 6 },
    figuresOf: named("host"),
    why: () => "The log format does not include the host; nginx writes it as $host.",
  },
];

/** Builds all panels. */
export class Panels {
  readonly #panels: Panel[];

  constructor({ choose, more }: PanelEvents) {
    const values = element("panels");
    const firewall = element("firewall");
    this.#panels = [
      ...VALUE_PANELS.map((spec) => new ValuePanel(values, spec, choose, more)),
      new FirewallPanel(firewall, "by_rate", choose),
      new FirewallPanel(firewall, "by_errors", choose),
    ];
    this.clear();
  }

  show(shown: Shown): void {
    for (const panel of this.#panels) {
      panel.show(shown);
    }
  }

  clear(): void {
    for (const panel of this.#panels) {
      panel.show(undefined);
    }
  }
}

class ValuePanel implements Panel {
  readonly #spec: ValuePanelSpec;
  readonly #section: HTMLElement;
  readonly #note: HTMLElement;
  readonly #empty: HTMLElement;
  readonly #more: HTMLButtonElement;
  readonly #table: ValueTable;

  constructor(
    parent: HTMLElement,
    spec: ValuePanelSpec,
    choose: Choose,
    more: (panel: string) => void,
  ) {
    this.#spec = spec;
    const { section, note, empty, table } = card(parent, spec.id, spec.title, spec.width);
    this.#section = section;
    this.#note = note;
    this.#more = moreButton(note, spec, () => more(spec.id));
    this.#empty = empty;
    const columns =
      spec.errors === undefined
        ? [spec.heading, "Requests", "Share", "Bytes sent", "Change"]
        : [spec.heading, "Errors", `Of all ${spec.errors}`, "", "Change"];
    this.#table = new ValueTable(table, `${spec.id}-rows`, columns, spec.rows, choose);
  }

  show(shown: Shown | undefined): void {
    const { isThere } = this.#spec;
    this.#section.hidden =
      isThere !== undefined && (shown === undefined || !isThere(shown.summary));
    const { top, figures } =
      shown === undefined ? { top: [] } : this.#spec.figuresOf(shown.summary);
    const before = shown?.compared && this.#spec.figuresOf(shown.compared);
    const rows = top.map((entry) => this.#row(entry, shown, before));
    const isLong = shown?.more.includes(this.#spec.id) === true;
    this.#table.resize(isLong ? Math.max(rows.length, this.#spec.rows) : this.#spec.rows);
    this.#table.show(rows, shown?.filters ?? [], shown?.isFinal ?? false);
    this.#more.disabled = !isLong && (figures?.distinct ?? top.length) <= this.#spec.rows;
    nameMore(this.#more, this.#spec, isLong);
    setText(
      this.#note,
      figures === undefined
        ? countNote(shown, Math.min(top.length, isLong ? top.length : this.#spec.rows))
        : distinctNote(figures, shown?.summary.is_part ?? false, this.#spec.noValue),
    );
    const isEmpty = shown !== undefined && top.length === 0;
    setText(this.#empty, isEmpty ? whyEmpty(shown, this.#spec.why(shown.summary)) : "");
  }

  #row(
    { value, requests, bytes }: ValueCount,
    shown: Shown | undefined,
    before: { top: ValueCount[]; figures?: PanelFigures } | undefined,
  ): ValueRow {
    const { field, meaningOf, colourOf, errors } = this.#spec;
    const summary = shown?.summary;
    const all = errors === undefined ? summary?.requests : summary?.status_classes[errors];
    return {
      label: value,
      meaning: meaningOf?.(value, summary) ?? "",
      length: requests,
      colour: colourOf?.(value) ?? "bar-plain",
      cells: [
        { text: grouped(requests), exact: requests },
        { text: percentage(requests, all ?? 0), exact: 0 },
        // For a path with errors, only the bytes of all its requests are known, which would
        // mislead.
        errors === undefined ? { text: humanBytes(bytes), exact: bytes } : { text: "", exact: 0 },
        changeCell(requests, value, before),
      ],
      choice: { field, value, exclude: false },
    };
  }
}

/** Returns the change of one value, if the figures compared with contain it. */
function changeCell(
  now: number,
  value: string,
  before: { top: ValueCount[]; figures?: PanelFigures } | undefined,
): Cell {
  if (before === undefined) {
    return { text: "", exact: 0 };
  }
  const found = before.top.find((entry) => entry.value === value);
  if (found === undefined && before.top.length < (before.figures?.distinct ?? 0)) {
    const least = before.top.at(-1)?.requests ?? 0;
    return { text: `was ≤ ${grouped(least)}`, exact: 0, tone: "change" };
  }
  const was = found?.requests ?? 0;
  return {
    text: `was ${grouped(was)}, ${changeOf(now, was)}`,
    exact: was,
    tone: `change change-${directionOf(now, was)}`,
  };
}

const FIREWALL = {
  by_rate: {
    title: "Busiest addresses",
    note: "By the most requests in one minute, which is what a rate limit catches.",
    columns: ["Address", "Peak per minute", "At (UTC)", "Requests", "Errors"],
  },
  by_errors: {
    title: "Most refused addresses",
    note: "By requests with a status of 400 or above: scanners, broken clients.",
    columns: ["Address", "Errors", "Error share", "Requests", "Peak/min"],
  },
} as const;

class FirewallPanel implements Panel {
  readonly #order: keyof typeof FIREWALL;
  readonly #note: HTMLElement;
  readonly #empty: HTMLElement;
  readonly #table: ValueTable;

  constructor(parent: HTMLElement, order: keyof typeof FIREWALL, choose: Choose) {
    this.#order = order;
    const { title, columns } = FIREWALL[order];
    const made = card(parent, order === "by_rate" ? "by-rate" : "by-errors", title, 6);
    this.#note = made.note;
    this.#empty = made.empty;
    const id = order === "by_rate" ? "by-rate-rows" : "by-errors-rows";
    this.#table = new ValueTable(made.table, id, [...columns], SHORT, choose);
  }

  show(shown: Shown | undefined): void {
    const entries = shown?.summary.firewall[this.#order] ?? [];
    const rows = entries.map((entry) => this.#row(entry));
    this.#table.show(rows, shown?.filters ?? [], shown?.isFinal ?? false);
    const error = shown?.summary.firewall.error_max ?? 0;
    const { note } = FIREWALL[this.#order];
    setText(this.#note, error === 0 ? note : `${note} Peaks at most ${grouped(error)} too low.`);
    const why =
      this.#order === "by_rate"
        ? "The log format has no address."
        : "No address got a status of 400 or above.";
    setText(this.#empty, shown !== undefined && rows.length === 0 ? whyEmpty(shown, why) : "");
  }

  #row(entry: FirewallEntry): ValueRow {
    const byRate = this.#order === "by_rate";
    const peak = { text: grouped(entry.peak_per_minute), exact: entry.peak_per_minute };
    const at = {
      text: `${utcDay(entry.peak_at).replace(/ \d+$/, "")} ${utcClock(entry.peak_at)}`,
      exact: entry.peak_at,
    };
    const requests = { text: grouped(entry.requests), exact: entry.requests };
    const errors = { text: grouped(entry.errors), exact: entry.errors };
    const share = { text: percentage(entry.errors, entry.requests), exact: 0 };
    return {
      label: entry.value,
      length: byRate ? entry.peak_per_minute : entry.errors,
      colour: byRate ? "bar-plain" : "swatch-4xx",
      cells: byRate ? [peak, at, requests, errors] : [errors, share, requests, peak],
      choice: { field: "address", value: entry.value, exclude: false },
    };
  }
}

/** Builds a card with a heading, a note, a table and a place for the reason if it is empty. */
function card(parent: HTMLElement, id: string, title: string, width: number) {
  const section = create("section", `card panel panel-${width}`);
  section.dataset["testid"] = `panel-${id}`;
  const head = create("div", "section-head");
  const heading = create("h2", "", title);
  heading.id = `panel-${id}-title`;
  section.setAttribute("aria-labelledby", heading.id);
  const note = create("p", "note");
  note.dataset["testid"] = `${id}-note`;
  const table = create("table");
  table.setAttribute("aria-labelledby", heading.id);
  const scrolled = create("div", "values-scrolled");
  scrolled.append(table);
  const empty = create("p", "panel-empty");
  empty.dataset["testid"] = `${id}-empty`;
  head.append(heading, note);
  section.append(head, scrolled, empty);
  parent.append(section);
  return { section, note, table, empty };
}

/** Builds the button before the note that expands the panel. */
function moreButton(note: HTMLElement, spec: ValuePanelSpec, more: () => void) {
  const button = create("button", "panel-more");
  button.type = "button";
  button.disabled = true;
  button.dataset["testid"] = `${spec.id}-more`;
  button.addEventListener("click", more);
  nameMore(button, spec, false);
  note.before(button);
  return button;
}

function nameMore(button: HTMLElement, { title, rows }: ValuePanelSpec, isLong: boolean): void {
  setText(button, isLong ? "Fewer" : "More");
  button.setAttribute("aria-label", `${button.textContent ?? ""}: ${title}`);
  button.title = `${title}: show up to ${isLong ? rows : MORE_TOP}`;
}

/** Returns how many values there are, and the error of the counts if they are not exact. */
export function distinctNote(
  { distinct, exact, error_max, none }: PanelFigures,
  isPart: boolean,
  noValue = "without",
): string {
  if (distinct === 0) {
    return NOTHING;
  }
  const estimated = isPart
    ? `≥ ${grouped(distinct)} different`
    : `≈ ${grouped(distinct)} (${DISTINCT_ERROR}) different`;
  const parts = [exact ? `${grouped(distinct)} different` : estimated];
  if (error_max > 0) {
    parts.push(`counts at most ${grouped(error_max)} too low`);
  }
  if (none > 0) {
    parts.push(`${counted(none, "request")} ${noValue}`);
  }
  return parts.join(" · ");
}

function countNote(shown: Shown | undefined, values: number): string {
  return shown === undefined || values === 0 ? NOTHING : `the top ${grouped(values)}`;
}

function whyEmpty({ summary }: Shown, why: string): string {
  return summary.requests === 0 ? "No request matches the filters." : why;
}
