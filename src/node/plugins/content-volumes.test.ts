import { describe, expect, test } from "vitest";
import { VolumeError } from "../errors.ts";
import type { NodePlugin, SetUpRequest } from "../plugin.ts";
import { createConfigMapPlugin } from "./config-map.ts";
import { createDownwardApiPlugin } from "./downward-api.ts";
import { createStage, inline, pod, POD_UID, ROOT, setUpOf, tearDownOf } from "./plugins.testing.ts";
import { createProjectedPlugin } from "./projected.ts";
import { createSecretPlugin } from "./secret.ts";

const CONFIG_MAP = `${ROOT}/pods/${POD_UID}/volumes/kubernetes.io~configmap/v`;
const SECRET = `${ROOT}/pods/${POD_UID}/volumes/kubernetes.io~secret/v`;
const PROJECTED = `${ROOT}/pods/${POD_UID}/volumes/kubernetes.io~projected/v`;
const DOWNWARD = `${ROOT}/pods/${POD_UID}/volumes/kubernetes.io~downward-api/v`;
const b64 = (text: string) => Buffer.from(text).toString("base64");

const configMap = (more: object = {}) => inline({ configMap: { name: "cm", defaultMode: 0o644, ...more } });
const secret = (more: object = {}) => inline({ secret: { secretName: "s", defaultMode: 0o644, ...more } });
const projected = (...sources: object[]) => inline({ projected: { sources, defaultMode: 0o644 } });

function given() {
  const stage = createStage();
  const { files } = stage.host;
  return {
    ...stage,
    configMap: createConfigMapPlugin(stage.deps),
    secret: createSecretPlugin(stage.deps),
    projected: createProjectedPlugin(stage.deps),
    downward: createDownwardApiPlugin(stage.deps),
    text: (path: string) => files.read(path),
    names: async (path: string) => ((await files.list(path)) ?? []).map(({ name }) => name),
    visible: async (path: string) =>
      ((await files.list(path)) ?? []).map(({ name }) => name).filter((name) => !name.startsWith("..")),
    versions: async (path: string) =>
      ((await files.list(path)) ?? []).map(({ name }) => name).filter((name) => /^\.\.\d/.test(name)),
    mode: async (path: string) => {
      const stat = await files.statTarget(path);
      return stat && { mode: stat.mode.toString(8), uid: stat.uid, gid: stat.gid };
    },
  };
}

async function failureOf(plugin: NodePlugin, request: SetUpRequest): Promise<VolumeError> {
  const error: unknown = await plugin.setUp(request).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(VolumeError);
  return error as VolumeError;
}

describe("content volumes", () => {
  test("scenario 114: an update switches one link, drops the old version and the links of keys that are gone", async () => {
    const world = given();
    world.configMaps.set("cm", { data: { a: "1", b: "2" } });
    await world.configMap.setUp(setUpOf(configMap()));
    const [first] = await world.versions(CONFIG_MAP);
    const before = world.host.log.length;
    expect(await world.host.files.readLink(`${CONFIG_MAP}/a`)).toBe("..data/a");
    expect(await world.host.files.readLink(`${CONFIG_MAP}/..data`)).toBe(first);
    expect(await world.text(`${CONFIG_MAP}/b`)).toBe("2");

    world.configMaps.set("cm", { data: { a: "new" } });
    await world.configMap.setUp(setUpOf(configMap(), { isRemount: true }));

    expect(await world.text(`${CONFIG_MAP}/a`)).toBe("new");
    expect(await world.visible(CONFIG_MAP)).toEqual(["a"]);
    expect(await world.versions(CONFIG_MAP)).toHaveLength(1);
    expect(await world.versions(CONFIG_MAP)).not.toContain(first);
    expect(world.host.log.slice(before).filter((line) => line.startsWith("files.rename"))).toHaveLength(1);
  });

  test("scenario 115: an item with a deep path is seen through one link at its top", async () => {
    const world = given();
    world.configMaps.set("cm", { data: { k: "deep", other: "-" } });

    await world.configMap.setUp(setUpOf(configMap({ items: [{ key: "k", path: "x/y/z", mode: 0o400 }] })));

    expect(await world.host.files.readLink(`${CONFIG_MAP}/x`)).toBe("..data/x");
    expect(await world.text(`${CONFIG_MAP}/x/y/z`)).toBe("deep");
    expect((await world.mode(`${CONFIG_MAP}/x/y/z`))?.mode).toBe("400");
    expect(await world.visible(CONFIG_MAP)).toEqual(["x"]);
  });

  test("scenario 116: an optional secret that is missing is an empty volume, and fills once it is there", async () => {
    const world = given();

    await world.secret.setUp(setUpOf(secret({ optional: true })));
    expect(await world.visible(SECRET)).toEqual([]);
    expect(await world.names(SECRET)).toContain("..data");

    world.secrets.set("ns/s", { data: { key: b64("hidden") } });
    await world.secret.setUp(setUpOf(secret({ optional: true }), { isRemount: true }));
    expect(await world.text(`${SECRET}/key`)).toBe("hidden");
  });

  test("a missing object or key that is not optional is waited for, and nothing is made on disk", async () => {
    const world = given();
    const of = { kind: "secret", namespace: "ns", name: "s" };

    const gone = await failureOf(world.secret, setUpOf(secret()));
    world.secrets.set("ns/s", { data: { a: b64("1") } });
    const noKey = await failureOf(world.secret, setUpOf(secret({ items: [{ key: "b", path: "b" }] })));

    expect(gone).toMatchObject({ outcome: "transient", blockedBy: [of], message: 'secrets "s" not found' });
    expect(noKey).toMatchObject({ blockedBy: [of], message: "references non-existent secret key: b" });
    expect(await world.host.files.stat(SECRET)).toBeUndefined();
    expect(world.host.log).toEqual([]);
  });

  for (const path of ["..evil", "/etc/passwd", "a/../../b", "", "..data/x", "a\0b", "x".repeat(256)])
    test(`scenario 117: the path ${JSON.stringify(path.slice(0, 16))} is refused before anything is published`, async () => {
      const world = given();
      world.configMaps.set("cm", { data: { k: "1" } });

      const failure = await failureOf(world.configMap, setUpOf(configMap({ items: [{ key: "k", path }] })));

      expect(failure.outcome).toBe("final");
      expect(world.host.log).toEqual([]);
    });

  test("scenario 118: unchanged content is not written again, and a link that somebody deleted comes back", async () => {
    const world = given();
    world.configMaps.set("cm", { data: { a: "1" }, binaryData: { b: b64("2") } });
    await world.configMap.setUp(setUpOf(configMap()));
    const versions = await world.versions(CONFIG_MAP);
    await world.host.files.removeFile(`${CONFIG_MAP}/a`);

    await world.configMap.setUp(setUpOf(configMap(), { isRemount: true }));

    expect(await world.versions(CONFIG_MAP)).toEqual(versions);
    expect(await world.text(`${CONFIG_MAP}/a`)).toBe("1");
    expect(await world.text(`${CONFIG_MAP}/b`)).toBe("2");
  });

  test("FIX 23: a mode or an owner that was changed by hand is put right", async () => {
    const world = given();
    world.configMaps.set("cm", { data: { a: "1" } });
    await world.configMap.setUp(setUpOf(configMap(), { fsGroup: 2_000 }));
    expect(await world.mode(`${CONFIG_MAP}/a`)).toEqual({ mode: "644", uid: 0, gid: 2_000 });
    await world.host.files.chmod(`${CONFIG_MAP}/a`, 0o777);

    await world.configMap.setUp(setUpOf(configMap(), { fsGroup: 2_000, isRemount: true }));

    expect(await world.mode(`${CONFIG_MAP}/a`)).toEqual({ mode: "644", uid: 0, gid: 2_000 });
  });

  test("scenario 119: of two sources with one path the later wins; one that fails leaves the old content", async () => {
    const world = given();
    world.configMaps.set("cm", { data: { same: "config" } });
    world.secrets.set("ns/s", { data: { same: b64("secret") } });
    const spec = projected({ configMap: { name: "cm" } }, { secret: { name: "s" } });
    await world.projected.setUp(setUpOf(spec));
    expect(await world.text(`${PROJECTED}/same`)).toBe("secret");

    world.configMaps.clear();
    world.secrets.set("ns/s", { data: { same: b64("newer") } });
    const failure = await failureOf(world.projected, setUpOf(spec, { isRemount: true }));

    expect(failure.message).toBe('configmaps "cm" not found');
    expect(await world.text(`${PROJECTED}/same`)).toBe("secret");
  });

  test("all sources of a projected volume that fail are named, with all that it waits for", async () => {
    const world = given();
    const spec = projected({ configMap: { name: "cm" } }, { secret: { name: "s" } });

    const failure = await failureOf(world.projected, setUpOf(spec));

    expect(failure.message).toBe('[configmaps "cm" not found, secrets "s" not found]');
    expect(failure.blockedBy.map(({ kind }) => kind)).toEqual(["config-map", "secret"]);
  });

  for (const [who, more, expected] of [
    ["nobody in particular", {}, { mode: "644", uid: 0, gid: 0 }],
    ["a group", { fsGroup: 2_000 }, { mode: "640", uid: 0, gid: 2_000 }],
    ["one user", { fsUser: 1_000 }, { mode: "600", uid: 1_000, gid: 0 }],
    ["both", { fsUser: 1_000, fsGroup: 2_000 }, { mode: "640", uid: 1_000, gid: 2_000 }],
  ] as const)
    test(`scenario 120: a token given to ${who} has mode ${expected.mode}`, async () => {
      const world = given();
      const spec = projected({
        serviceAccountToken: { path: "token", audience: "vault", expirationSeconds: 600 },
      });

      await world.projected.setUp(setUpOf(spec, more));

      expect(await world.mode(`${PROJECTED}/token`)).toEqual(expected);
      expect(world.tokens).toEqual([
        {
          namespace: "ns",
          serviceAccount: "sa",
          audiences: ["vault"],
          expirationSeconds: 600,
          pod: { name: "p1", uid: POD_UID },
        },
      ]);
    });

  test("scenario 121: a changed label shows after a refresh", async () => {
    const world = given();
    const items = [
      { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
      { path: "zone", fieldRef: { fieldPath: "metadata.labels['zone']" } },
    ];
    const spec = inline({ downwardAPI: { items, defaultMode: 0o644 } });
    await world.downward.setUp(setUpOf(spec, { pod: pod({}, { labels: { zone: "a", app: 'x"y' } }) }));
    expect(await world.text(`${DOWNWARD}/labels`)).toBe('app="x\\"y"\nzone="a"');

    const moved = pod({}, { labels: { zone: "b" } });
    await world.downward.setUp(setUpOf(spec, { pod: moved, isRemount: true }));

    expect(await world.text(`${DOWNWARD}/zone`)).toBe("b");
  });

  test("scenario 121: a mount point directly inside a content volume is made, one inside that is not", async () => {
    const world = given();
    world.configMaps.set("cm", { data: { a: "1" } });
    const volumeMounts = [
      { name: "v", mountPath: "/d" },
      { name: "e", mountPath: "/d/n" },
      { name: "f", mountPath: "/d/n/o" },
      { name: "g", mountPath: "/d/a" },
      { name: "h", mountPath: "/elsewhere" },
    ];

    await world.configMap.setUp(
      setUpOf(configMap(), { pod: pod({ containers: [{ name: "c", volumeMounts }] }), fsGroup: 7 }),
    );

    expect(await world.visible(CONFIG_MAP)).toEqual(["a", "n"]);
    expect(await world.names(`${CONFIG_MAP}/n`)).toEqual([]);
    expect(await world.text(`${CONFIG_MAP}/a`)).toBe("1");
  });

  test("scenario 122: a refresh that runs out of space leaves the version before, and nothing half written", async () => {
    const world = given();
    world.secrets.set("ns/s", { data: { a: b64("old"), b: b64("old") } });
    await world.secret.setUp(setUpOf(secret()));
    world.secrets.set("ns/s", { data: { a: b64("new"), b: b64("new") } });
    world.host.fail("files.writeFile", { code: "NoSpace" });

    const failure = await failureOf(world.secret, setUpOf(secret(), { isRemount: true }));

    expect(failure.outcome).toBe("final");
    expect(await world.text(`${SECRET}/b`)).toBe("old");
    expect(await world.versions(SECRET)).toHaveLength(1);
    expect((await world.host.mounts.table()).at(SECRET)?.type).toBe("tmpfs");

    await world.secret.setUp(setUpOf(secret(), { isRemount: true }));
    expect(await world.text(`${SECRET}/b`)).toBe("new");
  });

  test("a first set-up that fails takes down what it made; where it cannot, the volume is uncertain", async () => {
    const world = given();
    world.secrets.set("ns/s", { data: { a: b64("1") } });
    world.host.fail("files.writeFile", { code: "NoSpace", times: 2 });

    const clean = await failureOf(world.secret, setUpOf(secret()));
    expect(clean.outcome).toBe("final");
    expect(await world.host.files.stat(SECRET)).toBeUndefined();
    expect(await world.host.mounts.isMountPoint(SECRET)).toBe(false);

    world.host.fail("mounts.unmount", { code: "Busy" });
    const stuck = await failureOf(world.secret, setUpOf(secret()));
    expect(stuck.outcome).toBe("uncertain");
  });

  test("scenario 123: what a crash left half done is cleared away by the next refresh", async () => {
    const world = given();
    const { files } = world.host;
    world.configMaps.set("cm", { data: { a: "1" } });
    await world.configMap.setUp(setUpOf(configMap()));
    await files.makeDirectories(`${CONFIG_MAP}/..2020_01_01_00_00_00.7`, 0o755);
    await files.symlink("..2020_01_01_00_00_00.7", `${CONFIG_MAP}/..data_tmp`);
    await files.symlink("..data/gone", `${CONFIG_MAP}/gone`);

    world.configMaps.set("cm", { data: { a: "2" } });
    await world.configMap.setUp(setUpOf(configMap(), { isRemount: true }));

    expect(await world.text(`${CONFIG_MAP}/a`)).toBe("2");
    expect(await world.names(CONFIG_MAP)).toHaveLength(3); // The version, ..data, a.
  });

  for (const elsewhere of ["..", "/etc", "..missing"])
    test(`a ..data that points at ${elsewhere} is replaced, and nothing is read or removed there`, async () => {
      const world = given();
      const { files } = world.host;
      world.configMaps.set("cm", { data: { a: "1" } });
      await world.configMap.setUp(setUpOf(configMap()));
      await files.removeFile(`${CONFIG_MAP}/..data`);
      await files.symlink(elsewhere, `${CONFIG_MAP}/..data`);

      await world.configMap.setUp(setUpOf(configMap(), { isRemount: true }));

      expect(await world.text(`${CONFIG_MAP}/a`)).toBe("1");
      expect(await world.names(CONFIG_MAP)).toHaveLength(3);
    });

  test("a kill at any change of a refresh: the next attempt ends where an undisturbed one does", async () => {
    for (const when of ["before", "after"] as const)
      for (let change = 0; ; change++) {
        const world = given();
        world.configMaps.set("cm", { data: { a: "1", b: "1" } });
        await world.configMap.setUp(setUpOf(configMap(), { fsGroup: 9 }));
        world.configMaps.set("cm", { data: { a: "2", c: "2" } });
        world.host.dieAt(change, when);
        void world.configMap.setUp(setUpOf(configMap(), { fsGroup: 9, isRemount: true }));
        await world.scheduler.runFor(1);
        if (!world.host.isDead) break;
        // Whatever moment it was, a reader sees one version or the other, never a mixture.
        const seen = await world.machine.files.read(`${CONFIG_MAP}/..data/a`);
        expect(["1", "2"]).toContain(seen);
        expect(await world.machine.files.read(`${CONFIG_MAP}/..data/c`)).toBe(seen === "2" ? "2" : undefined);

        const next = createConfigMapPlugin({ ...world.deps, host: world.machine });
        await next.setUp(setUpOf(configMap(), { fsGroup: 9, mayBeThere: true }));

        const names = (await world.machine.files.list(CONFIG_MAP)) ?? [];
        expect(names.map(({ name }) => name).filter((name) => !/^\.\.\d/.test(name))).toEqual([
          "..data",
          "a",
          "c",
        ]);
        expect(names).toHaveLength(4);
        await next.tearDown(tearDownOf(configMap()));
        expect(await world.machine.files.stat(CONFIG_MAP)).toBeUndefined();
        expect(change).toBeLessThan(100);
      }
  });

  for (const step of ["first set-up", "tear-down"] as const)
    test(`a kill at any change of the ${step}: the next agent completes both and leaves nothing`, async () => {
      let kills = 0;
      for (const when of ["before", "after"] as const)
        for (let change = 0; ; change++) {
          const world = given();
          world.configMaps.set("cm", { data: { a: "1" } });
          if (step === "tear-down") await world.configMap.setUp(setUpOf(configMap()));
          world.host.dieAt(change, when);
          void (step === "tear-down"
            ? world.configMap.tearDown(tearDownOf(configMap()))
            : world.configMap.setUp(setUpOf(configMap())));
          await world.scheduler.runFor(1);
          if (!world.host.isDead) break;
          kills++;

          const next = createConfigMapPlugin({ ...world.deps, host: world.machine });
          if (step === "first set-up") {
            await next.setUp(setUpOf(configMap()));
            expect(await world.machine.files.read(`${CONFIG_MAP}/..data/a`)).toBe("1");
          }
          await next.tearDown(tearDownOf(configMap()));

          expect(await world.machine.files.stat(CONFIG_MAP)).toBeUndefined();
          expect(change).toBeLessThan(100);
        }
      // A tear-down is two changes.
      expect(kills).toBeGreaterThanOrEqual(4);
    });

  test("tear-down removes files, memory and marks, is fine twice, and forgets the pod's tokens", async () => {
    const world = given();
    const spec = projected({ serviceAccountToken: { path: "token" } });
    await world.projected.setUp(setUpOf(spec));
    expect((await world.host.mounts.table()).at(PROJECTED)?.type).toBe("tmpfs");

    await world.projected.tearDown(tearDownOf(spec));
    await world.projected.tearDown(tearDownOf(spec));

    expect(await world.host.files.stat(PROJECTED)).toBeUndefined();
    expect((await world.host.mounts.table()).points).toHaveLength(1);
    expect(world.forgotten).toContain(POD_UID);
  });

  test("sources that this agent does not have say so", async () => {
    const world = given();

    const certificate = await failureOf(
      world.projected,
      setUpOf(projected({ podCertificate: { signerName: "x" } })),
    );
    const bundle = await failureOf(
      world.projected,
      setUpOf(projected({ clusterTrustBundle: { path: "ca" } })),
    );

    expect(certificate).toMatchObject({ kind: "not-supported" });
    expect(certificate.message).toContain("podCertificate");
    expect(bundle.message).toBe("ClusterTrustBundle projection requires either name or signerName to be set");
  });
});
