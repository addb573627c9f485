import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { createProgram } from "../src/cli/program.ts";

/** Manifests of the node agent, checked against what it asks for and the flags that exist. */

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
  readonly spec?: { readonly template: { readonly spec: PodSpec } };
  readonly namespace?: string;
  readonly resources?: readonly string[];
}

interface PodSpec {
  readonly serviceAccountName: string;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly nodeSelector: object;
  readonly containers: readonly Container[];
  readonly volumes: readonly { readonly name: string; readonly hostPath: { readonly path: string } }[];
}

interface Container {
  readonly args: readonly string[];
  readonly ports: readonly { readonly containerPort: number }[];
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly mountPropagation?: string;
  }[];
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } };
}

const read = (file: string) =>
  parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8")).map((document) => document.toJS() as Manifest);

const [kustomization] = read("kustomization.yaml");
const manifests = kustomization!.resources!.flatMap(read);
const of = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);

test("every manifest of the folder is applied, into kube-system and nowhere else", () => {
  const files = readdirSync(DEPLOY).filter((file) => file !== "kustomization.yaml");

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
      "storage.k8s.io/csinodes: get create update delete",
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

describe("the daemon set", () => {
  const [daemonSet] = of("DaemonSet");
  const pod = daemonSet!.spec!.template.spec;
  const [container] = pod.containers;

  test("runs only where a label asks for it, under that account, with the machine's mounts and nothing else of it", () => {
    expect(pod.serviceAccountName).toBe("mooring-node");
    expect(pod.nodeSelector).toEqual({ "mooring.dev/volume-manager": "true" });
    expect([pod.hostNetwork, pod.hostPID]).toEqual([undefined, undefined]);
  });

  test("sees the root directory under its own path, and what it mounts there arrives on the machine", () => {
    const rootDir = container!.args.find((flag) => flag.startsWith("--root-dir="))?.split("=")[1];
    const mount = container!.volumeMounts.find(({ mountPath }) => mountPath === rootDir);

    expect(mount?.mountPropagation).toBe("Bidirectional");
    expect(pod.volumes.find(({ name }) => name === mount?.name)?.hostPath.path).toBe(rootDir);
  });

  test("passes only flags that exist, mounts drivers where the flag looks by default, and probes the port it opens", () => {
    const [name, ...flags] = container!.args;
    const command = createProgram().commands.find((child) => child.name() === name)!;
    const known = command.options.map(({ long }) => long);
    const { flexVolumePluginDir } = command.opts<{ flexVolumePluginDir: string }>();

    expect(flags.map((flag) => flag.split("=")[0]).filter((flag) => !known.includes(flag))).toEqual([]);
    expect(container!.volumeMounts.map(({ mountPath }) => `${mountPath}/`)).toContain(flexVolumePluginDir);
    expect(flags).toContain(`--http-endpoint=:${container!.ports[0]!.containerPort}`);
    expect(container!.livenessProbe!.httpGet).toEqual({ path: "/livez", port: "http" });
    expect(container!.readinessProbe!.httpGet).toEqual({ path: "/readyz", port: "http" });
  });
});
