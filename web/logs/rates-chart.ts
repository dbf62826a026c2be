// The curve of limits: how many keys exceed each, and how many of them look like people.

import { compact } from "../shared/format.js";
import type { RateEffect } from "./rates-figures.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
/** The size of the picture in its own units; it is stretched to its element. */
const WIDTH = 1_000;
const HEIGHT = 200;

/** Draws the curve into an SVG element. The table next to it has the same figures. */
export function drawCurve(picture: SVGElement, curve: readonly RateEffect[], chosen: number): void {
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const most = Math.max(1, ...curve.map(({ keys }) => keys));
  const x = placeOn(curve);
  const line = (count: (effect: RateEffect) => number, name: string): SVGElement => {
    // A limit has its effect up to the next higher one.
    const steps = curve.map((effect, i) => {
      const y = HEIGHT * (1 - Math.log1p(count(effect)) / Math.log1p(most));
      return `${i === 0 ? "M" : "H"}${x(effect.allowed).toFixed(1)}${i === 0 ? " " : "V"}${y.toFixed(1)}`;
    });
    return shape("path", { class: name, d: steps.join("") });
  };
  const mark = x(chosen).toFixed(1);
  picture.replaceChildren(
    line(({ keys }) => keys, "rates-line"),
    line(({ people }) => people, "rates-line rates-line-people"),
    shape("path", { class: "rates-mark", d: `M${mark} 0V${HEIGHT}` }),
  );
}

/** Returns the labels of the axes: the lowest limit, the highest, and the most keys. */
export function curveEnds(curve: readonly RateEffect[]): [string, string, string] {
  const most = curve.reduce((a, { keys }) => Math.max(a, keys), 0);
  return [compact(curve[0]?.allowed ?? 0), compact(curve.at(-1)?.allowed ?? 0), compact(most)];
}

/** Returns the function that places limits on a logarithmic axis. */
function placeOn(curve: readonly RateEffect[]): (allowed: number) => number {
  const least = Math.log(Math.max(1, curve[0]?.allowed ?? 1));
  const span = Math.log(Math.max(1, curve.at(-1)?.allowed ?? 1)) - least;
  return (allowed) => {
    const at = span <= 0 ? 0 : (Math.log(Math.max(1, allowed)) - least) / span;
    return WIDTH * Math.max(0, Math.min(1, at));
  };
}

function shape(name: string, attributes: Record<string, string>): SVGElement {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  return made;
}
