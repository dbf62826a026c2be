// A Node.js program that uploads files to a server in Rust, and prints the answers.
//
//   cargo run -p linerate-files --example upload_to_disk
//   npm install linerate ws        (ws: only for Node.js before version 22)
//   node upload.mjs ws://127.0.0.1:9001/ FILE…

import { openAsBlob } from "node:fs";
import { basename } from "node:path";
import { Uploader } from "linerate/upload";

const [url, ...paths] = process.argv.slice(2);
const uploader = new Uploader(url);

async function upload(path) {
  const file = uploader.add(await openAsBlob(path), { name: basename(path) });
  file.on("progress", ({ acknowledged, size }) =>
    console.error(`${path}: ${acknowledged} of ${size} bytes`),
  );
  try {
    console.log(`${path}: ${JSON.stringify(await file.finished)}`);
  } catch (error) {
    console.error(`${path}: ${error.message} (${error.code})`);
    process.exitCode = 1;
  }
}

await Promise.all(paths.map(upload));
