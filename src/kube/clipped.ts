/** Cuts a text. Half a character at the cut becomes U+FFFD, as the API server would store it. */
export function clipped(text: string, maxLength: number): string {
  return text.slice(0, maxLength).toWellFormed();
}
