"""Prints the figures of the access log on standard input as JSON.

An independent second opinion for the tests: one regular expression and the standard library.
"""

import calendar
import collections
import datetime
import ipaddress
import json
import re
import sys

LINE = re.compile(
    rb'([^\x00-\x20]+) ([^ ]*) (.+?) '
    rb'\[(\d\d)/([A-Z][a-z][a-z])/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)([0-5]\d)\] '
    rb'"((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
    rb'(?: "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*".*| (?!").*)?',
    re.DOTALL,
)
REQUEST = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (?:(.+) HTTP/[^ ]*|(/.*))", re.DOTALL
)
MONTHS = {name.encode(): number for number, name in enumerate(calendar.month_abbr) if name}


def unix_time(day, month, year, hour, minute, second, sign, zone_hours, zone_minutes):
    """Returns seconds since 1970, or None for a moment that does not exist."""
    try:
        start = datetime.datetime(int(year), MONTHS[month], int(day), int(hour), int(minute))
    except (KeyError, ValueError):
        return None
    zone = int(zone_hours) * 3600 + int(zone_minutes) * 60
    zone = zone if sign == b"+" else -zone
    return calendar.timegm(start.timetuple()) + int(second) - zone


def is_ip_address(field):
    """Says whether the second field is an address, as in formats with a host in front."""
    try:
        ipaddress.ip_address(field.decode(errors="replace"))
    except ValueError:
        return False
    return True


def main():
    log = sys.stdin.buffer.read()
    lines = log.split(b"\n")
    if not lines[-1]:
        lines.pop()
    lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]

    counts = collections.Counter()
    addresses = set()
    statuses = collections.Counter()
    methods = collections.Counter()
    paths = collections.Counter()
    minutes = collections.Counter()
    times = []
    for line in lines:
        if not line:
            counts["blank"] += 1
            continue
        match = LINE.fullmatch(line)
        time = match and unix_time(*match.group(*range(4, 13)))
        too_big = time is not None and match[15] != b"-" and int(match[15]) >= 2**64
        if time is None or too_big or is_ip_address(match[2]):
            counts["unparsed"] += 1
            continue
        counts["requests"] += 1
        addresses.add(match[1])
        times.append(time)
        status = match[14].decode()
        statuses[status] += 1
        status_class = status[0] + "xx" if status[0] in "12345" else "other"
        minutes[status_class, time // 60] += 1
        counts["bytes_sent"] += 0 if match[15] == b"-" else int(match[15])
        request = REQUEST.fullmatch(match[13])
        if request is None:
            counts["requests_without_path"] += 1
            continue
        methods[request[1].decode()] += 1
        paths[(request[2] or request[3]).split(b"?")[0]] += 1

    top = sorted(paths.items(), key=lambda item: (-item[1], item[0]))[:20]
    names = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"]
    span = range(min(times) // 60, max(times) // 60 + 1)
    figures = {
        "lines": len(lines),
        "requests": counts["requests"],
        "unparsed": counts["unparsed"],
        "blank": counts["blank"],
        "bytes_read": len(log),
        "bytes_sent": counts["bytes_sent"],
        "unique_addresses": len(addresses),
        "unique_paths": len(paths),
        "requests_without_path": counts["requests_without_path"],
        "statuses": statuses,
        "methods": methods,
        "top_paths": [[path.decode(errors="replace"), count] for path, count in top],
        "first_time": min(times),
        "last_time": max(times),
        "timeline": {
            "start": span.start * 60,
            "bucket_seconds": 60,
            "classes": {name: [minutes[name, minute] for minute in span] for name in names},
            "outside": 0,
        },
    }
    json.dump(figures, sys.stdout)


main()
