import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { createProgram } from "../src/cli/program.ts";

/** Rights and service of the node agent, checked against what it asks for and the flags that exist. */

const DEPLOY = resolve(import.meta.dirname, "../deploy/node");

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly unknown[];
  readonly namespace?: string;
  readonly resources?: readonly string[];
}

/** What a cluster may be given for an agent. */
const RIGHTS: ReadonlySet<string> = new Set(["ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);

const read = (file: string) =>
  parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8")).map((document) => document.toJS() as Manifest);

const [kustomization] = read("kustomization.yaml");
const manifests = kustomization!.resources!.flatMap(read);
const of = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);

test("every manifest of the folder is applied, into kube-system and nowhere else", () => {
  const files = readdirSync(DEPLOY).filter((file) => file.endsWith(".yaml") && file !== "kustomization.yaml");

  expect([...kustomization!.resources!].sort()).toEqual(files.sort());
  expect(kustomization!.namespace).toBe("kube-system");
  expect(manifests.filter(({ metadata }) => metadata.namespace !== undefined)).toEqual([]);
});

describe("rights", () => {
  const rightsOf = (name: string) =>
    of("ClusterRole")
      .filter(({ metadata }) => metadata.name === name)
      .flatMap(({ rules = [] }) => rules)
      .map(
        ({ apiGroups, resources, verbs }) => `${apiGroups.join()}/${resources.join()}: ${verbs.join(" ")}`,
      );

  test("are to read what pods name, to report, and to write the node's own CSINode; content is a role of its own", () => {
    expect(rightsOf("mooring-node")).toEqual([
      "/pods,nodes,persistentvolumeclaims,persistentvolumes: get list watch",
      "/nodes/status,persistentvolumeclaims/status: patch",
      "/events: create patch",
      "storage.k8s.io/volumeattachments,csidrivers: get list watch",
      "certificates.k8s.io/clustertrustbundles: list",
      "storage.k8s.io/csinodes: get list watch create update delete",
    ]);
    expect(rightsOf("mooring-node-content")).toEqual([
      "/secrets,configmaps: get list watch",
      "/serviceaccounts/token: create",
    ]);
  });

  test("are bound to the account of the agent alone", () => {
    const account = { kind: "ServiceAccount", name: "mooring-node", namespace: "kube-system" };

    expect(of("ServiceAccount").map(({ metadata }) => metadata.name)).toEqual([account.name]);
    expect(of("ClusterRoleBinding").map(({ roleRef, subjects }) => [roleRef?.name, subjects])).toEqual([
      ["mooring-node", [account]],
      ["mooring-node-content", [account]],
    ]);
  });
});

describe("the service", () => {
  const unit = parseUnit(readFileSync(join(DEPLOY, "mooring-node.service"), "utf8"));
  const environment = readFileSync(join(DEPLOY, "node.env"), "utf8");
  const [program, name, ...flags] = (unit["ExecStart"]?.[0] ?? "").split(" ");

  test("is no pod: whoever starts pods on a machine is a kubelet, beside which no agent may work", () => {
    const text = readdirSync(DEPLOY).map((file) => readFileSync(join(DEPLOY, file), "utf8"));

    expect(manifests.map(({ kind }) => kind).filter((kind) => !RIGHTS.has(kind))).toEqual([]);
    expect(text.join("\n")).not.toMatch(/kind: (DaemonSet|Deployment|Pod)\b/);
  });

  test("never runs beside a kubelet of the machine, and comes back when it ends", () => {
    expect(unit["Conflicts"]).toEqual(["kubelet.service"]);
    expect(unit["Restart"]).toEqual(["always"]);
  });

  test("sees the machine's mounts and all of its processes, and ends without what it started", () => {
    const hiding =
      /^(Private|Protect|ReadOnly|ReadWrite|Inaccessible|Temporary|Root|Bind|Mount|NoNewPriv|Dynamic|User$|Restrict)/;

    expect(Object.keys(unit).filter((key) => hiding.test(key))).toEqual([]);
    expect(unit["KillMode"]).toEqual(["process"]);
  });

  test("passes only flags that exist, each from a line of the environment file", () => {
    const command = createProgram().commands.find((child) => child.name() === name)!;
    const known = command.options.map(({ long }) => long);
    const given = flags
      .filter((flag) => flag.startsWith("--"))
      .map((flag) => flag.split("=") as [string, string]);
    const lines = [...environment.matchAll(/^([A-Z_]+)=/gm)].map(([, key]) => `\${${key}}`);

    expect([program, name]).toEqual(["/usr/local/bin/mooring", "node"]);
    expect(given.map(([flag]) => flag).filter((flag) => !known.includes(flag))).toEqual([]);
    expect([...given.map(([, value]) => value), "${EXTRA_ARGS}"].sort()).toEqual(lines.sort());
    expect(unit["EnvironmentFile"]).toEqual(["/etc/mooring/node.env"]);
  });

  test("gives every flag that has to be given", () => {
    const command = createProgram().commands.find((child) => child.name() === name)!;
    const required = command.options.filter(({ mandatory }) => mandatory).map(({ long }) => long);

    expect(required.filter((flag) => !flags.some((one) => one.startsWith(`${flag}=`)))).toEqual([]);
  });
});

/** By key, of all sections: systemd has no key in two of them that are used here. */
function parseUnit(text: string): Readonly<Record<string, readonly string[]>> {
  const found: Record<string, string[]> = {};
  for (const line of text.split("\n")) {
    const match = /^([A-Za-z]+)=(.*)$/.exec(line);
    if (match) (found[match[1] ?? ""] ??= []).push(match[2] ?? "");
  }
  return found;
}
