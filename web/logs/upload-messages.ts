// What the page and the worker that uploads say to each other.

import type { ReaderKind } from "./file-reader.js";
import type { Summary } from "./protocol.js";
import type { Outcome } from "./upload.js";

export type ToWorker =
  { type: "start"; file: File; url: string; reader?: ReaderKind } | { type: "cancel" };

export type FromWorker =
  | { type: "progress"; acknowledged: number }
  | { type: "snapshot"; summary: Summary; final: boolean }
  | { type: "reading"; kind: ReaderKind }
  | { type: "ended"; outcome: Outcome };
