// How kubectl creates: files as JSON, its own commands as protobuf.
import { expect, test } from "vitest";
import { claim, configMap, storageClass } from "./kubectl-objects.ts";
import type { Suite } from "./kubectl-suite.ts";

export function creates({ kubectl, given, value }: Suite): void {
  test("create -f says what it created, and says no the second time", async () => {
    const file = kubectl.file("made", configMap("default", "made", { a: "1" }), storageClass("made"));

    expect(await kubectl.ok("create", "-f", file)).toBe(
      "configmap/made created\nstorageclass.storage.k8s.io/made created\n",
    );
    expect(await kubectl.refused("create", "-f", file)).toMatch(
      /\(AlreadyExists\): .*configmaps "made" already exists\n.*storageclasses.storage.k8s.io "made" already exists/,
    );
  });

  test("create -f takes a List, which kubectl validates by the old document", async () => {
    const items = [configMap("default", "listed", { a: "1" }), storageClass("listed")];
    const file = kubectl.file("listed", { apiVersion: "v1", kind: "List", items });

    expect(await kubectl.ok("create", "-f", file)).toBe(
      "configmap/listed created\nstorageclass.storage.k8s.io/listed created\n",
    );
  });

  test("create ns, configmap, secret and sa, whose bodies are protobuf, keep what they say", async () => {
    expect(await kubectl.ok("create", "namespace", "proto")).toBe("namespace/proto created\n");
    await kubectl.ok("-n", "proto", "create", "configmap", "c", "--from-literal=a=1", "--from-literal=b=");
    await kubectl.ok("-n", "proto", "create", "secret", "generic", "s", "--from-literal=password=example");
    await kubectl.ok("-n", "proto", "create", "serviceaccount", "builder");

    expect(await value("proto", "ns/proto", ".spec.finalizers[0]")).toBe("kubernetes");
    expect(await value("proto", "ns/proto", ".metadata.labels")).toBe(
      '{"kubernetes.io/metadata.name":"proto"}',
    );
    expect(await value("proto", "cm/c", ".data")).toBe('{"a":"1","b":""}');
    expect(await value("proto", "secret/s", ".type")).toBe("Opaque");
    expect(await value("proto", "secret/s", ".data.password")).toBe(
      Buffer.from("example").toString("base64"),
    );
    expect(await kubectl.ok("-n", "proto", "get", "sa", "builder", "-o", "name")).toBe(
      "serviceaccount/builder\n",
    );
  });

  test("a misspelt field is refused with its path, however it is sent", async () => {
    await given("misspelt");
    const typo = {
      ...claim("misspelt", "typo"),
      spec: { accessModes: ["ReadWriteOnce"], resources: { request: {} } },
    };
    const file = kubectl.file("typo", typo);

    for (const command of [["create"], ["apply"]]) {
      expect(await kubectl.refused(...command, "-f", file)).toContain(
        'strict decoding error: unknown field "spec.resources.request"',
      );
    }
    expect(await kubectl.refused("apply", "--server-side", "-f", file)).toContain(
      ".spec.resources.request: field not declared in schema",
    );
    expect(await kubectl.ok("-n", "misspelt", "get", "pvc", "-o", "name")).toBe("");
  });

  test("--dry-run=server shows the object with its defaults and keeps nothing", async () => {
    await given("dry");

    const flags = ["--dry-run=server", "-o", "jsonpath={.spec.volumeMode}"];
    const mode = await kubectl.ok("create", ...flags, "-f", kubectl.file("dry-claim", claim("dry", "data")));

    expect(mode).toBe("Filesystem");
    expect(await kubectl.ok("-n", "dry", "get", "pvc", "-o", "name")).toBe("");
  });
}
