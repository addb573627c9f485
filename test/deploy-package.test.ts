import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

/** What carries the manifests of deploy/ to a cluster: the Dockerfile, the overlays and the Helm chart. */

const ROOT = resolve(import.meta.dirname, "..");
const DEPLOY = join(ROOT, "deploy");
const COMPONENTS = ["attacher", "controller", "driver", "node"];
const read = (path: string) => readFileSync(join(DEPLOY, path), "utf8");
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };

interface Kustomization {
  readonly resources: readonly string[];
  readonly components?: readonly string[];
  readonly images: readonly { readonly name: string; readonly newTag: string }[];
}

describe("the Dockerfile", () => {
  const lines = read("Dockerfile")
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .map((line) => line.split(/\s+/));
  const stages = lines.filter(([word]) => word === "FROM").map((words) => words.at(-1));
  const copies = lines.filter(([word]) => word === "COPY").map((words) => words.slice(1));
  const fromContext = copies
    .filter(([first]) => !first?.startsWith("--"))
    .flatMap((words) => words.slice(0, -1));

  test("copies only what is there, and its ignore file lets through exactly that", () => {
    const letThrough = [...read("Dockerfile.dockerignore").matchAll(/^!(.+)$/gm)].map(([, path]) => path);

    expect(fromContext.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(letThrough.sort()).toEqual([...new Set(fromContext)].sort());
  });

  test("copies between stages that exist, and ends with the one that runs as the user of the manifests", () => {
    const from = copies.flatMap(([first]) => /^--from=(.*)$/.exec(first ?? "")?.[1] ?? []);
    const user = lines.findLast(([word]) => word === "USER")?.[1];

    expect(from.filter((stage) => !stages.includes(stage))).toEqual([]);
    expect(stages.at(-1)).toBe("mooring");
    expect(read("controller/deployment.yaml")).toContain(`runAsUser: ${user?.split(":")[0]}\n`);
  });

  test("leaves out of dist what a package leaves out", () => {
    const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { files: string[] };

    expect(files.filter((path) => path.startsWith("!"))).toEqual(["!dist/src/**/*.map"]);
    expect(read("Dockerfile")).toContain("find dist -name '*.map' -delete");
  });
});

describe("overlays", () => {
  const folders = readdirSync(join(DEPLOY, "overlays"));
  const overlays = folders.map((folder) => ({
    folder,
    ...(parse(read(`overlays/${folder}/kustomization.yaml`)) as Kustomization),
  }));

  test("are made of the manifests of the processes, and every process is in one", () => {
    const used = overlays.flatMap(({ folder, resources, components = [] }) =>
      [...resources, ...components].map((path) => relative(DEPLOY, join(DEPLOY, "overlays", folder, path))),
    );

    expect(used.filter((path) => !existsSync(join(DEPLOY, path)))).toEqual([]);
    expect(COMPONENTS.filter((component) => !used.includes(component))).toEqual([]);
  });

  test("run the version of this package", () => {
    expect(overlays.flatMap(({ images }) => images.map(({ name, newTag }) => [name, newTag]))).toEqual(
      folders.map(() => ["mooring", version]),
    );
  });

  test("say where the built-in controller is switched off, in the one that takes its place", () => {
    expect(read("overlays/control-plane/kustomization.yaml")).toContain(
      "--controllers=*,-persistentvolume-attach-detach-controller",
    );
  });
});

describe("the Helm chart", () => {
  const chart = "helm/mooring";

  test("has the version of this package", () => {
    expect(parse(read(`${chart}/Chart.yaml`))).toMatchObject({ version, appVersion: version });
  });

  test("has no manifests of its own: links to those of the processes, each used by a template", () => {
    const links = readdirSync(join(DEPLOY, chart, "manifests"));

    expect(links.sort()).toEqual(COMPONENTS);
    for (const link of links) {
      const path = join(DEPLOY, chart, "manifests", link);
      expect(lstatSync(path).isSymbolicLink()).toBe(true);
      expect(relative(DEPLOY, realpathSync(path))).toBe(link);
      expect(read(`${chart}/templates/${link}.yaml`)).toContain(`"component" "${link}"`);
    }
  });

  test("every value has a place in the schema, and the schema knows no other", () => {
    const schema = JSON.parse(read(`${chart}/values.schema.json`)) as Schema;

    expect(pathsOf(parse(read(`${chart}/values.yaml`))).sort()).toEqual(
      schemaPaths(schema, schema)
        .filter((path) => path !== "global")
        .sort(),
    );
  });
});

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly definitions?: Readonly<Record<string, Schema>>;
}

/** `image.tag`; a list or an empty object is a value. */
function pathsOf(value: unknown, prefix = ""): string[] {
  const isLeaf = typeof value !== "object" || value === null || Array.isArray(value);
  if (isLeaf || Object.keys(value).length === 0) return [prefix];
  return Object.entries(value).flatMap(([key, child]) =>
    pathsOf(child, prefix === "" ? key : `${prefix}.${key}`),
  );
}

function schemaPaths(root: Schema, at: Schema, prefix = ""): string[] {
  const schema = at.$ref === undefined ? at : root.definitions?.[at.$ref.replace("#/definitions/", "")];
  if (schema?.properties === undefined) return [prefix];
  expect([prefix, schema.additionalProperties]).toEqual([prefix, false]);
  return Object.entries(schema.properties).flatMap(([key, child]) =>
    schemaPaths(root, child, prefix === "" ? key : `${prefix}.${key}`),
  );
}
