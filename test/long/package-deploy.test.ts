// Overlays and chart, rendered by the tools that people use and given to an API server by the kubectl they have.
// MOORING_HELM names a helm that is not on the path.
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { createKubectl, kubectlIsHere } from "../e2e/kubectl.ts";
import { Running, scratch } from "../e2e/mooring.ts";

const DEPLOY = resolve(import.meta.dirname, "../../deploy");
const HELM = process.env["MOORING_HELM"] ?? "helm";

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object };
  readonly spec?: { readonly template: { readonly spec: { readonly containers: readonly object[] } } };
}

/** The embedded API server does not have them: nothing in it would start their pods. */
const WORKLOADS = new Set(["Deployment", "DaemonSet"]);

const place = scratch();
const data = join(place.path, "data");
const kubectl = createKubectl({ home: place.path, kubeconfig: join(data, "admin.kubeconfig") });

const leftOut = (what: string, why: string) => {
  process.stdout.write(`left out: ${what}: ${why}\n`);
  test.skip(what);
};

if (!kubectlIsHere()) leftOut("overlays and chart", "no kubectl on this machine");
else everything();

function everything(): void {
  let server: Running;
  beforeAll(async () => {
    server = new Running("apiserver", "--data-dir", data, "--listen", "127.0.0.1:0");
    await server.says(/"message":"serving"/);
  });
  afterAll(async () => {
    server.kill("SIGTERM");
    await server.exit();
    place.remove();
  });

  describe("overlay", () => {
    for (const name of ["control-plane", "attacher-sidecar", "nodes"]) {
      test(`${name}: the server takes what it serves, and no field of the rest is unknown to kubectl`, async () => {
        const manifests = kustomize(`overlays/${name}`);

        await expectAccepted(manifests);
      });
    }
  });

  if (spawnSync(HELM, ["version"]).status === 0) describe("the chart", chart);
  else leftOut("the Helm chart", "no helm on the path or in MOORING_HELM");
}

function chart(): void {
  const ALL = [
    "controller.builtInSwitchedOff=true",
    "attacher.enabled=true",
    "node.enabled=true",
    "driver.enabled=true",
  ];

  test("renders, with its defaults, exactly the manifests of the processes", () => {
    const plain = ["controller", "attacher", "node", "driver"].flatMap(kustomize);

    expect(byName(helm(ALL).map(withoutRelease))).toEqual(byName(plain.map(withoutRelease)));
  });

  test("is taken by the server too, with every option on", async () => {
    await expectAccepted(
      helm([
        ...ALL,
        "attacher.driver.enabled=true",
        "attacher.secrets=true",
        "image.pullSecrets[0].name=pull",
      ]),
    );
  });

  test("puts the attacher beside a driver as the overlay does", () => {
    const sidecarOf = (manifests: readonly Manifest[]) =>
      manifests
        .flatMap(({ spec }) => spec?.template.spec.containers ?? [])
        .filter((container) => "name" in container && container.name === "csi-attacher");
    const rendered = helm([
      "controller.enabled=false",
      "attacher.enabled=true",
      "attacher.driver.enabled=true",
    ]);

    expect(sidecarOf(rendered)).toEqual(
      sidecarOf(kustomize("overlays/attacher-sidecar")).map((container) => ({
        ...container,
        imagePullPolicy: "IfNotPresent",
      })),
    );
  });

  test("adds arguments and changes the account where told", () => {
    const rendered = stringify(
      helm([
        "controller.builtInSwitchedOff=true",
        "controller.extraArgs={--log-level=debug}",
        "attacher.enabled=true",
        "attacher.serviceAccount.name=my-driver",
        "attacher.serviceAccount.create=false",
      ]),
    );

    expect(rendered).toContain("- --log-level=debug");
    expect(rendered).toContain("name: my-driver");
    expect(rendered).not.toContain("csi-controller");
  });

  for (const [what, settings, namespace, complaint] of [
    [
      "beside the built-in controller",
      [],
      "kube-system",
      /controllers=\*,-persistentvolume-attach-detach-controller/,
    ],
    ["where its account has no rights", ALL, "default", /--namespace kube-system/],
    ["a value that nobody reads", [...ALL, "controler.replicas=1"], "kube-system", /controler/],
  ] as const) {
    test(`refuses ${what}`, () => {
      const { status, stderr } = runHelm(settings, namespace);

      expect(status).not.toBe(0);
      expect(stderr).toMatch(complaint);
    });
  }
}

function kustomize(folder: string): Manifest[] {
  const { stdout, stderr } = spawnSync("kubectl", ["kustomize", join(DEPLOY, folder)], { encoding: "utf8" });
  const found = toManifests(stdout);
  if (found.length === 0) throw new Error(`kubectl kustomize ${folder}: ${stderr}`);
  return found;
}

function helm(settings: readonly string[]): Manifest[] {
  const { status, stdout, stderr } = runHelm(settings, "kube-system");
  if (status !== 0) throw new Error(`helm template: ${stderr}`);
  return toManifests(stdout);
}

function runHelm(settings: readonly string[], namespace: string) {
  const set = settings.flatMap((setting) => ["--set", setting]);
  const args = ["template", "mooring", join(DEPLOY, "helm/mooring"), "--kube-version", "1.33", ...set];
  return spawnSync(HELM, [...args, "--namespace", namespace], { encoding: "utf8" });
}

function toManifests(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

/** Without what only a chart adds: its labels, and where images come from. */
function withoutRelease(manifest: Manifest): unknown {
  const text = JSON.stringify(manifest, (key, value: unknown) =>
    key === "app.kubernetes.io/managed-by" || key === "helm.sh/chart" || key === "imagePullPolicy"
      ? undefined
      : value,
  );
  return JSON.parse(
    text
      .replaceAll('"labels":{},', "")
      .replaceAll(/"image":"mooring(-node)?(:[\d.]+)?"/g, '"image":"mooring"'),
  );
}

function byName(manifests: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(
    (manifests as Manifest[]).map((manifest) => [`${manifest.kind} ${manifest.metadata.name}`, manifest]),
  );
}

async function expectAccepted(manifests: readonly Manifest[]): Promise<void> {
  const served = manifests.filter(({ kind }) => !WORKLOADS.has(kind));
  const workloads = manifests.filter(({ kind }) => WORKLOADS.has(kind));
  const applied = await kubectl.ok("apply", "--filename", kubectl.file("served", ...served));

  expect(applied.trim().split("\n")).toHaveLength(served.length);
  expect(workloads.length).toBeGreaterThan(0);
  for (const workload of workloads) await expectUnderstood(workload);
}

/** kubectl reads the object into Go's types and writes it again: a field that they do not have would be gone. */
async function expectUnderstood(workload: Manifest): Promise<void> {
  const file = kubectl.file("workload", workload);
  const text = await kubectl.ok("set", "env", "--local", "--filename", file, "TYPED=yes", "--output", "json");
  const typed = JSON.parse(text) as Manifest;
  const containers = typed.spec!.template.spec.containers as { env: { name: string }[] }[];
  for (const container of containers) container.env = container.env.filter(({ name }) => name !== "TYPED");

  expect(typed).toMatchObject(workload);
}
