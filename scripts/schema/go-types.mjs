// What the Go types of the API say about their fields: pointers, `omitempty`, and what is inlined where.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Types whose text in JSON is no object but that are structs in Go, which `omitempty` never omits. */
const SCALAR_STRUCTS = new Set(["time", "microTime", "quantity", "intOrString", "fieldsV1", "raw"]);

/**
 * @typedef {{ name: string, goType: string, isPointer: boolean, isInline: boolean, omitEmpty: boolean,
 *   omitZero: boolean, number: number | undefined, protoName: string }} GoField
 */

/** Every struct of one package, by name: its fields in their order. */
export function readPackage(directory) {
  const structs = new Map();
  for (const file of readdirSync(directory)) {
    if (!file.endsWith(".go") || file.endsWith("_test.go") || /generated|_prerelease/.test(file)) continue;
    for (const [name, struct] of readStructs(readFileSync(join(directory, file), "utf8"))) {
      structs.set(name, struct);
    }
  }
  return structs;
}

function* readStructs(text) {
  const imports = new Map(
    [...text.matchAll(/^\s*(?:import\s+)?(?:(\w+)\s+)?"([^"\n]+)"$/gm)].map(([, alias, path]) => [
      alias ?? path.split("/").at(-1),
      path,
    ]),
  );
  for (const [, name, body] of text.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) {
    const fields = body
      .split("\n")
      .map((line) => readField(line))
      .filter((field) => field !== undefined);
    yield [name, { fields, imports }];
  }
}

/** Undefined for comments, blank lines and fields that JSON does not have. */
function readField(line) {
  const match = /^\s*(?:(\w+)\s+)?(\*?[\w.[\]*]+)\s+`([^`]*)`/.exec(line);
  if (match === null || /^\s*\/\//.test(line)) return undefined;
  const [, goName, goType, tags] = match;
  const json = tagOf(tags, "json");
  if (json === undefined || json === "-") return undefined;
  const [name = "", ...options] = json.split(",");
  const protobuf = tagOf(tags, "protobuf")?.split(",") ?? [];
  return {
    name,
    goType: goType.replace(/^\*/, ""),
    isPointer: goType.startsWith("*"),
    isInline: name === "" && (goName === undefined || options.includes("inline")),
    omitEmpty: options.includes("omitempty"),
    omitZero: options.includes("omitzero"),
    number: protobuf.length > 1 ? Number(protobuf[1]) : undefined,
    protoName:
      protobuf.find((part) => part.startsWith("name="))?.slice("name=".length) ??
      (name || lowerFirst(goType)),
  };
}

function lowerFirst(goType) {
  const name = goType.split(".").at(-1) ?? "";
  return `${name.slice(0, 1).toLowerCase()}${name.slice(1)}`;
}

function tagOf(tags, key) {
  return new RegExp(`(?:^|\\s)${key}:"([^"]*)"`).exec(tags)?.[1];
}

/** Whether Go writes the field although nothing is in it. */
export function isEmitted({ isPointer, omitEmpty, omitZero }, type) {
  if (omitZero) return false;
  if (!omitEmpty) return true;
  return !isPointer && (type.startsWith("#") || SCALAR_STRUCTS.has(type));
}
