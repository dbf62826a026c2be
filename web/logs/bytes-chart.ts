// The bytes sent over time, as columns with the same axis as the requests.

import { grouped, humanBytes, utcClock, utcDay } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import type { TimeRange } from "./query.js";
import { bucketName, coarsen, peakOf } from "./stacking.js";
import type { Summary } from "./summary.js";

const SVG = "http://www.w3.org/2000/svg";
const COLUMNS_MAX = 240;
const HEIGHT = 100;

export class BytesChart {
  readonly #path = document.createElementNS(SVG, "path");

  constructor() {
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("viewBox", `0 0 ${COLUMNS_MAX} ${HEIGHT}`);
    picture.setAttribute("class", "bytes-picture");
    picture.setAttribute("aria-hidden", "true");
    picture.append(this.#path);
    element("bytes-chart").append(picture, create("span", "bytes-peak"));
  }

  show(summary: Summary, range: TimeRange | null): void {
    const { timeline, requests, bytes_sent } = summary;
    const given = {
      start: timeline.start,
      bucket_seconds: timeline.bucket_seconds,
      buckets: timeline.bytes.length,
      layers: [{ name: "bytes", counts: timeline.bytes }],
    };
    const end = given.start + given.buckets * given.bucket_seconds;
    const { from, until } = range ?? { from: given.start, until: end };
    const columns = coarsen(given, until - from, COLUMNS_MAX);
    const counts = columns.layers[0]?.counts ?? [];
    const peak = peakOf(counts);
    this.#path.setAttribute("d", outlineOf(counts, peak, columns, from, until));
    const per = bucketName(columns.bucket_seconds || 60);
    const isEmpty = bytes_sent === 0;
    setText(
      element("bytes-note"),
      isEmpty ? "" : `${humanBytes(bytes_sent / Math.max(1, requests))} per request`,
    );
    setText(element("bytes-empty"), isEmpty ? whyNone(requests) : "");
    setText(
      element("bytes-readout"),
      isEmpty
        ? ""
        : `Peak: ${humanBytes(peak)} in the ${per} from ${whenOf(counts, peak, columns)}`,
    );
    element("bytes-chart").title = isEmpty ? "" : `At most ${grouped(peak)} bytes per ${per}`;
  }

  clear(): void {
    this.#path.setAttribute("d", "");
    for (const id of ["bytes-note", "bytes-empty", "bytes-readout"]) {
      setText(element(id), "");
    }
  }
}

function whyNone(requests: number): string {
  return requests === 0 ? "No request matches the filters." : "No response had a body.";
}

function whenOf(
  counts: number[],
  peak: number,
  { start, bucket_seconds }: { start: number; bucket_seconds: number },
): string {
  const at = start + counts.indexOf(peak) * bucket_seconds;
  return `${utcDay(at)} ${utcClock(at)} UTC`;
}

/** Returns the outline of the columns as an SVG path, in units of the view box. */
function outlineOf(
  counts: number[],
  peak: number,
  { start, bucket_seconds }: { start: number; bucket_seconds: number },
  from: number,
  until: number,
): string {
  if (peak === 0) {
    return "";
  }
  const x = (at: number) => ((COLUMNS_MAX * (at - from)) / (until - from)).toFixed(2);
  const steps = counts.map((count, i) => {
    const at = start + i * bucket_seconds;
    const y = (HEIGHT - (HEIGHT * count) / peak).toFixed(2);
    return `L${x(at)} ${y}L${x(at + bucket_seconds)} ${y}`;
  });
  const end = start + counts.length * bucket_seconds;
  return `M${x(start)} ${HEIGHT}${steps.join("")}L${x(end)} ${HEIGHT}Z`;
}
