import { describe, expect, test } from "vitest";
import { secrets } from "../../kube/api/secret.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

/** What no pod and no driver may reach, of the whole agent: secrets, other people's files, directories of other pods. */

const SECRET = "correct-horse-battery";
const HIDDEN = [SECRET, Buffer.from(SECRET).toString("base64"), "token-1"];

interface Found {
  readonly path: string;
  readonly kind: string;
  readonly mode: number;
}

/** Everything below a directory, links not followed; `skip` is not looked into. */
async function walk(world: NodeWorld, path: string, skip: ReadonlySet<string> = new Set()): Promise<Found[]> {
  const { files } = world.machine;
  const stat = await files.stat(path);
  if (stat === undefined) return [];
  const here = { path, kind: stat.kind, mode: stat.mode };
  if (stat.kind !== "directory" || skip.has(path)) return [here];
  const below = await Promise.all(
    ((await files.list(path)) ?? []).map(({ name }) => walk(world, `${path}/${name}`, skip)),
  );
  return [here, ...below.flat()];
}

async function givenSecrets(): Promise<NodeWorld> {
  const world = await given({
    builtIn: true,
    driver: { attachRequired: false, volumeLifecycleModes: ["Persistent", "Ephemeral"] },
    volumes: { v: {} },
    started: false,
  });
  const data = { key: Buffer.from(SECRET).toString("base64") };
  await world.client.create(secrets, { metadata: { namespace: "default", name: "s" }, data });
  world.start();
  const sources = [
    { secret: { name: "s" } },
    { serviceAccountToken: { path: "token", expirationSeconds: 3_600 } },
  ];
  await world.startPod("web", {
    uses: ["v"],
    inline: [
      { name: "plain", secret: { secretName: "s", defaultMode: 0o400 } },
      { name: "mixed", projected: { defaultMode: 0o400, sources } },
      { name: "scratch", csi: { driver: "csi.example.com", nodePublishSecretRef: { name: "s" } } },
      { name: "space", emptyDir: {} },
    ],
  });
  return world;
}

describe("secrets", () => {
  test("are in memory alone: no file outside a tmpfs, no log line and no event has one, also when steps fail", async () => {
    const world = await givenSecrets();
    world.driver.fail("publish", "INTERNAL", { times: 2 });
    await world.runFor(3_000);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(5);

    const table = await world.machine.mounts.table();
    const inMemory = new Set(table.points.filter(({ type }) => type === "tmpfs").map(({ path }) => path));
    const files = (await walk(world, NODE_ROOT, inMemory)).filter(({ kind }) => kind === "file");
    const texts = await Promise.all(files.map(({ path }) => world.machine.files.read(path)));
    const said = [...texts, ...world.told(), ...world.log.map((line) => JSON.stringify(line, asText))];

    expect(files.length).toBeGreaterThan(3);
    for (const hidden of HIDDEN) expect(said.filter((text) => text?.includes(hidden))).toEqual([]);
    // They are somewhere: a search that finds nothing anywhere would prove nothing.
    const plain = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~secret/plain/key`;
    expect(await world.machine.files.read(plain)).toBe(SECRET);
  });

  test("every directory on the way to a volume is the agent's own: nobody else may enter or list", async () => {
    const world = await givenSecrets();
    await world.runFor(1_000);
    const uid = world.uidOf("web");

    const volumes = /\/pods\/[^/]+\/volumes\/[^/]+\/[^/]+$/;
    const made = (await walk(world, NODE_ROOT)).filter(
      ({ path, kind }) => kind === "directory" && path !== NODE_ROOT,
    );
    const onTheWay = made.filter(
      ({ path }) => !volumes.test(path) && !/\/volumes\/[^/]+\/[^/]+\//.test(path),
    );
    const open = onTheWay.filter(({ mode }) => (mode & 0o007) !== 0).map(({ path }) => path);

    expect(onTheWay.map(({ path }) => path)).toContain(`${NODE_ROOT}/pods/${uid}/volumes`);
    // Made by whoever starts the agent, as are the first two levels here.
    expect(open.filter((path) => path.startsWith(`${NODE_ROOT}/pods/`) || path.includes("/mooring"))).toEqual(
      [],
    );
    const records = (await walk(world, `${NODE_ROOT}/mooring`)).filter(({ kind }) => kind === "file");
    expect(records.length).toBeGreaterThan(0);
    expect(records.filter(({ mode }) => mode !== 0o600)).toEqual([]);
  });
});

function asText(_key: string, value: unknown): unknown {
  return value instanceof Error ? `${value.message} ${JSON.stringify(value.cause, asText)}` : value;
}

describe("links that lead elsewhere", () => {
  async function givenVictim(): Promise<NodeWorld> {
    const world = await given({ builtIn: true, started: false });
    const { files } = world.machine;
    await files.makeDirectories("/victim/kubernetes.io~empty-dir/data", 0o755);
    await files.writeFile("/victim/kubernetes.io~empty-dir/data/precious", Buffer.from("x"), 0o644);
    await files.makeDirectories(`${NODE_ROOT}/pods`, 0o750);
    return world;
  }

  const isWhole = (world: NodeWorld) =>
    world.machine.files.read("/victim/kubernetes.io~empty-dir/data/precious").then((text) => text === "x");

  test("in the place of a pod's directory: not taken for one", async () => {
    const world = await givenVictim();
    await world.machine.files.symlink("/victim", `${NODE_ROOT}/pods/u9`);

    world.start();
    await world.runFor(700_000);

    expect(await isWhole(world)).toBe(true);
    expect(world.manager.report().volumes).toEqual([]);
  });

  test("in the place of a volume's directory: the link goes, what it points at stays", async () => {
    const world = await givenVictim();
    const directory = `${NODE_ROOT}/pods/u9/volumes/kubernetes.io~empty-dir`;
    await world.machine.files.makeDirectories(directory, 0o750);
    await world.machine.files.symlink("/victim/kubernetes.io~empty-dir/data", `${directory}/v`);

    world.start();
    await world.runFor(700_000);

    expect(await isWhole(world)).toBe(true);
    expect(await world.machine.files.stat(`${directory}/v`)).toBeUndefined();
  });

  test("left by a pod inside its own volume: the volume goes, what they point at stays", async () => {
    const world = await givenVictim();
    world.start();
    await world.startPod("web", { inline: [{ name: "space", emptyDir: {} }] });
    await world.settle();
    const root = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~empty-dir/space`;
    await world.machine.files.symlink("/victim", `${root}/link`);
    await world.machine.files.makeDirectories(`${root}/deep`, 0o777);
    await world.machine.files.symlink("/victim/kubernetes.io~empty-dir", `${root}/deep/link`);

    await world.removePod("web");
    await world.runFor(2_000);

    expect(await world.machine.files.stat(root)).toBeUndefined();
    expect(await isWhole(world)).toBe(true);
  });
});
