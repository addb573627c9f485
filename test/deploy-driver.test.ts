import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { createProgram } from "../src/cli/program.ts";

/** Manifests of the loop driver, checked against what it needs on a host and the flags that exist. */

const DEPLOY = resolve(import.meta.dirname, "../deploy/driver");

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly resources?: readonly string[];
  readonly namespace?: string;
  readonly spec?: DriverSpec & { readonly template: { readonly spec: PodSpec } };
}

interface DriverSpec {
  readonly attachRequired: boolean;
  readonly podInfoOnMount: boolean;
  readonly volumeLifecycleModes: readonly string[];
}

interface PodSpec {
  readonly automountServiceAccountToken: boolean;
  readonly serviceAccountName?: string;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly containers: readonly Container[];
  readonly volumes: readonly { readonly name: string; readonly hostPath: { readonly path: string } }[];
}

interface Container {
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly resources: { readonly requests?: object };
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
const only = (kind: string) => {
  const found = manifests.filter((manifest) => manifest.kind === kind);
  expect(found).toHaveLength(1);
  return found[0]!;
};

const pod = only("DaemonSet").spec!.template.spec;
const [container] = pod.containers;
const [name, ...args] = container!.args;
const command = createProgram().commands.find((child) => child.name() === name)!;
const flag = (wanted: string) => args.find((arg) => arg.startsWith(`${wanted}=`))?.slice(wanted.length + 1);

test("every manifest of the folder is applied, into kube-system and nowhere else", () => {
  const files = readdirSync(DEPLOY).filter((file) => file !== "kustomization.yaml");

  expect([...kustomization!.resources!].sort()).toEqual(files.sort());
  expect(kustomization!.namespace).toBe("kube-system");
  expect(manifests.filter(({ metadata }) => metadata.namespace !== undefined)).toEqual([]);
});

describe("least rights", () => {
  test("it talks to no API server: no role, no account, no token; no network or processes of the host", () => {
    expect(manifests.map(({ kind }) => kind).sort()).toEqual(["CSIDriver", "DaemonSet"]);
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(pod).not.toHaveProperty("serviceAccountName");
    expect(pod).not.toHaveProperty("hostNetwork");
    expect(pod).not.toHaveProperty("hostPID");
  });

  test("of the host it sees devices, its own state and what kubelet mounts; only that is seen on both sides", () => {
    expect(pod.volumes.map(({ hostPath }) => hostPath.path).sort()).toEqual([
      "/dev",
      "/var/lib/kubelet/plugins",
      "/var/lib/kubelet/plugins/loop.csi.mooring.dev",
      "/var/lib/kubelet/plugins_registry",
      "/var/lib/kubelet/pods",
      "/var/lib/mooring-loop",
    ]);
    const both = container!.volumeMounts.filter((mount) => mount.mountPropagation === "Bidirectional");
    expect(both.map(({ mountPath }) => mountPath)).toEqual([
      "/var/lib/kubelet/plugins",
      "/var/lib/kubelet/pods",
    ]);
    expect(container!.resources.requests).toMatchObject({
      cpu: expect.any(String),
      memory: expect.any(String),
    });
  });
});

describe("the container", () => {
  test("runs an image without a registry, passes only flags that exist, and probes the port it opens", () => {
    const known = command.options.map(({ long }) => long);

    expect([container!.image, ...container!.command]).toEqual(["mooring", "mooring"]);
    expect(args.map((arg) => arg.split("=")[0]).filter((arg) => !known.includes(arg))).toEqual([]);
    expect(flag("--http-endpoint")).toBe(`:${container!.ports[0]!.containerPort}`);
    expect(container!.livenessProbe!.httpGet).toEqual({ path: "/livez", port: "http" });
    expect(container!.readinessProbe!.httpGet).toEqual({ path: "/readyz", port: "http" });
    expect(flag("--nodeid")).toBe(`$(${container!.env[0]!.name})`);
  });

  test("its socket, its registration and its state lie on what is mounted for them, where kubelet looks", () => {
    const hostPathOf = (path: string) => {
      const mount = container!.volumeMounts.find(({ mountPath }) => path.startsWith(mountPath));
      const volume = pod.volumes.find((one) => one.name === mount?.name);
      return volume === undefined ? undefined : path.replace(mount!.mountPath, volume.hostPath.path);
    };

    expect(hostPathOf(flag("--endpoint")!.replace("unix://", ""))).toBe(flag("--kubelet-registration-path"));
    expect(hostPathOf(flag("--plugin-registration-path")!)).toBe("/var/lib/kubelet/plugins_registry");
    expect(hostPathOf(flag("--statedir")!)).toBe("/var/lib/mooring-loop");
  });
});

test("what the CSIDriver says is what the flags do: its name, no attach, pods and ephemeral volumes", () => {
  const { metadata, spec } = only("CSIDriver");
  const byDefault = command.options.find(({ long }) => long === "--drivername")?.defaultValue as unknown;

  expect(metadata.name).toBe(flag("--drivername") ?? byDefault);
  expect(flag("--enable-attach")).toBe(String(spec!.attachRequired));
  // An ephemeral volume is told apart by what kubelet says about the pod.
  expect([spec!.podInfoOnMount, spec!.volumeLifecycleModes]).toEqual([true, ["Persistent", "Ephemeral"]]);
});
