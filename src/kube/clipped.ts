/** Cuts between characters, because the API server would change a text that ends within a character. */
export function clipped(text: string, maxLength: number): string {
  return text.slice(0, maxLength).toWellFormed();
}
