import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type FileReader,
  ReadStalled,
  SliceReader,
  StreamReader,
} from "../../../client/src/upload/file-reader.js";

const CONTENT = Uint8Array.from({ length: 1_300_000 }, (_, i) => (i * 31) % 251);

/** Reads a file from `offset` to its end, like an upload. */
async function readAll(reader: FileReader, size: number, offset = 0): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let at = offset;
  while (at < size) {
    const chunk = await reader.next(Math.min(reader.chunkBytes, size - at));
    const bytes = chunk instanceof Blob ? new Uint8Array(await chunk.arrayBuffer()) : chunk.slice();
    assert.ok(bytes.byteLength > 0);
    parts.push(bytes);
    at += bytes.byteLength;
  }
  return Buffer.concat(parts);
}

/** A file whose stream never answers its `hang`th read, counted over all streams opened. */
class HangingFile extends Blob {
  opened = 0;
  #reads = 0;
  readonly #hangs: (read: number) => boolean;

  constructor(hangs: (read: number) => boolean) {
    super([CONTENT]);
    this.#hangs = hangs;
  }

  override slice(start?: number, end?: number): Blob {
    const part = super.slice(start, end);
    const stream = part.stream.bind(part);
    part.stream = () => {
      this.opened += 1;
      const opened = stream();
      const getReader = opened.getReader.bind(opened) as (options: {
        mode: "byob";
      }) => ReadableStreamBYOBReader;
      const hanging = (options: { mode: "byob" }) => {
        const reader = getReader(options);
        const read = reader.read.bind(reader) as (view: Uint8Array) => Promise<unknown>;
        reader.read = ((view: Uint8Array) => {
          this.#reads += 1;
          return this.#hangs(this.#reads) ? new Promise(() => undefined) : read(view);
        }) as typeof reader.read;
        return reader;
      };
      opened.getReader = hanging as unknown as typeof opened.getReader;
      return opened;
    };
    return part;
  }
}

for (const offset of [0, 1, 524_288, CONTENT.length - 1]) {
  test(`both ways read the same bytes from ${offset} on`, async () => {
    const file = new Blob([CONTENT]);
    const expected = Buffer.from(CONTENT.subarray(offset));
    for (const reader of [new SliceReader(file, offset), new StreamReader(file, offset)]) {
      const bytes = await readAll(reader, file.size, offset);
      assert.ok(expected.equals(bytes), reader.constructor.name);
      reader.close();
    }
  });
}

test("a stream is read in chunks of at most half a MiB", async () => {
  const reader = new StreamReader(new Blob([CONTENT]), 0);
  const chunk = await reader.next(reader.chunkBytes);
  assert.ok(chunk.byteLength <= 512 * 1024);
});

test("a read that hangs is abandoned, and the stream is reopened where it was", async () => {
  const file = new HangingFile((read) => read === 3);
  const bytes = await readAll(new StreamReader(file, 0, 20), file.size);
  assert.ok(Buffer.from(CONTENT).equals(bytes));
  assert.equal(file.opened, 2);
});

test("a stream that hangs repeatedly is abandoned", async () => {
  const file = new HangingFile((read) => read >= 2);
  const reader = new StreamReader(file, 0, 5);
  await reader.next(reader.chunkBytes);
  await assert.rejects(reader.next(reader.chunkBytes), ReadStalled);
  assert.equal(file.opened, 4);
});

test("a truncated file cannot be read", async () => {
  const file = new Blob([CONTENT]);
  const reader = new StreamReader(file, 0);
  Object.defineProperty(file, "size", { value: CONTENT.length + 10 });
  await assert.rejects(readAll(reader, file.size), { name: "NotReadableError" });
});
