// Every way in which kubectl changes an object.
import { expect, test } from "vitest";
import { configMap, node, pod, volume } from "./kubectl-objects.ts";
import type { Suite } from "./kubectl-suite.ts";
import { cells, table, writeSedEditor } from "./kubectl.ts";

export function changes({ kubectl, given, value, home }: Suite): void {
  test("apply creates, leaves alone, changes, and takes away what is no longer in the file", async () => {
    await given("apply");
    const apply = (content: Record<string, string>) =>
      kubectl.ok("apply", "-f", kubectl.file("applied", configMap("apply", "c", content)));

    expect(await apply({ k: "1", gone: "x" })).toBe("configmap/c created\n");
    expect(await apply({ k: "1", gone: "x" })).toBe("configmap/c unchanged\n");
    await kubectl.ok("-n", "apply", "patch", "cm", "c", "-p", '{"data":{"other":"o"}}');
    expect(await apply({ k: "2" })).toBe("configmap/c configured\n");

    expect(await value("apply", "cm/c", ".data")).toBe('{"k":"2","other":"o"}');
  });

  test("apply changes one container of a pod and leaves the rest", async () => {
    await given("apply-pod");
    const web = pod("apply-pod", "web") as { spec: { containers: { image: string }[] } };
    await kubectl.ok("apply", "-f", kubectl.file("apply-pod", web));

    web.spec.containers[1]!.image = "side:2";
    const said = await kubectl.ok("apply", "-f", kubectl.file("apply-pod", web));

    expect(said).toBe("pod/web configured\n");
    expect(await value("apply-pod", "pod/web", ".spec.containers[*].image")).toBe("app:1 side:2");
  });

  test("apply --server-side: owners conflict until one of them insists", async () => {
    await given("owners");
    const apply = (k: string, ...flags: string[]) => {
      const file = kubectl.file("owned", configMap("owners", "c", { k }));
      return kubectl.run(["apply", "--server-side", "-f", file, ...flags]);
    };
    const applied = { code: 0, stdout: "configmap/c serverside-applied\n", stderr: "" };

    expect(await apply("1", "--field-manager=first")).toEqual(applied);
    expect(await apply("2", "--field-manager=first")).toEqual(applied);
    const refused = await apply("3", "--field-manager=second");
    expect([refused.code, refused.stderr.split("\n")[0]]).toEqual([
      1,
      'error: Apply failed with 1 conflict: conflict with "first": .data.k',
    ]);
    expect(await value("owners", "cm/c", ".data.k")).toBe("2");

    expect(await apply("3", "--field-manager=second", "--force-conflicts")).toEqual(applied);

    expect(await value("owners", "cm/c", ".data.k")).toBe("3");
    expect(await value("owners", "cm/c", ".metadata.managedFields[*].manager")).toBe("second");
  });

  test("diff exits with 0 when nothing would change and with 1 when something would", async () => {
    await given("diff");
    const file = (k: string) => kubectl.file(`diff-${k}`, configMap("diff", "c", { k }));
    await kubectl.ok("apply", "-f", file("1"));

    expect(await kubectl.run(["diff", "-f", file("1")])).toEqual({ code: 0, stdout: "", stderr: "" });
    for (const flags of [[], ["--server-side", "--force-conflicts"]]) {
      const { code, stdout } = await kubectl.run(["diff", ...flags, "-f", file("2")]);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^- {2}k: "1"\n\+ {2}k: "2"$/m);
    }
    expect(await value("diff", "cm/c", ".data.k")).toBe("1");
  });

  test("edit sends what the editor changed, and nothing when it changed nothing", async () => {
    await given("edit", configMap("edit", "c", { k: "1" }));
    const change = writeSedEditor(home, "change", 's/k: "1"/k: "2"/');
    const nothing = writeSedEditor(home, "nothing", "s/absent/present/");
    const edit = (editor: string) => kubectl.run(["-n", "edit", "edit", "cm", "c"], { KUBE_EDITOR: editor });

    expect(await edit(change)).toMatchObject({ code: 0, stdout: "configmap/c edited\n" });
    expect(await edit(nothing)).toMatchObject({ code: 0, stderr: "Edit cancelled, no changes made.\n" });

    expect(await value("edit", "cm/c", ".data.k")).toBe("2");
  });

  test("patch: json, merge and strategic each in its own way", async () => {
    await given("patch", configMap("patch", "c", { a: "1" }), pod("patch", "web"));
    const patch = (object: string, type: string, body: unknown) =>
      kubectl.run(["-n", "patch", "patch", object, `--type=${type}`, "-p", JSON.stringify(body)]);
    const guarded = (from: string, to: string) => [
      { op: "test", path: "/data/a", value: from },
      { op: "replace", path: "/data/a", value: to },
    ];

    expect((await patch("cm/c", "json", guarded("1", "2"))).stdout).toBe("configmap/c patched\n");
    expect((await patch("cm/c", "json", guarded("1", "3"))).code).toBe(1);
    expect(await value("patch", "cm/c", ".data")).toBe('{"a":"2"}');

    await patch("cm/c", "merge", { data: { a: null, b: "4" } });
    expect(await value("patch", "cm/c", ".data")).toBe('{"b":"4"}');
    expect((await patch("cm/c", "merge", { data: { b: "4" } })).stdout).toBe(
      "configmap/c patched (no change)\n",
    );

    await patch("pod/web", "strategic", { spec: { containers: [{ name: "side", image: "side:2" }] } });
    expect(await value("patch", "pod/web", ".spec.containers[*].image")).toBe("app:1 side:2");
  });

  test("what may not change is refused with its field", async () => {
    await kubectl.ok("create", "-f", kubectl.file("fixed", volume("fixed")));

    const said = await kubectl.refused(
      "patch",
      "pv",
      "fixed",
      "-p",
      '{"spec":{"csi":{"volumeHandle":"other"}}}',
    );

    expect(said).toMatch(
      /^The PersistentVolume "fixed" is invalid: spec\.persistentvolumesource: Forbidden: /,
    );
  });

  test("label and annotate set, refuse to overwrite, overwrite and take away", async () => {
    await given("labels", configMap("labels", "c", {}));
    const on = (...args: string[]) => kubectl.ok("-n", "labels", args[0]!, "cm", "c", ...args.slice(1));

    expect(await on("label", "tier=gold")).toBe("configmap/c labeled\n");
    expect(await kubectl.refused("-n", "labels", "label", "cm", "c", "tier=tin")).toContain(
      "--overwrite is false",
    );
    await on("label", "tier=tin", "--overwrite");
    await on("annotate", "example.com/note=kept");
    expect(await value("labels", "cm/c", ".metadata.labels.tier")).toBe("tin");
    expect(await value("labels", "cm/c", ".metadata.annotations")).toBe('{"example.com/note":"kept"}');

    expect(await on("label", "tier-")).toBe("configmap/c unlabeled\n");
    await on("annotate", "example.com/note-");
    expect(await value("labels", "cm/c", ".metadata.labels")).toBe("");
    expect(await value("labels", "cm/c", ".metadata.annotations")).toBe("");
  });

  test("a node is tainted, cordoned, uncordoned and drained", async () => {
    await kubectl.ok("create", "-f", kubectl.file("tainted", node("tainted")));
    const status = async () => cells(table(await kubectl.ok("get", "node", "tainted")), ["STATUS"]);

    expect(await kubectl.ok("taint", "node", "tainted", "disk=slow:NoSchedule")).toBe(
      "node/tainted tainted\n",
    );
    expect(await kubectl.refused("taint", "node", "tainted", "disk=slow:NoSchedule")).toContain(
      "already has disk taint(s) with same effect(s)",
    );
    expect(await value("default", "node/tainted", ".spec.taints")).toBe(
      '[{"effect":"NoSchedule","key":"disk","value":"slow"}]',
    );
    expect(await kubectl.ok("cordon", "tainted")).toBe("node/tainted cordoned\n");
    expect(await status()).toEqual([["Ready,SchedulingDisabled"]]);
    expect(await kubectl.ok("drain", "tainted")).toContain("node/tainted drained\n");

    await kubectl.ok("uncordon", "tainted");
    await kubectl.ok("taint", "node", "tainted", "disk-");
    expect(await status()).toEqual([["Ready"]]);
    expect(await value("default", "node/tainted", ".spec.taints[*].key")).toBe("");
  });
}
