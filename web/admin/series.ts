// The figures of the node over time, as the node has recorded them and as they are added to.

import type { Shade } from "../shared/chart.js";
import type { SeriesView } from "./views.js";

/** The names of the figures. */
export type Figure = Exclude<keyof SeriesView, "step_s" | "at_ms">;

/** A list of figures, `null` where the node recorded nothing. */
export type Column = (number | null)[];

/** A hole is longer than this number of steps; a busy node may skip one. */
const HOLE_STEPS = 3.5;

/** Collects the points of one length: an hour of seconds, or a day of minutes. */
export class Series {
  readonly #stepS: number;
  readonly #pointsMax: number;
  #view: SeriesView | undefined;

  constructor(stepS: number, pointsMax: number) {
    this.#stepS = stepS;
    this.#pointsMax = pointsMax;
  }

  /**
   * The time from which on the node is asked, in milliseconds since 1970. The newest point is
   * requested again, because an unfinished minute changes.
   */
  get afterMs(): number {
    return this.#view?.at_ms.at(-1) ?? 0;
  }

  /** Adds what the node has returned; points that are known are replaced. */
  add(newer: SeriesView): void {
    const older = this.#view;
    const first = newer.at_ms[0];
    if (older === undefined || first === undefined) {
      this.#view = older ?? newer;
      return;
    }
    const kept = older.at_ms.filter((at) => at < first).length;
    const from = Math.max(0, kept + newer.at_ms.length - this.#pointsMax);
    const joined = { ...newer };
    for (const name of Object.keys(newer) as (keyof SeriesView)[]) {
      if (name !== "step_s") {
        const values = [...(older[name] as number[]).slice(from, kept), ...newer[name]];
        (joined[name] as (number | null)[]) = values;
      }
    }
    this.#view = joined;
  }

  /** Forgets everything, as when another process answers. */
  clear(): void {
    this.#view = undefined;
  }

  /** Returns the times in seconds since 1970, and the figures; a hole is a point of `null`. */
  columns(figures: readonly Figure[]): { times: number[]; columns: Column[] } {
    const view = this.#view;
    const times: number[] = [];
    const columns: Column[] = figures.map(() => []);
    view?.at_ms.forEach((atMs, i) => {
      const at = atMs / 1_000;
      const previous = times.at(-1);
      if (previous !== undefined && at - previous > HOLE_STEPS * this.#stepS) {
        times.push(previous + this.#stepS);
        columns.forEach((column) => column.push(null));
      }
      times.push(at);
      figures.forEach((name, n) => columns[n]?.push(view[name][i] ?? null));
    });
    return { times, columns };
  }

  /** Returns the times during which nothing arrived from the broker, in seconds since 1970. */
  outages(): Shade[] {
    const shades: Shade[] = [];
    this.#view?.at_ms.forEach((atMs, i) => {
      if ((this.#view?.deaf_s[i] ?? 0) <= 0) {
        return;
      }
      const from = atMs / 1_000;
      const last = shades.at(-1);
      if (last !== undefined && from - last.to < this.#stepS) {
        last.to = from + this.#stepS;
      } else {
        shades.push({ from, to: from + this.#stepS });
      }
    });
    return shades;
  }
}
