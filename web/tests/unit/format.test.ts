import assert from "node:assert/strict";
import { test } from "node:test";
import {
  compact,
  grouped,
  humanBytes,
  humanDuration,
  megabytesPerSecond,
  percentage,
  utcClock,
  utcDay,
  wholeDuration,
} from "../../shared/format.js";

test("counts have thousands separators", () => {
  assert.equal(grouped(0), "0");
  assert.equal(grouped(33_468), "33,468");
  assert.equal(grouped(404_908_179), "404,908,179");
});

test("numbers on an axis stay short", () => {
  assert.deepEqual([0, 2_500, 10_000, 125_000, 1_500_000].map(compact), [
    "0",
    "2,500",
    "10K",
    "125K",
    "1.5M",
  ]);
});

test("sizes have three digits and decimal units", () => {
  assert.equal(humanBytes(0), "0 B");
  assert.equal(humanBytes(999), "999 B");
  assert.equal(humanBytes(1_000), "1.00 kB");
  assert.equal(humanBytes(404_908_179), "405 MB");
  assert.equal(humanBytes(8_570_485), "8.57 MB");
});

test("sizes never round up to a thousand of a unit", () => {
  assert.equal(humanBytes(999_499), "999 kB");
  assert.equal(humanBytes(999_500), "1.00 MB");
  assert.equal(humanBytes(999_500_000_000), "1.00 TB");
});

test("speeds below ten have a decimal", () => {
  assert.equal(megabytesPerSecond(0), "0.0 MB/s");
  assert.equal(megabytesPerSecond(9_940_000), "9.9 MB/s");
  assert.equal(megabytesPerSecond(9_960_000), "10 MB/s");
  assert.equal(megabytesPerSecond(1_177_000_000), "1,177 MB/s");
});

test("durations have two units at most", () => {
  assert.equal(humanDuration(0), "0 s");
  assert.equal(humanDuration(59.6), "1 min 0 s");
  assert.equal(humanDuration(66_220), "18 h 23 min");
  assert.equal(humanDuration(90_000), "1 d 1 h");
  assert.equal(humanDuration(-5), "0 s");
});

test("a share above zero is not shown as zero", () => {
  assert.equal(percentage(0, 33_469), "0.0 %");
  assert.equal(percentage(1, 33_469), "< 0.1 %");
  assert.equal(percentage(26_486, 33_468), "79.1 %");
  assert.equal(percentage(0, 0), "0.0 %");
});

test("times are in UTC", () => {
  assert.equal(utcDay(1_611_280_025), "22 Jan 2021");
  assert.equal(utcClock(1_611_280_025), "01:47");
  assert.equal(utcClock(1_611_280_025, true), "01:47:05");
});

test("configured times are in their largest whole unit", () => {
  const texts = [0, 1, 59, 60, 90, 600, 3_600].map(wholeDuration);
  assert.deepEqual(texts, [
    "0 seconds",
    "1 second",
    "59 seconds",
    "1 minute",
    "90 seconds",
    "10 minutes",
    "60 minutes",
  ]);
});
