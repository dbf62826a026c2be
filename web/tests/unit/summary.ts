// A summary for the tests to change.

import type { Summary } from "../../logs/protocol.js";

export const SUMMARY: Summary = {
  lines: 4,
  requests: 3,
  unparsed: 1,
  blank: 0,
  unparsed_reasons: { "no request": 1 },
  unparsed_samples: [{ line: 1, reason: "no request", text: "<b>turned over</b>" }],
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
    outside: 0,
  },
};
