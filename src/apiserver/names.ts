import type { Random } from "../base/random.ts";

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
