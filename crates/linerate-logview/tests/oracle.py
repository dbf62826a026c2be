"""Prints the figures of the access log on standard input as JSON.

With a list of queries as its argument, it prints a list: for each query the figures of the matching
requests, in buckets of the query's `bucket_seconds`.

An independent implementation for the tests: one regular expression and the standard library.
"""

import calendar
import collections
import datetime
import functools
import ipaddress
import json
import pathlib
import re
import sys

LINE = re.compile(
    rb'([^\x00-\x20]+) ([^ ]*) (.+?) '
    rb'\[(\d\d)/([A-Z][a-z][a-z])/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)([0-5]\d)\] '
    rb'"((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
    rb'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)".*| (?!").*)?',
    re.DOTALL,
)
REQUEST = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (?:(.+) HTTP/[^ ]*|(/.*))", re.DOTALL
)
MONTHS = {name.encode(): number for number, name in enumerate(calendar.month_abbr) if name}


def unix_time(day, month, year, hour, minute, second, sign, zone_hours, zone_minutes):
    """Returns seconds since 1970, or None for an invalid time."""
    try:
        start = datetime.datetime(int(year), MONTHS[month], int(day), int(hour), int(minute))
    except (KeyError, ValueError):
        return None
    zone = int(zone_hours) * 3600 + int(zone_minutes) * 60
    zone = zone if sign == b"+" else -zone
    return calendar.timegm(start.timetuple()) + int(second) - zone


def is_ip_address(field):
    """Returns whether the second field is an address, as in formats that begin with a host."""
    try:
        ipaddress.ip_address(field.decode(errors="replace"))
    except ValueError:
        return False
    return True


def text(value):
    """Returns a value as shown on the page."""
    return value.decode(errors="replace")


def header(value):
    """Returns a header, or nothing if it was not sent."""
    return b"" if value in (None, b"-") else value


def parse(line):
    """Returns the request of a line, or None."""
    match = LINE.fullmatch(line)
    time = match and unix_time(*match.group(*range(4, 13)))
    if time is None or is_ip_address(match[2]):
        return None
    size = 0 if match[15] == b"-" else int(match[15])
    if size >= 2**64:
        return None
    status = match[14].decode()
    request = REQUEST.fullmatch(match[13])
    return {
        "time": time,
        "bytes": size,
        "without_path": request is None,
        "address": match[1],
        "agent": header(match[17]),
        "host": b"",
        "method": request[1] if request else b"",
        "path": (request[2] or request[3]).split(b"?")[0] if request else b"",
        "referrer": header(match[16]),
        "status": match[14],
        "status_class": status[0].encode() + b"xx" if status[0] in "12345" else b"other",
    }


def is_chosen(request, query):
    """Returns whether a query matches a request."""
    if not query.get("from", -1) <= request["time"] < query.get("until", 2**62):
        return False
    for dimension in {condition["dimension"] for condition in query.get("conditions", [])}:
        included = []
        for condition in query["conditions"]:
            if condition["dimension"] != dimension:
                continue
            if condition.get("network"):
                network = ipaddress.ip_network(condition["value"])
                matches = ipaddress.ip_address(request[dimension].decode()) in network
            else:
                pattern = re.escape(condition["value"].encode()).replace(rb"\*", b".*")
                matches = re.fullmatch(pattern, request[dimension], re.DOTALL) is not None
            if not condition.get("exclude"):
                included.append(matches)
            elif matches:
                return False
        if included and not any(included):
            return False
    return True


class Sums:
    """The requests, bytes and errors of each value."""

    def __init__(self, pairs):
        self.sums = {}
        for value, request in pairs:
            sums = self.sums.setdefault(value, [0, 0, 0])
            sums[0] += 1
            sums[1] += request["bytes"]
            sums[2] += request["status_class"] in (b"4xx", b"5xx")

    def top(self):
        ranked = sorted(self.sums.items(), key=lambda item: (-item[1][0], item[0]))[:20]
        names = ["requests", "bytes", "errors"]
        return [{"value": text(value)} | dict(zip(names, sums)) for value, sums in ranked]

    def total(self, which):
        return sum(sums[which] for sums in self.sums.values())


def panel(requests, dimension):
    sums = Sums((request[dimension], request) for request in requests if request[dimension])
    return {
        "distinct": len(sums.sums),
        "exact": True,
        "error_max": 0,
        "not_counted": 0,
        "none": len(requests) - sums.total(0),
        "top": sums.top(),
    }


def known_programs():
    """Returns the table of names, which is data and therefore shared."""
    source = pathlib.Path(__file__).parent / "../src/aggregate/bots.rs"
    pairs = re.findall(r'^    \("(.+)", "(.+)"\),$', source.read_text(), re.MULTILINE)
    return [(part.encode(), name.encode()) for part, name in pairs]


KNOWN = known_programs()


@functools.cache
def program(agent):
    """Returns the name of the program of an agent, or None."""
    agent = agent[:512]
    for part, name in KNOWN:
        if part in agent.lower():
            return name
    word = re.search(rb"(?i)(?<!cu)bot|crawl|spider", agent)
    if not word:
        return None
    for chunk in re.finditer(rb'[^ ;(),"]+', agent):
        if chunk.start() <= word.start() < chunk.end():
            break
    address = re.search(rb"://(.*)|^(www\..*)", chunk[0])
    if not address:
        before = re.search(rb"[\w.-]*$", agent[: word.start()], re.ASCII)
        return re.match(rb"[\w.-]+", agent[before.start() :], re.ASCII)[0][:64]
    compatible = re.search(rb"compatible;\s*([\w.-]+)", agent, re.ASCII)
    product = re.match(rb"(?!Mozilla[^\w.-])[\w.-]+", agent, re.ASCII)
    host = re.match(rb"[\w.-]*", address[1] or address[2], re.ASCII)
    return ((compatible and compatible[1]) or (product or host)[0])[:64]


def bots(requests):
    named = ((program(request["agent"]), request) for request in requests)
    sums = Sums((name, request) for name, request in named if name)
    return {"requests": sums.total(0), "bytes": sums.total(1), "top": sums.top()}


def error_paths(requests, status_class):
    errors = (request for request in requests if request["status_class"] == status_class)
    ranked = Sums((request["path"], request) for request in errors if request["path"]).top()
    return [(entry["value"], entry["requests"], entry["errors"]) for entry in ranked]


def firewall(requests):
    minutes = collections.Counter()
    for request in requests:
        minutes[request["address"], request["time"] // 60 * 60] += 1
    peaks = {}
    for (address, minute), count in sorted(minutes.items(), key=lambda item: item[0][1]):
        if count > peaks.get(address, (0, 0))[0]:
            peaks[address] = (count, minute)
    sums = Sums((request["address"], request) for request in requests).sums

    def top(rank):
        ranked = sorted((-rank(address), address) for address in sums if rank(address) > 0)
        return [
            {
                "value": text(address),
                "peak_per_minute": peaks[address][0],
                "peak_at": peaks[address][1],
                "requests": sums[address][0],
                "errors": sums[address][2],
            }
            for _, address in ranked[:20]
        ]

    return {
        "by_rate": top(lambda address: peaks[address][0]),
        "by_errors": top(lambda address: sums[address][2]),
        "error_max": 0,
    }


def period(parsed, query):
    """The first and the last second of the log, within the period of the query."""
    times = [request["time"] for request in parsed if request]
    first, last = min(times), max(times)
    if query.get("from") is not None:
        first = max(first, query["from"])
    if query.get("until") is not None:
        last = min(last, query["until"] - 1)
    return [first, last]


def timeline(requests, seconds, period):
    times = [request["time"] for request in requests] + period
    # Nothing has no time axis.
    span = range(min(times) // seconds, max(times) // seconds + 1) if requests else range(0)
    buckets = collections.Counter()
    for request in requests:
        bucket = request["time"] // seconds
        buckets[request["status_class"], bucket] += 1
        buckets[request["method"], bucket] += 1
        buckets["bytes", bucket] += request["bytes"]
    names = [b"1xx", b"2xx", b"3xx", b"4xx", b"5xx", b"other"]
    methods = {request["method"] for request in requests} - {b""}
    series = lambda name: [buckets[name, bucket] for bucket in span]
    return {
        "start": span.start * seconds if requests else None,
        "bucket_seconds": seconds,
        "classes": {text(name): series(name) for name in names},
        "bytes": series("bytes"),
        "by_method": {text(name): series(name) for name in methods},
        "by_host": {},
        "outside": 0,
    }


def figures(log, lines, parsed, query):
    """The figures of the requests that a query matches."""
    requests = [request for request in parsed if request and is_chosen(request, query)]

    dimensions = ["address", "agent", "host", "method", "path", "referrer", "status"]
    panels = {dimension: panel(requests, dimension) for dimension in dimensions}
    counts = lambda name: collections.Counter(
        text(request[name]) for request in requests if request[name]
    )
    return {
        "lines": len(lines),
        "requests": len(requests),
        "unparsed": parsed.count(None),
        "blank": len(lines) - len(parsed),
        "bytes_read": len(log),
        "bytes_sent": sum(request["bytes"] for request in requests),
        "unique_addresses": panels["address"]["distinct"],
        "unique_paths": panels["path"]["distinct"],
        "requests_without_path": sum(request["without_path"] for request in requests),
        "statuses": counts("status"),
        "status_classes": dict.fromkeys(["1xx", "2xx", "3xx", "4xx", "5xx", "other"], 0)
        | counts("status_class"),
        "methods": counts("method"),
        "top_paths": [[it["value"], it["requests"]] for it in panels["path"]["top"]],
        "first_time": min((request["time"] for request in requests), default=None),
        "last_time": max((request["time"] for request in requests), default=None),
        "timeline": timeline(requests, query.get("bucket_seconds", 60), period(parsed, query)),
        "panels": panels,
        "bots": bots(requests),
        "latency": None,
        "error_paths": {
            name: error_paths(requests, name.encode()) for name in ["4xx", "5xx"]
        },
        "approximate": False,
        "firewall": firewall(requests),
    }


def main():
    queries = json.loads(sys.argv[1]) if len(sys.argv) > 1 else [{}]
    log = sys.stdin.buffer.read()
    lines = log.split(b"\n")
    if not lines[-1]:
        lines.pop()
    lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
    parsed = [parse(line) for line in lines if line]
    json.dump([figures(log, lines, parsed, query) for query in queries], sys.stdout)


main()
