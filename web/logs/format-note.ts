// The name of a log's format, and how sure it is.

import { grouped } from "../shared/format.js";
import type { Summary } from "./summary.js";

/** Returns the text that names the format; an uncertain one says why. */
export function formatNote({ format, format_fit: fit }: Summary): string {
  if (format === "") {
    return "";
  }
  if (fit === null || fit.certain) {
    return `Format: ${format}`;
  }
  const { lines, requests, runner_up: other } = fit;
  const more = other === null ? "" : `; ${other.format} reads ${grouped(other.requests)}`;
  const reads = `${fit.format} reads ${grouped(requests)} of the first ${grouped(lines)} lines`;
  return `Format: ${format}, uncertain: ${reads}${more}`;
}
