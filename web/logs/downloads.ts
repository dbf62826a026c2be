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
import { timeLabels } from "./time-axis.js";
import type { View } from "./view.js";

/** The data that can be saved. */
export interface Savable {
  summary: Summary;
  view: View;
  /** The name of the log. */
  name: string;
}

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
  const done = await navigator.clipboard.writeText(location.href).then(
    () => true,
    () => false,
  );
  const said = done ? "Link copied" : "Cannot copy; use the address bar";
  setText(element("copy-link"), said);
  announce(said);
  setTimeout(() => setText(element("copy-link"), "Copy link"), 2_000);
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

/** Draws the legend of the chart, from left to right. The unit of `y` is a device pixel. */
function drawLegend(context: CanvasRenderingContext2D, drawing: Drawing, y: number): void {
  const scale = devicePixelRatio;
  let x = 12 * scale;
  context.font = `${Math.round(13 * scale)}px ${getComputedStyle(document.body).fontFamily}`;
  drawing.layers.layers.forEach(({ name }, place) => {
    context.fillStyle = drawing.colour(colourName(drawing.split, name, place));
    context.fillRect(x, y, 11 * scale, 11 * scale);
    context.fillStyle = drawing.colour("--ink-soft");
    context.fillText(name, x + 17 * scale, y + 10 * scale);
    x += 35 * scale + context.measureText(name).width;
  });
}

/** Returns the chart as shown on the screen, with its title, legend and background. */
function asPng(chart: RequestsChart): Promise<Blob> | undefined {
  const { canvas } = chart;
  const drawing = drawingOf(chart);
  const picture = document.createElement("canvas");
  const head = Math.round(70 * devicePixelRatio);
  picture.width = canvas.width;
  picture.height = canvas.height + head;
  const context = picture.getContext("2d");
  if (context === null || drawing === undefined) {
    return undefined;
  }
  context.fillStyle = cssColour("--card");
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = cssColour("--ink");
  context.font = `600 ${Math.round(16 * devicePixelRatio)}px ${getComputedStyle(document.body).fontFamily}`;
  context.fillText(drawing.title, 12 * devicePixelRatio, 30 * devicePixelRatio, picture.width - 24);
  drawLegend(context, drawing, 46 * devicePixelRatio);
  context.drawImage(canvas, 0, head);
  return new Promise((resolve, reject) => {
    picture.toBlob((blob) =>
      blob === null ? reject(new Error("cannot encode the chart")) : resolve(blob),
    );
  });
}
