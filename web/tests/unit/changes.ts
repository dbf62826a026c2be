// What has changed in a log, as the server says it.

import type { Changes, ChangesQuery } from "../../logs/changes.js";

const BEFORE = { from: 1_611_277_260, until: 1_611_277_320 };
const AFTER = { from: 1_611_277_320, until: 1_611_277_380 };

export const CHANGES_QUERY: ChangesQuery = { before: BEFORE, after: AFTER, filters: [] };

export const CHANGES: Changes = {
  before: { ...BEFORE, requests: 1, bytes: 5, errors: 0 },
  after: { ...AFTER, requests: 41, bytes: 205, errors: 3 },
  difference: 40,
  values: [{ field: "path", value: "/b", before: 0, after: 40, share: 1 }],
  approximate: false,
};
