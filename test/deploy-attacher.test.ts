import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { createProgram } from "../src/cli/program.ts";

/** Manifests of the attacher, checked against the rights that the specification allows and the flags that exist. */

const DEPLOY = resolve(import.meta.dirname, "../deploy/attacher");

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
  readonly resources?: readonly string[];
  readonly spec?: { readonly template: { readonly spec: { readonly containers: readonly Container[] } } };
}

interface Container {
  readonly args: readonly string[];
  readonly ports: readonly { readonly containerPort: number }[];
}

const read = (file: string) =>
  parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8")).map((document) => document.toJS() as Manifest);

const [kustomization] = read("kustomization.yaml");
const manifests = kustomization!.resources!.flatMap(read);

const rightsOf = (kind: string, name: string) =>
  manifests
    .filter((manifest) => manifest.kind === kind && manifest.metadata.name === name)
    .flatMap(({ rules = [] }) => rules)
    .flatMap(
      ({ apiGroups, resources, verbs }) => `${apiGroups.join()}/${resources.join()}: ${verbs.join(" ")}`,
    );

test("every manifest of the folder is applied, except the container, which goes into a driver's own pod", () => {
  const files = readdirSync(DEPLOY).filter((file) => !["kustomization.yaml", "sidecar"].includes(file));

  expect([...kustomization!.resources!].sort()).toEqual(files.sort());
});

test("rights are those of the original: nothing is updated or deleted, secrets are a role of their own", () => {
  expect(rightsOf("ClusterRole", "mooring-attacher")).toEqual([
    "/persistentvolumes: get list watch patch",
    "storage.k8s.io/csinodes: get list watch",
    "storage.k8s.io/volumeattachments: get list watch patch",
    "storage.k8s.io/volumeattachments/status: patch",
  ]);
  expect(rightsOf("ClusterRole", "mooring-attacher-secrets")).toEqual(["/secrets: get"]);
  expect(rightsOf("Role", "mooring-attacher")).toEqual([
    "coordination.k8s.io/leases: get create update",
    "/events: create patch",
  ]);
});

test("the container passes only flags that exist, and opens the port it is probed on", () => {
  const [container] = read("sidecar/container.yaml")[0]!.spec!.template.spec.containers;
  const [name, ...flags] = container!.args;
  const command = createProgram().commands.find((child) => child.name() === name)!;
  const known = command.options.map(({ long }) => long);

  expect(flags.map((flag) => flag.split("=")[0]).filter((flag) => !known.includes(flag))).toEqual([]);
  expect(flags).toContain(`--http-endpoint=:${container!.ports[0]!.containerPort}`);
});
