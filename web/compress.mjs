// Puts compressed copies beside the text files of a folder: NAME.br and NAME.gz.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** Files that compress well; fonts and pictures are compressed already. */
const TEXT = /\.(css|html|js|json|svg|txt)$/;

/** Copies that save less than this are not worth a file, in bytes. */
const SAVED_MIN = 200;

const CODINGS = [
  [".br", promisify(brotliCompress), { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }],
  [".gz", promisify(gzip), { level: 9 }],
];

/** Compresses the text files in `folder` and its folders. */
export async function compressAll(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && TEXT.test(entry.name));
  await Promise.all(files.map((file) => compress(join(file.parentPath, file.name))));
}

async function compress(path) {
  const text = await readFile(path);
  for (const [extension, coder, options] of CODINGS) {
    const copy = await coder(text, options);
    if (copy.length + SAVED_MIN <= text.length) {
      await writeFile(path + extension, copy);
    }
  }
}
