import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { KINDS } from "../../apiserver/kinds.ts";
import { SAMPLES } from "../../apiserver/samples.testing.ts";
import { apiVersionOf } from "../../kube/object.ts";
import { faultsOf } from "./manifest-check.ts";
import { parseManifest } from "./manifest.ts";

const claim = (name: string, more = "") => `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}${more} }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`;

describe("a manifest", () => {
  test("is one step where every object is named once, in the order of the file", () => {
    const steps = parseManifest("f.yaml", `${claim("a")}---${claim("b")}---\n# nothing\n`);

    expect(steps.map((step) => step.map(({ label }) => label))).toEqual([
      ["persistentvolumeclaim/a", "persistentvolumeclaim/b"],
    ]);
  });

  test("begins a new step where it names an object again; another namespace is another object", () => {
    const text = [claim("a"), claim("a", ", namespace: other"), claim("a"), claim("b"), claim("a")].join(
      "---",
    );

    const steps = parseManifest("f.yaml", text);

    expect(steps.map((step) => step.map(({ object }) => object.metadata.namespace))).toEqual([
      ["default", "other"],
      ["default", "default"],
      ["default"],
    ]);
  });

  test("may be a List, and cluster-scoped objects get no namespace", () => {
    const text = `
kind: List
apiVersion: v1
items:
  - { apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: { name: fast }, provisioner: x }
`;

    const [[item] = []] = parseManifest("f.yaml", text);

    expect(item?.resource.plural).toBe("storageclasses");
    expect(item?.object.metadata).toEqual({ name: "fast" });
  });

  const BAD: readonly (readonly [string, string, RegExp])[] = [
    ["nothing in it", "# only words\n", /f\.yaml: holds no object/],
    ["broken YAML", "a: [1\n", /f\.yaml: line \d+, column \d+: is not valid YAML/],
    ["a list of words", "- a\n- b\n", /document 1 \(line 1\): is not an object/],
    ["no kind", `${claim("a")}---\napiVersion: v1\n`, /document 2 \(line \d+\): kind is missing/],
    ["no apiVersion", "kind: Pod\n", /apiVersion is missing/],
    ["no name", "apiVersion: v1\nkind: Pod\nmetadata: {}\n", /metadata\.name of this Pod is missing/],
    [
      "a kind nobody serves",
      "apiVersion: example.com/v1\nkind: Widget\nmetadata: { name: a }\n",
      /example\.com\/v1 Widget is not served/,
    ],
    ["aliases without end", `a: &a [x]\nb: &b [${"*a,".repeat(60)}]\nc: [${"*b,".repeat(60)}]\n`, /alias/i],
  ];
  for (const [name, text, message] of BAD)
    test(`with ${name} is refused: ${String(message)}`, () => {
      expect(() => parseManifest("f.yaml", text)).toThrow(message);
    });
});

const POD = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
    - name: web
      image: nginx
      volumeMounts:
        - { name: data, mountPath: /data }
  volumes:
    - name: data
      emptyDir: {}
`;

describe("a mistake is told with its line and field, before anything is started", () => {
  const ROWS: readonly (readonly [string, string, string, RegExp])[] = [
    [
      "a field that does not exist",
      "image: nginx",
      "imagee: nginx",
      /line 8: pod\/web: spec\.containers\[0\]\.imagee: there is no such field in a Pod/,
    ],
    [
      "a value of another type",
      "containers:\n    - name: web",
      "containers:\n    - name: [web]",
      /line 7: pod\/web: spec\.containers\[0\]\.name: .*cannot unmarshal array/,
    ],
    [
      "a value that is not allowed",
      "spec:\n",
      "spec:\n  restartPolicy: Sometimes\n",
      /line 6: pod\/web: spec\.restartPolicy: Unsupported value: "Sometimes"/,
    ],
    [
      "a quantity that is none",
      "emptyDir: {}",
      "emptyDir: { sizeLimit: much }",
      /line 13: pod\/web: spec\.volumes\[0\]\.emptyDir\.sizeLimit: /,
    ],
    [
      "something that is missing",
      "      image: nginx\n",
      "",
      /line 7: .*spec\.containers\[0\]\.image: Required value/,
    ],
    [
      "a mount of a volume that is not there",
      "{ name: data, mountPath",
      "{ name: dat, mountPath",
      /line 10: .*volumeMounts\[0\]\.name: Not found/,
    ],
    [
      "a name that is none",
      "name: web\nspec",
      "name: Web_1\nspec",
      /line 4: pod\/Web_1: metadata\.name: Invalid value/,
    ],
  ];
  test("the pod they are made from has none", () => {
    expect(parseManifest("f.yaml", POD)[0]).toHaveLength(1);
  });
  for (const [name, good, wrong, message] of ROWS)
    test(name, () => {
      const text = POD.replace(good, wrong);

      expect(text).not.toBe(POD);
      expect(() => parseManifest("f.yaml", text)).toThrow(message);
    });

  test("all of them at once, of all documents, a line each", () => {
    const text = `${POD.replace("image: nginx", "imagee: nginx")}---${claim("a").replace("1Gi", "lots")}---${claim("b")}`;

    expect(() => parseManifest("f.yaml", text)).toThrow(
      /f\.yaml: \n {2}line 8: pod\/web.*\n {2}line 18: persistentvolumeclaim\/a: spec\.resources\.requests\.storage/,
    );
  });

  test("an object of a List has its own lines", () => {
    const text = `kind: List
apiVersion: v1
items:
  - apiVersion: storage.k8s.io/v1
    kind: StorageClass
    metadata: { name: fast }
    provisioner: x
    reclaimPolicy: Burn
`;

    expect(() => parseManifest("f.yaml", text)).toThrow(/line 8: storageclass\/fast: reclaimPolicy: /);
  });

  test("a later change of the same object may leave out what it does not change", () => {
    const change = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: a }\n";
    const grown = `${change}spec: { resources: { requests: { storage: 2Gi } } }\n`;

    expect(parseManifest("f.yaml", `${claim("a")}${grown}`)).toHaveLength(2);
    expect(() => parseManifest("f.yaml", `${claim("a")}${change}spec: { size: 2Gi }\n`)).toThrow(
      /spec\.size/,
    );
  });

  test("numbers and words mean what they mean to kubectl", () => {
    const text = POD.replace("emptyDir: {}", "secret: { secretName: s, defaultMode: 0640, optional: yes }");

    const [[item] = []] = parseManifest("f.yaml", text);

    const { volumes } = (item?.object as unknown as { spec: { volumes: { secret: object }[] } }).spec;
    expect(volumes[0]?.secret).toEqual({ secretName: "s", defaultMode: 0o640, optional: true });
  });

  for (const file of readdirSync("examples").filter((name) => name.endsWith(".yaml")))
    test(`none is found in examples/${file}`, () => {
      expect(parseManifest(file, readFileSync(join("examples", file), "utf8")).length).toBeGreaterThan(0);
    });
});

describe("what the server takes is not refused before it is asked", () => {
  const sampled = KINDS.filter(({ kind }) => Object.hasOwn(SAMPLES, kind));
  test("there are samples of most kinds", () => expect(sampled.length).toBeGreaterThan(30));
  for (const kind of sampled)
    test(kind.kind, () => {
      const name = kind.kind === "IPAddress" ? "10.96.0.7" : "sample";
      const sample = {
        apiVersion: apiVersionOf(kind),
        kind: kind.kind,
        metadata: { name, ...(kind.namespaced && { namespace: "default" }) },
        ...SAMPLES[kind.kind],
      };

      expect(faultsOf(kind, sample, { isWhole: true })).toEqual([]);
    });
});
