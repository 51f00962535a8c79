/** `0:07`, `12:34`, `1:02:03`. */
export function stopwatch(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours === 0 ? `${minutes}:${two(seconds % 60)}` : `${hours}:${two(minutes)}:${two(seconds % 60)}`;
}

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
];

/** Formats a duration in one unit: `45 s`, `3 min`, `2 h`, `9 d`. Less than two of a unit are shown in the smaller one. */
export function roughly(ms: number): string {
  const [name, unit] = UNITS.find(([, unit]) => ms >= 1.95 * unit) ?? ["s", 1000];
  return `${Math.max(0, Math.round(ms / unit))} ${name}`;
}
