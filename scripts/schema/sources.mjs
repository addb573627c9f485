// Where the facts come from: three Go modules, of one release.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readPackage } from "./go-types.mjs";

/** `io.k8s.api.core.v1.Pod` in its parts. */
export function splitName(name) {
  const dot = name.lastIndexOf(".");
  return { packageName: name.slice(0, dot), typeName: name.slice(dot + 1) };
}

/** Every definition of the published OpenAPI documents, by name. */
export function readDefinitions(kubernetes) {
  const directory = join(kubernetes, "api", "openapi-spec", "v3");
  const definitions = new Map();
  for (const file of readdirSync(directory).sort()) {
    const { components } = JSON.parse(readFileSync(join(directory, file), "utf8"));
    for (const [name, schema] of Object.entries(components?.schemas ?? {})) definitions.set(name, schema);
  }
  return definitions;
}

/** The structs and the protobuf messages of the packages of `k8s.io/api` and `k8s.io/apimachinery`, read once each. */
export function createPackages({ api, apimachinery }) {
  const structs = new Map();
  const messages = new Map();
  const directoryOf = (packageName) => {
    const machinery = "io.k8s.apimachinery.";
    const inModule = (root, prefix) => join(root, ...packageName.slice(prefix.length).split("."));
    return packageName.startsWith(machinery)
      ? inModule(apimachinery, machinery)
      : inModule(api, "io.k8s.api.");
  };
  const remember = (map, packageName, read) => {
    let value = map.get(packageName);
    if (value === undefined) map.set(packageName, (value = read(directoryOf(packageName))));
    return value;
  };
  return {
    structOf(name) {
      const { packageName, typeName } = splitName(name);
      return remember(structs, packageName, (at) => (existsSync(at) ? readPackage(at) : new Map())).get(
        typeName,
      );
    },
    messageOf(name) {
      const { packageName, typeName } = splitName(name);
      return remember(messages, packageName, readMessages).get(typeName);
    },
  };
}

/** Numbers by name, for each message of `generated.proto`. */
function readMessages(directory) {
  const path = join(directory, "generated.proto");
  if (!existsSync(path)) return new Map();
  const text = readFileSync(path, "utf8");
  return new Map(
    [...text.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)].map(([, name, body]) => [
      name,
      new Map(
        [...body.matchAll(/^ {2}[^/\n]*?(\w+) = (\d+);/gm)].map(([, field, number]) => [
          field,
          Number(number),
        ]),
      ),
    ]),
  );
}
