// A summary that tests modify.

import type { PanelFigures, Summary } from "../../logs/summary.js";

const NONE: PanelFigures = {
  ...{ distinct: 0, exact: true, error_max: 0, not_counted: 0, none: 3, top: [] },
};

export const SUMMARY: Summary = {
  lines: 4,
  requests: 3,
  unparsed: 1,
  blank: 0,
  unparsed_reasons: { "no request": 1 },
  unparsed_samples: [{ line: 1, reason: "no request", text: "<b>turned over</b>" }],
  damaged: [],
  bytes_read: 400,
  bytes_sent: 1_234,
  unique_addresses: 2,
  unique_addresses_exact: true,
  unique_paths: 2,
  paths_exact: true,
  statuses: { "200": 2, "404": 1 },
  methods: { GET: 3 },
  top_paths: [
    ["/", 2],
    ["/a", 1],
  ],
  status_classes: { "2xx": 2, "4xx": 1 },
  first_time: 1_611_280_025,
  last_time: 1_611_280_145,
  timeline: {
    start: 1_611_280_020,
    bucket_seconds: 60,
    classes: {
      "1xx": [0, 0, 0],
      "2xx": [1, 0, 1],
      "3xx": [0, 0, 0],
      "4xx": [0, 1, 0],
      "5xx": [0, 0, 0],
      other: [0, 0, 0],
    },
    bytes: [1_000, 34, 200],
    by_method: { GET: [1, 1, 1] },
    by_host: {},
    outside: 0,
  },
  format: "combined",
  format_fit: null,
  approximate: false,
  is_part: false,
  panels: {
    address: NONE,
    agent: NONE,
    host: NONE,
    method: NONE,
    path: {
      ...{ distinct: 2, exact: true, error_max: 0, not_counted: 0, none: 0 },
      top: [
        { value: "/", requests: 2, bytes: 1_200, errors: 0 },
        { value: '/a"=,b', requests: 1, bytes: 34, errors: 1 },
      ],
    },
    referrer: NONE,
    status: NONE,
  },
  countries: null,
  bots: { requests: 0, bytes: 0, top: [] },
  browsers: NONE,
  systems: NONE,
  latency: {
    ...{ count: 3, p50_us: 900, p90_us: 1_200, p99_us: 1_200, p999_us: 1_200, max_us: 1_190 },
    ...{ error: 0.01, buckets: [[900, 2] as [number, number], [1_200, 1] as [number, number]] },
  },
  error_paths: { "4xx": [{ value: "/a", requests: 1, bytes: 34, errors: 1 }], "5xx": [] },
  firewall: {
    by_rate: [
      { value: "192.0.2.7", peak_per_minute: 2, peak_at: 1_611_280_020, requests: 2, errors: 1 },
    ],
    by_errors: [],
    error_max: 0,
  },
  filterable: {
    requests: 3,
    bytes: 96,
    bytes_max: 1_000,
    complete: true,
    since: null,
    refusal: null,
  },
  rows_kept: { lines: 4, bytes: 400, bytes_max: 1_000, complete: true },
};
