/**
 * Returns a regular expression that matches the decimal integers from `least` to `most`, without leading zeros. JSON
 * Schema has no other way to bound a number within a string.
 */
export function integersPattern(least: number, most: number): string {
  return rangesOf(least, most)
    .map(([from, to]) => digitsPattern(String(from), String(to)))
    .join("|");
}

/** Splits into ranges of numbers with a common prefix, then one digit from a range, then any digits. */
function rangesOf(least: number, most: number): [from: number, to: number][] {
  if (least > most) return [];
  const to = Math.min(most, endOfRange(least, most));
  return [[least, to], ...rangesOf(to + 1, most)];
}

/** Turns as many trailing zeros of `least` into nines as `most` allows. */
function endOfRange(least: number, most: number): number {
  let end = least;
  for (let power = 1; least % power === 0 && power <= most; power *= 10) {
    // The digit before the trailing ones goes up to 9, or as far as `most` allows.
    const digit = Math.floor(least / power) % 10;
    for (let last = 9; last >= digit; last -= 1) {
      const candidate = least + (last - digit) * power + (power - 1);
      if (candidate <= most && String(candidate).length === String(least).length) {
        end = Math.max(end, candidate);
        break;
      }
    }
    if (least === 0) break;
  }
  return end;
}

function digitsPattern(from: string, to: string): string {
  return [...from].map((digit, at) => (digit === to[at] ? digit : `[${digit}-${to[at]}]`)).join("");
}
