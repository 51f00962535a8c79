/**
 * The size of one replica of a pipe: CPU in millicores and memory in GiB, both integers.
 *
 * Requested sizes are whole cores with four GiB each. The resources of a workload can be anything that Kubernetes
 * allows, so they are compared as quantities (see quantity.ts) and converted to a `Size` only if they are valid.
 */
export interface Size {
  readonly cpuMillicores: number;
  readonly memoryGib: number;
}

export const CPU_STEP_MILLICORES = 1000;
export const CPU_MINIMUM_MILLICORES = 1000;
/** The largest size that a platform can offer (`--maximum-cores`), and the bound of the CRD, which is never lowered. */
export const CPU_MAXIMUM_MILLICORES = 128_000;
/** The largest size that a platform offers without `--maximum-cores`. */
export const DEFAULT_MAXIMUM_CORES = 24;
export const GIB_PER_CORE = 4;

export const MEMORY_STEP_GIB = memoryGibFor(CPU_STEP_MILLICORES);
export const MEMORY_MINIMUM_GIB = memoryGibFor(CPU_MINIMUM_MILLICORES);
export const MEMORY_MAXIMUM_GIB = memoryGibFor(CPU_MAXIMUM_MILLICORES);

export function memoryGibFor(cpuMillicores: number): number {
  return (cpuMillicores / 1000) * GIB_PER_CORE;
}

export function cpuMillicoresFor(memoryGib: number): number {
  return (memoryGib / GIB_PER_CORE) * 1000;
}

/** Every size up to a maximum, in ascending order. */
export function allSizes(maximum: Size = LARGEST): Size[] {
  const count = (maximum.cpuMillicores - CPU_MINIMUM_MILLICORES) / CPU_STEP_MILLICORES + 1;
  return Array.from({ length: count }, (_, step) => {
    const cpuMillicores = CPU_MINIMUM_MILLICORES + step * CPU_STEP_MILLICORES;
    return { cpuMillicores, memoryGib: memoryGibFor(cpuMillicores) };
  });
}

/** Returns the smallest size with at least this CPU and memory; `undefined` if no size is large enough. */
export function smallestSizeWith(cpuMillicores: number, memoryGib: number): Size | undefined {
  const cores = Math.max(1, Math.ceil(cpuMillicores / 1000), Math.ceil(memoryGib / GIB_PER_CORE));
  return cores * 1000 <= CPU_MAXIMUM_MILLICORES ? sizeOfCores(cores) : undefined;
}

/** The largest size that any platform can offer. */
export const LARGEST = sizeOfCores(CPU_MAXIMUM_MILLICORES / 1000);

export function sizeOfCores(cores: number): Size {
  return { cpuMillicores: cores * 1000, memoryGib: cores * GIB_PER_CORE };
}

export function sameSize(a: Size | undefined, b: Size | undefined): boolean {
  return a?.cpuMillicores === b?.cpuMillicores && a?.memoryGib === b?.memoryGib;
}

/**
 * Returns the smaller CPU and the smaller memory of two sizes. A size that an owner chose can have less CPU than
 * another one, and more memory.
 */
export function smaller(a: Size, b: Size): Size {
  return {
    cpuMillicores: Math.min(a.cpuMillicores, b.cpuMillicores),
    memoryGib: Math.min(a.memoryGib, b.memoryGib),
  };
}

/** Formats a size for people: `4 cpu / 16 Gi`. */
export function describeSize(size: Size): string {
  return `${size.cpuMillicores / 1000} cpu / ${size.memoryGib} Gi`;
}

/** Formats a size for annotations, such as `4000m/16Gi`; {@link parseSize} is the inverse. */
export function formatSize(size: Size): string {
  return `${size.cpuMillicores}m/${size.memoryGib}Gi`;
}

export function parseSize(text: string): Size | undefined {
  const match = /^(\d{1,9})m\/(\d{1,9})Gi$/.exec(text);
  return match ? { cpuMillicores: Number(match[1]), memoryGib: Number(match[2]) } : undefined;
}
