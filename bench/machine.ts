import { availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os";

const GIB = 2 ** 30;

/** Describes the machine in a line, with its load before the run. */
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
