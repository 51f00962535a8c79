import type { Size } from "./size.ts";

/**
 * Kubernetes quantities as exact integers, so that `1`, `1000m` and `1e0` compare equal, and `4Gi` equals `4096Mi`. The
 * unit is the billionth, which is also the precision of Kubernetes.
 *
 * Grammar: k8s.io/apimachinery/pkg/api/resource, Quantity.
 */
const BILLIONTHS = 1_000_000_000n;

const SUFFIXES: ReadonlyMap<string, readonly [bigint, bigint]> = new Map([
  ["n", [1n, BILLIONTHS]],
  ["u", [1n, 1_000_000n]],
  ["m", [1n, 1000n]],
  ["", [1n, 1n]],
  ["k", [10n ** 3n, 1n]],
  ["M", [10n ** 6n, 1n]],
  ["G", [10n ** 9n, 1n]],
  ["T", [10n ** 12n, 1n]],
  ["P", [10n ** 15n, 1n]],
  ["E", [10n ** 18n, 1n]],
  ["Ki", [2n ** 10n, 1n]],
  ["Mi", [2n ** 20n, 1n]],
  ["Gi", [2n ** 30n, 1n]],
  ["Ti", [2n ** 40n, 1n]],
  ["Pi", [2n ** 50n, 1n]],
  ["Ei", [2n ** 60n, 1n]],
]);

/** Parses a quantity to billionths, rounded away from zero as in Kubernetes; `undefined` if it is not a quantity. */
export function parseQuantity(text: string): bigint | undefined {
  const match = /^([+-]?)(\d{0,30})(?:\.(\d{0,30}))?(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)$/.exec(
    text,
  );
  if (!match) return undefined;
  const [, sign, whole = "", fraction = "", exponent, suffix = ""] = match;
  if (whole === "" && fraction === "") return undefined;
  const factor = exponent === undefined ? SUFFIXES.get(suffix) : powerOfTen(Number(exponent));
  if (!factor) return undefined;
  const numerator = BigInt(whole + fraction) * BILLIONTHS * factor[0];
  const denominator = 10n ** BigInt(fraction.length) * factor[1];
  const magnitude = (numerator + denominator - 1n) / denominator;
  return sign === "-" ? -magnitude : magnitude;
}

function powerOfTen(exponent: number): readonly [bigint, bigint] {
  return exponent < 0 ? [1n, 10n ** BigInt(-exponent)] : [10n ** BigInt(exponent), 1n];
}

/** Returns true if two quantities are equal, regardless of their notation. */
export function sameQuantity(a: string, b: string): boolean {
  const left = parseQuantity(a);
  return left !== undefined && left === parseQuantity(b);
}

/** Converts a CPU and a memory quantity to a size; `undefined` unless they are whole millicores and whole GiB. */
export function sizeOfQuantities(cpu: string | undefined, memory: string | undefined): Size | undefined {
  const cpuMillicores = wholeUnits(cpu, BILLIONTHS / 1000n);
  const memoryGib = wholeUnits(memory, BILLIONTHS * 2n ** 30n);
  return cpuMillicores === undefined || memoryGib === undefined ? undefined : { cpuMillicores, memoryGib };
}

function wholeUnits(quantity: string | undefined, unit: bigint): number | undefined {
  const amount = quantity === undefined ? undefined : parseQuantity(quantity);
  return amount === undefined || amount < 0n || amount % unit !== 0n ? undefined : Number(amount / unit);
}

/** Converts a CPU quantity to millicores, with fractions; 0 if it is missing or invalid. */
export function millicoresIn(cpu: string | null | undefined): number {
  return Number(parseQuantity(cpu ?? "") ?? 0n) / 1e6;
}

/** Converts a memory quantity to GiB, with fractions; 0 if it is missing or invalid. */
export function gibIn(memory: string | null | undefined): number {
  return Number(parseQuantity(memory ?? "") ?? 0n) / 1e9 / 2 ** 30;
}

export function cpuQuantity(size: Size): string {
  return `${size.cpuMillicores}m`;
}

export function memoryQuantity(size: Size): string {
  return `${size.memoryGib}Gi`;
}
