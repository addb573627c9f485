import { formatJson, parseJson } from "../../kube/json-text.ts";
import { entriesOf, isJsonList, isJsonObject, type Json } from "../../kube/patch/json.ts";

/**
 * JSON text as YAML, in the look of the real server: keys in order, lists not indented below their key. Any text that
 * a reader of YAML 1.1 could take for something else (`yes`, `12`, `~`, a date) is quoted, in the quotes of JSON, which
 * YAML reads the same way.
 */
export function toYaml(jsonText: string): string {
  return `${block(parseJson(jsonText) as Json, "").join("\n")}\n`;
}

function block(value: Json, indent: string): readonly string[] {
  if (isJsonList(value) && value.length > 0) {
    return value.flatMap((item) => hang(`${indent}-`, block(item, `${indent}  `), indent.length + 2));
  }
  if (isJsonObject(value) && Object.keys(value).length > 0) {
    return entriesOf(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([key, member]) => entryLines(key, member, indent));
  }
  return [`${indent}${scalar(value)}`];
}

function entryLines(key: string, member: Json, indent: string): readonly string[] {
  const head = `${indent}${scalar(key)}:`;
  if (isJsonList(member) && member.length > 0) return [head, ...block(member, indent)];
  if (isJsonObject(member) && Object.keys(member).length > 0) return [head, ...block(member, `${indent}  `)];
  return [`${head} ${scalar(member)}`];
}

/** Puts the first line of a block behind its dash. */
function hang(dash: string, [first = "", ...rest]: readonly string[], width: number): readonly string[] {
  return [`${dash} ${first.slice(width)}`, ...rest];
}

/** Letters, digits and a few signs, beginning with a letter: never a number, a date or an anchor. */
const PLAIN = /^[A-Za-z][A-Za-z0-9_./-]*$/;
const WORDS_OF_YAML = /^(y|n|yes|no|on|off|true|false|null)$/i;

function scalar(value: Json): string {
  const isPlain = typeof value === "string" && PLAIN.test(value) && !WORDS_OF_YAML.test(value);
  return isPlain ? value : formatJson(value);
}
