import assert from "node:assert/strict";
import { test } from "node:test";
import { Calibration } from "../../../client/src/upload/calibration.js";

const MIB = 1024 * 1024;
const LARGE = 1024 * MIB;

/** Runs the trial on a clock where each way has a given speed in MiB per millisecond. */
function trial(slices: number, stream: number): Calibration {
  const calibration = new Calibration(LARGE);
  let now = 0;
  for (let total = 0; total <= 64; total += 4) {
    calibration.handleAcknowledgement(total * MIB, now);
    now += 4 / (total < 32 ? slices : stream);
  }
  return calibration;
}

test("a large file starts with slices, then tries the stream", () => {
  const calibration = new Calibration(LARGE);
  assert.equal(calibration.kindAt(0), "slices");
  assert.equal(calibration.kindAt(32 * MIB - 1), "slices");
  assert.equal(calibration.kindAt(32 * MIB), "stream");
  assert.equal(calibration.kindAt(90 * MIB), "stream");
});

test("the faster way reads the rest", () => {
  assert.equal(trial(0.4, 0.8).kindAt(130 * MIB), "stream");
  assert.equal(trial(1.2, 0.4).kindAt(130 * MIB), "slices");
});

test("the stream has to be clearly faster", () => {
  assert.equal(trial(0.8, 0.82).kindAt(130 * MIB), "slices");
});

test("a small file is sent in slices throughout", () => {
  const calibration = new Calibration(255 * MIB);
  assert.equal(calibration.kindAt(0), "slices");
  assert.equal(calibration.kindAt(100 * MIB), "slices");
});

test("a refused stream stays refused", () => {
  const calibration = new Calibration(LARGE);
  calibration.refuseStream();
  assert.equal(calibration.kindAt(32 * MIB), "slices");
  calibration.handleAcknowledgement(200 * MIB, 1);
  assert.equal(calibration.kindAt(200 * MIB), "slices");
});

test("a forced way of reading is kept", () => {
  assert.equal(new Calibration(1, "stream").kindAt(0), "stream");
  assert.equal(new Calibration(LARGE, "slices").kindAt(32 * MIB), "slices");
});
