/** How words are made to stand out; plain where nobody looks at a terminal. */
export interface Style {
  readonly strong: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
}

export const PLAIN: Style = { strong: (text) => text, good: (text) => text, bad: (text) => text };

const ESC = "\u001b[";

const COLOURED: Style = {
  strong: (text) => `${ESC}1m${text}${ESC}0m`,
  good: (text) => `${ESC}32m${text}${ESC}0m`,
  bad: (text) => `${ESC}1;31m${text}${ESC}0m`,
};

/** Colours only on a terminal, and not where NO_COLOR is set or the terminal is a dumb one. */
export function styleFor(
  output: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const refused = (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return output.isTTY === true && !refused ? COLOURED : PLAIN;
}
