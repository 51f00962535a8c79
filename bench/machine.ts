import { availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os";

const GIB = 2 ** 30;

/** What the figures were measured on, in a line, and how busy it was before. */
export function describeMachine(): string {
  const [first] = cpus();
  const [load = 0] = loadavg();
  return [
    `${first?.model.trim() ?? "unknown CPU"}, ${availableParallelism()} cores`,
    `${(totalmem() / GIB).toFixed(0)} GiB`,
    `${type()} ${release()}`,
    `Node.js ${process.version}`,
    `load average before the run ${load.toFixed(2)}`,
  ].join("; ");
}
