// Measures what an upload costs the server's process, as counted by Linux (proc(5)).

import { readFile, writeFile } from "node:fs/promises";

const KIB = 1024;
/** Ticks per second: `sysconf(_SC_CLK_TCK)`, which is 100 on every Linux that Chromium runs on. */
const TICKS = 100;

/** Watches one process from now on. */
export class ServerProcess {
  #folder;
  #residentAtStart;

  static async watch(pid) {
    const process = new ServerProcess();
    process.#folder = `/proc/${pid}`;
    process.#residentAtStart = await process.#status("VmRSS");
    return process;
  }

  /**
   * Runs `work`. Returns its result, the processor seconds that the server used, and by how many
   * bytes the peak of its resident memory exceeded the value at the start of the watch.
   */
  async during(work) {
    await writeFile(`${this.#folder}/clear_refs`, "5"); // Resets the peak.
    const secondsBefore = await this.#seconds();
    const result = await work();
    const seconds = (await this.#seconds()) - secondsBefore;
    const growth = (await this.#status("VmHWM")) - this.#residentAtStart;
    return { result, seconds, growth };
  }

  async #status(name) {
    const status = await readFile(`${this.#folder}/status`, "utf8");
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)[1]) * KIB;
  }

  async #seconds() {
    const stat = await readFile(`${this.#folder}/stat`, "utf8");
    // The fields after the name in brackets; the 12th and 13th of them are user and system time.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  }
}
