// The paths asked for most often.

import { element } from "../shared/page.js";
import { showBars } from "./bars.js";
import type { Summary } from "./protocol.js";

const PATHS_MAX = 14;
const PATHS_MIN = 10;

export function showTopPaths(summary: Summary): void {
  const rows = summary.top_paths
    .slice(0, PATHS_MAX)
    .map(([path, count]) => ({ label: path, count, colour: "bar-plain" }));
  showBars(element("top-paths"), rows, summary.requests, PATHS_MIN);
}

export function clearTopPaths(): void {
  showBars(element("top-paths"), [], 0, PATHS_MIN);
}
