import type { Cluster } from "./cluster.ts";
import { field, nameOf, objectsAt, textAt, textsAt } from "./fields.ts";
import type { ObjectKind } from "./objects.ts";
import { whyCommand } from "../cli/commands/why.ts";
import { getCommand } from "../cli/commands/get.ts";
import { CONTEXT } from "./fault-world.testing.ts";

/** What is wrong with a command that is proposed: it must work as it is, on the cluster asked about, and do no harm. */
export function commandProblems(cluster: Cluster, command: string, note: string): readonly string[] {
  const [first = "", ...filters] = command.split(" | ");
  const words = shellWords(first);
  const bad = filters
    .filter((filter) => !/^grep -i [\w-]+$/.test(filter))
    .map((filter) => `filter ${filter}`);
  if (words === undefined) return [...bad, "cannot be read by a shell"];
  if (words[0] === "mooring") return [...bad, ...mooringProblems(words)];
  return words[0] === "kubectl"
    ? [...bad, ...kubectlProblems(cluster, words.slice(1), note)]
    : ["neither program"];
}

/** Undefined for an open quote, or for anything that a shell would expand. */
function shellWords(text: string): readonly string[] | undefined {
  const words: string[] = [];
  const rest = text.replaceAll(/\s*((?:'[^']*'|\\'|[^\s'\\$`"*?;&<>()|])+)/gy, (_, word: string) => {
    words.push(word.replaceAll(/'([^']*)'/g, "$1"));
    return "";
  });
  return rest.trim() === "" ? words : undefined;
}

const KUBECTL_FLAGS = new Map<string, "value" | "none">([
  ...(["kubeconfig", "context", "namespace", "output", "filename", "patch", "field-selector"] as const).map(
    (name) => [`--${name}`, "value"] as const,
  ),
  ["--all-namespaces", "none"],
  ["--show-labels", "none"],
]);

const TYPES: Readonly<Record<string, readonly [kind: ObjectKind | undefined, namespaced: boolean]>> = {
  pod: ["pods", true],
  pods: ["pods", true],
  "leases,pods": [undefined, true],
  pvc: ["claims", true],
  pv: ["volumes", false],
  persistentvolumes: ["volumes", false],
  volumeattachment: ["attachments", false],
  node: ["nodes", false],
  nodes: ["nodes", false],
  storageclass: ["storageClasses", false],
  storageclasses: ["storageClasses", false],
  secrets: [undefined, true],
  configmaps: [undefined, true],
};

interface Parsed {
  readonly flags: ReadonlyMap<string, string>;
  readonly verb: string;
  readonly args: readonly string[];
}

function parsed(words: readonly string[]): Parsed | string {
  const [flags, args] = [new Map<string, string>(), [] as string[]];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    const [flag = "", inline] = word.split(/=(.*)/s);
    if (!word.startsWith("-")) {
      args.push(word);
      continue;
    }
    const takes = KUBECTL_FLAGS.get(flag);
    if (takes === undefined) return `flag ${flag}`;
    flags.set(flag, takes === "none" ? "" : (inline ?? words[++index] ?? ""));
  }
  const [verb = "", ...rest] = args;
  return { flags, verb, args: rest };
}

function kubectlProblems(cluster: Cluster, words: readonly string[], note: string): readonly string[] {
  const command = parsed(words);
  if (typeof command === "string") return [command];
  const { flags, verb, args } = command;
  const lacks = [
    ...(flags.get("--kubeconfig") === CONTEXT.kubeconfig ? [] : ["without the kubeconfig"]),
    ...(flags.get("--context") === CONTEXT.context ? [] : ["without the context"]),
  ];
  const of = verb === "uncordon" ? ["node", ...args] : args;
  if (verb === "apply") return [...lacks, ...applyProblems(flags)];
  return [...lacks, ...verbProblems(cluster, { flags, verb, args: of }, note)];
}

function applyProblems(flags: ReadonlyMap<string, string>): readonly string[] {
  const file = flags.get("--filename") ?? "";
  if (!/^[A-Z]+\.yaml$/.test(file)) return [`apply of ${file}`];
  const namespaced = file === "CLAIM.yaml" || file === "POD.yaml";
  return namespaced && !flags.has("--namespace") ? ["apply without a namespace"] : [];
}

const VERBS = new Set(["get", "describe", "delete", "annotate", "patch", "taint", "uncordon"]);

function verbProblems(cluster: Cluster, { flags, verb, args }: Parsed, note: string): readonly string[] {
  const [type = "", name, ...values] = args;
  const known = TYPES[type];
  if (!VERBS.has(verb) || known === undefined) return [`${verb} ${type}`];
  const [kind, namespaced] = known;
  const namespace = flags.get("--namespace");
  const placed = namespaced ? namespace !== undefined || flags.has("--all-namespaces") : true;
  const id = namespaced ? `${namespace ?? ""}/${name ?? ""}` : (name ?? "");
  const missing = kind !== undefined && name !== undefined && cluster.find(kind, id) === undefined;
  return [
    ...(placed ? [] : [`${verb} ${type} without a namespace`]),
    ...(missing ? [`${type} ${id} does not exist`] : []),
    ...(name === undefined && verb !== "get" ? [`${verb} of everything`] : []),
    ...harmOf(cluster, { verb, type, name: name ?? "", values, patch: flags.get("--patch") ?? "" }, note),
  ];
}

interface Act {
  readonly verb: string;
  readonly type: string;
  readonly name: string;
  readonly values: readonly string[];
  readonly patch: string;
}

/** A pod may be ended where the note says under which condition; an attachment where its node does not use it, or likewise. */
function harmOf(cluster: Cluster, { verb, type, name, patch }: Act, note: string): readonly string[] {
  if (verb === "patch") {
    const value: unknown = JSON.parse(patch);
    return field(value, "metadata") === undefined && field(value, "spec", "claimRef") === undefined
      ? []
      : [`patch of ${patch}`];
  }
  if (verb === "taint") return /ONLY/.test(note) ? [] : ["taint without a condition"];
  if (verb !== "delete") return [];
  if (type === "pod") return note === "" ? ["deletes a pod without a condition"] : [];
  if (type !== "volumeattachment") return [`deletes a ${type}`];
  return /ONLY once/.test(note) || !isUsed(cluster, name) ? [] : ["deletes an attachment in use"];
}

function isUsed(cluster: Cluster, name: string): boolean {
  const attachment = cluster.find("attachments", name);
  const node = cluster.find("nodes", textAt(attachment, "spec", "nodeName"));
  const volume = cluster.find("volumes", textAt(attachment, "spec", "source", "persistentVolumeName"));
  const unique = `kubernetes.io/csi/${textAt(volume, "spec", "csi", "driver")}^${textAt(volume, "spec", "csi", "volumeHandle")}`;
  const listed = objectsAt(node, "status", "volumesAttached").some((item) => textAt(item, "name") === unique);
  return node === undefined || (listed && textsAt(node, "status", "volumesInUse").includes(unique));
}

/** By the program itself. */
function mooringProblems([, name = "", ...args]: readonly string[]): readonly string[] {
  const command = name === "why" ? whyCommand(nothing) : name === "get" ? getCommand(nothing) : undefined;
  if (command === undefined) return [`mooring ${name}`];
  try {
    command
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .parse([...args], { from: "user" });
    const { kubeconfig, context } = command.opts<{ kubeconfig?: string; context?: string }>();
    return kubeconfig === CONTEXT.kubeconfig && context === CONTEXT.context
      ? []
      : ["without kubeconfig or context"];
  } catch (problem) {
    return [`mooring ${name}: ${nameOf(problem) || String(problem)}`];
  }
}

function nothing(): Promise<void> {
  return Promise.resolve();
}
