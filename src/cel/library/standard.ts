import type { Library } from "../functions.ts";
import { CONVERSIONS } from "./conversions.ts";
import { FORMAT } from "./format.ts";
import { LISTS } from "./lists.ts";
import { OPERATORS } from "./operators.ts";
import { OPTIONALS } from "./optionals.ts";
import { REGEXES } from "./regexes.ts";
import { SETS } from "./sets.ts";
import { STRINGS } from "./strings.ts";
import { TIMES } from "./times.ts";

/** The language itself and the extensions that Kubernetes switches on, without those that are its own. */
export const STANDARD: Library = [
  ...OPERATORS,
  ...CONVERSIONS,
  ...TIMES,
  ...STRINGS,
  ...FORMAT,
  ...LISTS,
  ...SETS,
  ...OPTIONALS,
  ...REGEXES,
];
