// Tables whose rows carry a bar: the row's share of the largest.

import { grouped, percentage } from "../shared/format.js";
import { create, setFigure, setText } from "../shared/page.js";

export interface BarRow {
  label: string;
  /** Said beside the label, if there is something to say. */
  meaning?: string;
  count: number;
  /** A class name that colours the bar. */
  colour: string;
}

/**
 * Fills a table body in place: rows are reused, and never fewer than `rowsMin`, so that the page
 * below doesn't move while figures come in.
 */
export function showBars(body: HTMLElement, rows: BarRow[], total: number, rowsMin: number): void {
  const wanted = Math.max(rows.length, rowsMin);
  while (body.childElementCount < wanted) {
    body.append(emptyRow());
  }
  while (body.childElementCount > wanted) {
    body.lastElementChild?.remove();
  }
  const largest = rows.reduce((most, { count }) => Math.max(most, count), 0);
  [...body.children].forEach((child, i) => {
    fill(child as HTMLElement, rows[i], largest, total);
  });
}

function emptyRow(): HTMLTableRowElement {
  const row = create("tr", "bar-row");
  const label = create("th", "bar-label");
  label.scope = "row";
  label.append(create("span", "bar"), create("span", "bar-name"), create("span", "bar-meaning"));
  row.append(label, create("td", "bar-count"), create("td", "bar-share"));
  return row;
}

function fill(row: HTMLElement, data: BarRow | undefined, largest: number, total: number): void {
  const [bar, name, meaning, count, share] = [
    ".bar",
    ".bar-name",
    ".bar-meaning",
    ".bar-count",
    ".bar-share",
  ].map((part) => row.querySelector<HTMLElement>(part)) as [
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
  ];
  row.classList.toggle("bar-row-empty", data === undefined);
  setText(name, data?.label ?? " ");
  name.title = data?.label ?? "";
  setText(meaning, data?.meaning ?? "");
  bar.className = `bar ${data?.colour ?? ""}`;
  bar.style.width = `${data === undefined ? 0 : (100 * data.count) / Math.max(1, largest)}%`;
  setFigure(count, data === undefined ? "" : grouped(data.count), data?.count ?? 0);
  setText(share, data === undefined ? "" : percentage(data.count, total));
}
