/** A bar of so many columns; full only when everything is done. */
export function bar(share: number, columns: number): { readonly full: string; readonly empty: string } {
  const most = share < 1 ? columns - 1 : columns;
  const full = Math.max(0, Math.min(most, Math.round(share * columns)));
  return { full: "█".repeat(full), empty: "░".repeat(columns - full) };
}
