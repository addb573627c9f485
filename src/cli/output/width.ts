/** Where nobody says how wide it is: what every terminal, ticket and mail has. */
const WIDTH = 80;

/** Narrower, and more is cut than left. */
const WIDTH_MIN = 60;

/**
 * Columns to lay the default output out for: those of the terminal, else COLUMNS, else 80. A pipe gets the same text as
 * a screen of 80 columns: what people paste and compare stays the same, and a name is never half there without showing it.
 * Programs read `-o json`, and `-o wide` is never cut, wherever it goes.
 */
export function widthOf(
  output: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): number {
  const given = output.isTTY === true ? output.columns : Number(env["COLUMNS"]);
  return given !== undefined && Number.isInteger(given) && given > 0 ? Math.max(given, WIDTH_MIN) : WIDTH;
}
