import type { Random } from "../base/random.ts";
import type { FieldProblem } from "./errors.ts";
import type { Kind } from "./kinds.ts";

/** Without vowels and look-alikes, so that no suffix spells a word. */
const SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH = 5;
/** A generated name fits a DNS label of 63 characters, whatever the kind. */
const GENERATED_PREFIX_MAX = 63 - SUFFIX_LENGTH;

/** 27^5 is 14 million suffixes: a collision is rare, but callers must expect one. */
export function generateName(prefix: string, random: Random): string {
  const suffix = Array.from({ length: SUFFIX_LENGTH }, () =>
    SUFFIX_LETTERS.charAt(random.int(SUFFIX_LETTERS.length)),
  );
  return `${prefix.slice(0, GENERATED_PREFIX_MAX)}${suffix.join("")}`;
}

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_PATTERN = new RegExp(`^${LABEL}$`);
const SUBDOMAIN_PATTERN = new RegExp(`^${LABEL}(\\.${LABEL})*$`);

/** What is wrong with an object's name, or undefined. */
export function nameProblem({ nameRule }: Kind, name: string): FieldProblem | undefined {
  const problem = NAME_RULES[nameRule](name);
  if (problem === undefined) return undefined;
  return {
    field: "metadata.name",
    reason: "FieldValueInvalid",
    message: `Invalid value: ${JSON.stringify(name)}: ${problem}`,
  };
}

const NAME_RULES: Readonly<Record<Kind["nameRule"], (name: string) => string | undefined>> = {
  subdomain(name) {
    if (name.length > 253) return "must be no more than 253 characters";
    if (SUBDOMAIN_PATTERN.test(name)) return undefined;
    return (
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must " +
      `start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${LABEL}(\\.${LABEL})*')`
    );
  },
  label(name) {
    if (name.length > 63) return "must be no more than 63 characters";
    if (LABEL_PATTERN.test(name)) return undefined;
    return (
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
      `with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`
    );
  },
  "path-segment"(name) {
    if (name === "." || name === "..") return `may not be '${name}'`;
    const wrong = ["/", "%"].find((character) => name.includes(character));
    return wrong === undefined ? undefined : `may not contain '${wrong}'`;
  },
};
