// How `mooring up` ends when it is not left alone: killed while it stops, interrupted, given a file with a mistake in it.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { Running, scratch } from "../e2e/mooring.ts";
import { letGoOf, loopDevicesBelow, mountsBelow } from "../e2e/up-world.ts";

const place = scratch();
const started: Running[] = [];
afterEach(async () => {
  for (const process of started.splice(0)) {
    process.kill("SIGKILL");
    await process.exit();
  }
  letGoOf(place.path);
});
afterAll(place.remove);

function up(name: string, ...flags: string[]): Running {
  const process = new Running(
    "up",
    "--data-dir",
    join(place.path, name),
    "--listen",
    "127.0.0.1:0",
    ...flags,
  );
  started.push(process);
  return process;
}

function kubectl(name: string, ...args: string[]): string {
  const kubeconfig = join(place.path, name, "admin.kubeconfig");
  return spawnSync("kubectl", ["--kubeconfig", kubeconfig, ...args], { encoding: "utf8" }).stdout;
}

for (const afterMs of [20, 120, 300])
  test(`killed ${afterMs} ms after it began to stop: the next start mounts the same data again`, async () => {
    const name = `stopping-${afterMs}`;
    const data = join(place.path, name);
    const volumes = () =>
      mountsBelow(join(data, "nodes")).filter((path) => path.includes("kubernetes.io~csi"));
    const first = up(name);
    await first.says(/Press Ctrl-C/);
    kubectl(name, "apply", "-f", "examples/set-of-pods.yaml");
    kubectl(name, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s");
    expect(volumes()).toHaveLength(3);
    for (const path of volumes()) writeFileSync(join(path, "note"), "kept");

    first.kill("SIGTERM");
    await first.says(/stopping/);
    // A moment of the stop itself, which takes half a second; which act it hits does not matter.
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    first.kill("SIGKILL");
    await first.exit();

    const second = up(name);
    await second.says(/Press Ctrl-C/);
    kubectl(name, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s");
    expect(volumes().map((path) => readFileSync(join(path, "note"), "utf8"))).toEqual([
      "kept",
      "kept",
      "kept",
    ]);
    second.kill("SIGTERM");
    await second.exit();
    expect([mountsBelow(data), loopDevicesBelow(data)]).toEqual([[], []]);
  });

test("interrupted in the middle of --once it cleans up and ends with 1, without a stack trace", async () => {
  const process = up(
    "interrupted",
    "--once",
    "examples/claim-and-pod.yaml",
    "--faults",
    "NodeStageVolume=hang",
  );
  await process.says(/persistentvolumeclaim\/data +\d+ ms/);

  process.kill("SIGINT");

  expect((await process.exit()).code).toBe(1);
  expect(process.stderr).toBe("");
  expect(process.stdout).toMatch(/stopping \(SIGINT\)\nstopped\n$/);
  expect(mountsBelow(join(place.path, "interrupted"))).toEqual([]);
});

test("asked to end several times over, as npm and timeout do, it still ends in order and leaves nothing mounted", async () => {
  const process = up("echoes");
  await process.says(/Press Ctrl-C/);
  kubectl("echoes", "apply", "-f", "examples/claim-and-pod.yaml");
  kubectl("echoes", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s");

  for (const signal of ["SIGTERM", "SIGTERM", "SIGINT", "SIGHUP", "SIGTERM"] as const) process.kill(signal);

  expect((await process.exit()).code).toBe(0);
  expect(process.stdout).toMatch(/stopping \(SIG\w+\)\nstopped\n$/);
  const data = join(place.path, "echoes");
  expect([mountsBelow(data), loopDevicesBelow(data)]).toEqual([[], []]);
});

test("a mistake in a pod of --once is refused before anything starts and does not cost the pod of that name that is there", async () => {
  const pod = (container: string) =>
    `apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec: { containers: [${container}] }\n`;
  const [good, bad] = [join(place.path, "good.yaml"), join(place.path, "bad.yaml")];
  writeFileSync(good, pod("{ name: main, image: none }"));
  writeFileSync(bad, pod("{ name: Not_A_Name, image: none }"));
  const once = (file: string) => up("mistake", "--node-mode", "simulated", "--once", file);
  expect((await once(good).exit()).code).toBe(0);

  const refused = once(bad);

  expect((await refused.exit()).code).toBe(1);
  expect(refused.stderr).toMatch(/bad\.yaml: line 4: pod\/web: spec\.containers\[0\]\.name: Invalid value/);
  expect(refused.stdout).toBe("");
  const after = up("mistake", "--node-mode", "simulated");
  await after.says(/Press Ctrl-C/);
  expect(kubectl("mistake", "get", "pod", "web", "-o", "jsonpath={.spec.containers[0].name}")).toBe("main");
});

test("a folder called run that others can enter is left as it is, and the start refused", async () => {
  const data = join(place.path, "has-run");
  mkdirSync(join(data, "run"), { recursive: true });
  writeFileSync(join(data, "run", "precious"), "kept");

  const process = up("has-run");

  expect((await process.exit()).code).toBe(1);
  expect(process.stderr).toContain(`${join(data, "run")} is in the way`);
  expect(readFileSync(join(data, "run", "precious"), "utf8")).toBe("kept");
});
