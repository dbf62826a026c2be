// Computes the figures of a log in the combined format with one regular expression, independently
// of the server.

const LINE =
  /^(\S+) \S+ .+? \[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-) "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"$/;
const REQUEST = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (?:(.+) HTTP\/\S*|(\/.*))$/;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Parses a log: its requests with their raw lines, and the number of unparsed lines. */
export function readLog(text) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  const requests = lines.flatMap((line, i) => parse(line, i + 1));
  const blank = lines.filter((line) => line === "").length;
  return { lines: lines.length, blank, unparsed: lines.length - requests.length - blank, requests };
}

function parse(text, line) {
  const match = LINE.exec(text);
  if (match === null) {
    return [];
  }
  const [, address, day, month, year, hour, minute, second, sign, zoneHours, zoneMinutes] = match;
  const [, request, status, bytes, referrer, agent] = match.slice(10);
  const zone = (sign === "+" ? 1 : -1) * (Number(zoneHours) * 3_600 + Number(zoneMinutes) * 60);
  const utc = Date.UTC(year, MONTHS.indexOf(month), day, hour, minute, second) / 1_000;
  const [, method = "", whole, bare] = REQUEST.exec(request) ?? [];
  const present = (field) => (field === "-" ? "" : field);
  return [
    {
      ...{ line, text, time: utc - zone, address, method, status },
      path: (whole ?? bare ?? "").split("?")[0],
      bytes: bytes === "-" ? 0 : Number(bytes),
      referrer: present(referrer),
      agent: present(agent),
    },
  ];
}

/** Returns the class of a status. */
export function classOf(status) {
  return /^[1-5]/.test(status) ? `${status[0]}xx` : "other";
}

/** Returns the requests that match a query of the protocol. */
export function select(requests, { from = null, until = null, conditions = [] }) {
  const dimensions = new Set(conditions.filter((c) => !c.exclude).map((c) => c.dimension));
  return requests.filter(
    (request) =>
      (from === null || request.time >= from) &&
      (until === null || request.time < until) &&
      !conditions.some((c) => c.exclude && meets(request, c)) &&
      [...dimensions].every((dimension) =>
        conditions.some((c) => !c.exclude && c.dimension === dimension && meets(request, c)),
      ),
  );
}

function meets(request, { dimension, value }) {
  const actual = dimension === "status_class" ? classOf(request.status) : request[dimension];
  const [starts, ends] = [value.startsWith("*"), value.length > 1 && value.endsWith("*")];
  const core = value.slice(starts ? 1 : 0, ends ? -1 : undefined);
  if (starts && ends) {
    return actual.includes(core);
  }
  return starts ? actual.endsWith(core) : ends ? actual.startsWith(core) : actual === core;
}

/** Returns the most frequent values of a dimension, as shown in the panels. */
export function top(requests, dimension, max = 20) {
  const values = new Map();
  for (const request of requests) {
    const value = request[dimension];
    if (value !== "") {
      const entry = values.get(value) ?? { value, requests: 0, bytes: 0, errors: 0 };
      entry.requests += 1;
      entry.bytes += request.bytes;
      entry.errors += Number(request.status) >= 400 ? 1 : 0;
      values.set(value, entry);
    }
  }
  const entries = [...values.values()].sort(
    (a, b) => b.requests - a.requests || (a.value < b.value ? -1 : 1),
  );
  return { distinct: entries.length, top: entries.slice(0, max) };
}

/** Returns for each address its peak of requests in one minute. */
export function peaks(requests) {
  const minutes = new Map();
  const peak = new Map();
  for (const { address, time } of requests) {
    const key = `${address} ${Math.floor(time / 60)}`;
    const count = (minutes.get(key) ?? 0) + 1;
    minutes.set(key, count);
    peak.set(address, Math.max(peak.get(address) ?? 0, count));
  }
  return peak;
}

export function sum(requests, field) {
  return requests.reduce((total, request) => total + request[field], 0);
}

/** Counts requests by `key`. */
export function countBy(requests, key) {
  const counts = {};
  for (const request of requests) {
    const name = key(request);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
