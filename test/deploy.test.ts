import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { bootstrapPolicy } from "../src/apiserver/auth/bootstrap-roles.ts";
import { TIMERS_NAME } from "../src/attach-detach/detach-timers.ts";
import { createProgram } from "../src/cli/program.ts";

/** Manifests, checked against the rights that the specification allows and the flags that exist. */

const DEPLOY = resolve(import.meta.dirname, "../deploy/controller");

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly Rule[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly unknown[];
  readonly spec?: { readonly replicas: number; readonly template: { readonly spec: PodSpec } };
  readonly namespace?: string;
  readonly resources?: readonly string[];
}

interface PodSpec {
  readonly serviceAccountName: string;
  readonly securityContext: object;
  readonly hostNetwork?: boolean;
  readonly containers: readonly Container[];
}

interface Container {
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly resources: { readonly requests?: object; readonly limits?: object };
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

/** One line a right: `group/resource[name] verb`. */
function rightsOf(rules: readonly Rule[]): string[] {
  return rules
    .flatMap(({ apiGroups, resources, verbs, resourceNames = [""] }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          resourceNames.flatMap((name) =>
            verbs.map((verb) => `${group}/${resource}${name && `[${name}]`} ${verb}`),
          ),
        ),
      ),
    )
    .sort();
}

function rights(...rows: readonly (readonly [string, string])[]): string[] {
  return rows.flatMap(([target, verbs]) => verbs.split(", ").map((verb) => `${target} ${verb}`)).sort();
}

test("every manifest of the folder is applied, into kube-system and nowhere else", () => {
  const files = readdirSync(DEPLOY).filter((file) => file !== "kustomization.yaml");

  expect([...kustomization!.resources!].sort()).toEqual(files.sort());
  expect(kustomization!.namespace).toBe("kube-system");
  expect(manifests.filter(({ metadata }) => metadata.namespace !== undefined)).toEqual([]);
});

describe("rights", () => {
  const account = only("ServiceAccount");
  const subject = { kind: "ServiceAccount", name: account.metadata.name, namespace: "kube-system" };

  test("across the cluster are those of the original's role and account, and nothing is added", () => {
    const { roles, bindings } = bootstrapPolicy();
    const role = roles.find(({ metadata }) => metadata.name === ROLE) as Manifest | undefined;
    const binding = bindings.find(({ metadata }) => metadata.name === ROLE) as Manifest | undefined;

    expect(manifests.filter(({ kind }) => kind.startsWith("Cluster"))).toEqual([]);
    expect(binding?.subjects).toEqual([subject]);
    expect(rightsOf(role!.rules!)).toEqual(
      rights(
        ["/persistentvolumes", "list, watch"],
        ["/persistentvolumeclaims", "list, watch"],
        ["/nodes", "get, list, watch"],
        ["/nodes/status", "patch, update"],
        ["/pods", "list, watch"],
        ["/events", "create, update, patch"],
        ["events.k8s.io/events", "create, update, patch"],
        ["storage.k8s.io/volumeattachments", "get, create, delete, list, watch"],
        ["storage.k8s.io/csidrivers", "get, list, watch"],
        ["storage.k8s.io/csinodes", "get, list, watch"],
      ),
    );
  });

  test("in its namespace are one Lease and one ConfigMap, by name where RBAC can", () => {
    expect(rightsOf(only("Role").rules!)).toEqual(
      rights(
        ["coordination.k8s.io/leases", "create"],
        ["coordination.k8s.io/leases[mooring-attach-detach-controller]", "get, update"],
        ["/configmaps", "create"],
        [`/configmaps[${TIMERS_NAME}]`, "get, update"],
      ),
    );
    const { roleRef, subjects } = only("RoleBinding");
    expect(roleRef).toMatchObject({ kind: "Role", name: only("Role").metadata.name });
    expect(subjects).toEqual([subject]);
  });

  test("name the Lease that the flags name by default", () => {
    const command = createProgram().commands.find((child) => child.name() === "controller")!;

    expect(command.opts()).toMatchObject({
      leaderElectResourceName: "mooring-attach-detach-controller",
      leaderElectResourceNamespace: kustomization!.namespace,
    });
  });
});

describe("the deployment", () => {
  const { replicas, template } = only("Deployment").spec!;
  const [container] = template.spec.containers;

  test("runs two replicas under that account, as nobody, with nothing to write to and nothing to gain", () => {
    expect(replicas).toBe(2);
    expect(template.spec.serviceAccountName).toBe(only("ServiceAccount").metadata.name);
    expect(template.spec.hostNetwork).toBeUndefined();
    expect(template.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(template.spec.containers.map(({ securityContext }) => securityContext)).toEqual([
      { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
    ]);
    expect(container!.resources).toMatchObject({
      requests: { cpu: expect.any(String), memory: expect.any(String) },
      limits: { memory: expect.any(String) },
    });
  });

  test("passes only flags that exist, and probes the port it opens", () => {
    const [name, ...flags] = container!.args;
    const command = createProgram().commands.find((child) => child.name() === name)!;
    const known = command.options.map(({ long }) => long);

    expect(flags.map((flag) => flag.split("=")[0]).filter((flag) => !known.includes(flag))).toEqual([]);
    expect(flags).toContain(`--http-endpoint=:${container!.ports[0]!.containerPort}`);
    expect(container!.livenessProbe!.httpGet).toEqual({ path: "/livez", port: "http" });
    expect(container!.startupProbe!.httpGet).toEqual({ path: "/livez", port: "http" });
    expect(container!.readinessProbe!.httpGet).toEqual({ path: "/readyz", port: "http" });
  });
});

const ROLE = "system:controller:attachdetach-controller";
