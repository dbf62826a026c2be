// What the charts of several pages have in common: colours, axes, size, and shaded times.

import uPlot from "uplot";

/** A part of the x axis that is shaded. */
export interface Shade {
  from: number;
  to: number;
}

/** Returns the value of a CSS property, which depends on the colour scheme. */
export function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Returns what all axes look like. */
export function axisStyle(): uPlot.Axis {
  return {
    stroke: () => cssColour("--ink-soft"),
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
    ticks: { show: false },
  };
}

/** Returns what lines across the chart look like. */
export function gridStyle(): uPlot.Axis.Grid {
  return { stroke: () => cssColour("--line"), width: 1 };
}

/** Keeps a chart as wide as its frame, and in the colours of the page. */
export function keepFitting(plot: uPlot, frame: HTMLElement): void {
  new ResizeObserver(() => {
    const width = frame.clientWidth;
    if (width > 0 && width !== plot.width) {
      plot.setSize({ width, height: plot.height });
    }
  }).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    plot.redraw(false, true);
  });
}

/** Returns a plugin that shades times during which the broker was unreachable. */
export function shading(shades: () => readonly Shade[]): uPlot.Plugin {
  return {
    hooks: {
      drawClear: (plot) => {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.fillStyle = cssColour("--outage");
        for (const { from, to } of shades()) {
          const [left, right] = [from, to].map((x) =>
            Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(x, "x", true))),
          ) as [number, number];
          // Also a short outage is visible on a long axis.
          const width = Math.max(right - left, 2 * devicePixelRatio);
          if (right > bbox.left) {
            ctx.fillRect(left, bbox.top, width, bbox.height);
          }
        }
        ctx.restore();
      },
    },
  };
}
