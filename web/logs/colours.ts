// The colours of the charts, which the style sheet defines for light and dark.

import { OTHER_LAYER, type Split } from "./stacking.js";

/** Returns a custom property of the style sheet: `--ink-soft`. */
export function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * Returns the custom property with the colour of a layer; `place` counts layers from the bottom.
 */
export function colourName(split: Split, name: string, place: number): string {
  if (split === "class") {
    return `--class-${name === "" ? "other" : name}`;
  }
  return name === OTHER_LAYER ? "--class-other" : `--layer-${(place % 8) + 1}`;
}

export function colourOf(split: Split, name: string, place: number): string {
  return cssColour(colourName(split, name, place));
}
