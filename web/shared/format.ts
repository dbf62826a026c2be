// Formats numbers, sizes and times for all pages: one locale, UTC, decimal units.

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const THREE_DIGITS = new Intl.NumberFormat("en-US", {
  minimumSignificantDigits: 3,
  maximumSignificantDigits: 3,
});
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const BYTE_UNITS = ["kB", "MB", "GB", "TB", "PB"] as const;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Formats a whole number with thousands separators: 33,468. */
export function grouped(count: number): string {
  return GROUPED.format(count);
}

/** Formats a number of things: 1 line, 2 lines. */
export function counted(count: number, thing: string): string {
  return `${grouped(count)} ${thing}${count === 1 ? "" : "s"}`;
}

/** Formats a whole number in at most about five characters: 2,500, 50K, 1.5M. */
export function compact(count: number): string {
  return count < 10_000 ? grouped(count) : COMPACT.format(count);
}

/** Formats a size with three digits in powers of 1,000: 405 MB. */
export function humanBytes(bytes: number): string {
  if (bytes < 1_000) {
    return `${grouped(bytes)} B`;
  }
  let value = bytes / 1_000;
  let unit = 0;
  // 999.5 would round up to "1,000 kB".
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${THREE_DIGITS.format(value)} ${BYTE_UNITS[unit] ?? ""}`;
}

/** Formats a speed in MB/s (10⁶ bytes): one decimal below 10, none above. */
export function megabytesPerSecond(bytesPerSecond: number): string {
  const rate = bytesPerSecond / 1e6;
  return `${rate < 9.95 ? rate.toFixed(1) : grouped(rate)} MB/s`;
}

/** Formats a duration with its two largest units: 18 h 22 min. */
export function humanDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [days, hours] = [Math.floor(whole / 86_400), Math.floor(whole / 3_600) % 24];
  const [minutes, rest] = [Math.floor(whole / 60) % 60, whole % 60];
  if (days > 0) {
    return `${grouped(days)} d ${hours} h`;
  }
  if (hours > 0) {
    return `${hours} h ${minutes} min`;
  }
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

/** Formats a configured time in its largest whole unit: "10 minutes", "90 seconds". */
export function wholeDuration(seconds: number): string {
  const isMinutes = seconds >= 60 && seconds % 60 === 0;
  return isMinutes ? counted(seconds / 60, "minute") : counted(seconds, "second");
}

/** Formats a round trip to a tenth of a millisecond, the resolution of browsers' clocks. */
export function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}

/** Formats `part` as a percentage of `whole`: 4.8 %. */
export function percentage(part: number, whole: number): string {
  const share = whole > 0 ? (100 * part) / whole : 0;
  if (part > 0 && share < 0.1) {
    return "< 0.1 %";
  }
  return `${share.toFixed(1)} %`;
}

/** Formats the day of a Unix time in UTC: 22 Jan 2021. */
export function utcDay(unixSeconds: number): string {
  const at = new Date(unixSeconds * 1_000);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()] ?? ""} ${at.getUTCFullYear()}`;
}

/** Formats the time of day of a Unix time in UTC: 01:47, or 01:47:15 with seconds. */
export function utcClock(unixSeconds: number, withSeconds = false): string {
  return new Date(unixSeconds * 1_000).toISOString().slice(11, withSeconds ? 19 : 16);
}
