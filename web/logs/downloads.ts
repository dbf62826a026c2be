// The menu that saves the figures and the chart as files.

import { element, setText } from "../shared/page.js";
import { announce } from "./announcer.js";
import { colourName, cssColour } from "./colours.js";
import {
  type Drawing,
  figuresAsCsv,
  figuresAsJson,
  histogramAsSvg,
  timelineAsCsv,
} from "./export.js";
import type { RequestsChart } from "./requests-chart.js";
import { layersOf } from "./stacking.js";
import type { Summary } from "./summary.js";
import { timeLabels } from "../shared/time-axis.js";
import type { View } from "./view.js";

/** The data that can be saved. */
export interface Savable {
  summary: Summary;
  view: View;
  /** The name of the log. */
  name: string;
}

/** The space around a PNG, the heights of its title and of a row of its legend, in CSS pixels. */
const PICTURE_MARGIN = 12;
const TITLE_HEIGHT = 48;
const LEGEND_ROW = 22;
/** The width of a colour in the legend with the space behind it, and the space between entries. */
const LEGEND_SWATCH = 17;
const LEGEND_GAP = 18;

/** Labels on the time axis of a picture. */
const MARKS = 6;

/** Connects the menu; `savable` is called when an entry is chosen. */
export function watchDownloads(chart: RequestsChart, savable: () => Savable | undefined): void {
  const menu = element("export") as HTMLDetailsElement;
  const choices: Record<string, (of: Savable) => Blob | Promise<Blob> | undefined> = {
    "export-json": ({ summary, view, name }) =>
      text(figuresAsJson(summary, view, name), "application/json"),
    "export-csv": ({ summary }) => text(figuresAsCsv(summary), "text/csv"),
    "export-timeline": ({ summary }) =>
      text(
        timelineAsCsv(summary, layersOf(summary.timeline, chart.drawing?.split ?? "class")),
        "text/csv",
      ),
    "export-svg": () => {
      const drawing = drawingOf(chart);
      return drawing && text(histogramAsSvg(drawing), "image/svg+xml");
    },
    "export-png": () => asPng(chart),
  };
  for (const [id, make] of Object.entries(choices)) {
    element(id).addEventListener("click", () => {
      const of = savable();
      menu.open = false;
      menu.querySelector("summary")?.focus();
      if (of !== undefined) {
        void save(make(of), fileName(of.name, id));
      }
    });
  }
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      menu.open = false;
      menu.querySelector("summary")?.focus();
    }
  });
  addEventListener("click", ({ target }) => {
    if (!menu.contains(target as Node)) {
      menu.open = false;
    }
  });
  element("copy-link").addEventListener("click", () => void copyLink());
}

async function copyLink(): Promise<void> {
  // Pages without TLS have no clipboard.
  const written: Promise<void> | undefined = navigator.clipboard?.writeText(location.href);
  const done = await (written ?? Promise.reject()).then(
    () => true,
    () => false,
  );
  const said = done ? "Link copied" : "Cannot copy; use the address bar";
  setText(element("copy-link"), said);
  announce(said);
  setTimeout(() => setText(element("copy-link"), "Copy link"), 2_000);
}

/** Saves a text as a file. */
export function saveText(content: string, name: string): void {
  void save(text(content, "text/plain"), name);
}

async function save(made: Blob | Promise<Blob> | undefined, name: string): Promise<void> {
  const blob = await made;
  if (blob === undefined) {
    return;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  announce(`Saved ${name}`);
  // By the next turn of its event loop the browser holds its own reference to the blob.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function fileName(log: string, id: string): string {
  const stem = log.replace(/\.(log|gz|zst|txt)$/g, "") || "log";
  const ending = {
    "export-json": ".json",
    "export-csv": "-panels.csv",
    "export-timeline": "-timeline.csv",
    "export-svg": ".svg",
    "export-png": ".png",
  }[id];
  return `${stem}${ending ?? ""}`;
}

function text(content: string, type: string): Blob {
  return new Blob([content], { type: `${type};charset=utf-8` });
}

function drawingOf(chart: RequestsChart): Drawing | undefined {
  const drawing = chart.drawing;
  if (drawing === null) {
    return undefined;
  }
  const [from, to] = drawing.axis;
  const step = (to - from) / MARKS;
  const times = Array.from({ length: MARKS }, (_, i) => Math.round(from + (i + 0.5) * step));
  const labels = timeLabels(times, step);
  return {
    ...drawing,
    title: `${element("chart-title").textContent ?? ""}, ${element("span").textContent ?? ""}`,
    colour: cssColour,
    marks: labels.map((label, i) => ({ at: (i + 0.5) / MARKS, label: label.replace("\n", " ") })),
  };
}

/** An entry of the legend of a picture; lengths are in CSS pixels. */
interface LegendEntry {
  name: string;
  colour: string;
  x: number;
  row: number;
}

/**
 * Places the entries of a legend in rows of at most `width`; `widthOf` returns the width of a name.
 */
export function legendEntries(
  { layers, split, colour }: Drawing,
  width: number,
  widthOf: (name: string) => number,
): LegendEntry[] {
  let [x, row] = [0, 0];
  return layers.layers.map(({ name }, place) => {
    const needed = LEGEND_SWATCH + widthOf(name);
    if (x > 0 && x + needed > width) {
      [x, row] = [0, row + 1];
    }
    const entry = { name, colour: colour(colourName(split, name, place)), x, row };
    x += needed + LEGEND_GAP;
    return entry;
  });
}

/** Returns the chart as shown on the screen, with its title, legend and background. */
function asPng(chart: RequestsChart): Promise<Blob> | undefined {
  const { canvas } = chart;
  const drawing = drawingOf(chart);
  const picture = document.createElement("canvas");
  const context = picture.getContext("2d");
  if (context === null || drawing === undefined) {
    return undefined;
  }
  const scale = devicePixelRatio;
  const font = (size: number, weight: number) =>
    `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  const width = canvas.width / scale - 2 * PICTURE_MARGIN;
  context.font = font(13, 400);
  const legend = legendEntries(drawing, width, (name) => context.measureText(name).width);
  const rows = (legend.at(-1)?.row ?? -1) + 1;
  const head = Math.round((TITLE_HEIGHT + rows * LEGEND_ROW) * scale);
  picture.width = canvas.width;
  picture.height = canvas.height + head;
  context.fillStyle = cssColour("--card");
  context.fillRect(0, 0, picture.width, picture.height);
  context.save();
  context.scale(scale, scale);
  context.fillStyle = cssColour("--ink");
  context.font = font(16, 600);
  context.fillText(drawing.title, PICTURE_MARGIN, 30, width);
  context.font = font(13, 400);
  for (const { name, colour, x, row } of legend) {
    const [left, top] = [PICTURE_MARGIN + x, TITLE_HEIGHT - 4 + row * LEGEND_ROW];
    context.fillStyle = colour;
    context.fillRect(left, top, 11, 11);
    context.fillStyle = cssColour("--ink-soft");
    context.fillText(name, left + LEGEND_SWATCH, top + 10);
  }
  context.restore();
  context.drawImage(canvas, 0, head);
  return new Promise((resolve, reject) => {
    picture.toBlob((blob) =>
      blob === null ? reject(new Error("cannot encode the chart")) : resolve(blob),
    );
  });
}
