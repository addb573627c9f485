/** Aligned columns, two spaces apart, no spaces at the end: readable, and easy to cut by programs. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  return [header, ...rows].map((row) => formatLine(row, widths)).join("\n");
}

/** One line more of a table that was begun with these widths; a longer cell pushes the rest to the right. */
export function formatLine(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join("  ")
    .trimEnd();
}
