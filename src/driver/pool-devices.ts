import type { Host, LoopDevice } from "./host.ts";

/**
 * The loop devices of a pool's images, whoever attached them; those stacked on others come first, so that they can be let go
 * in this order. Matched by identity, never by a name that may have been reused.
 */
export async function devicesOfPool(
  { files, loops }: Pick<Host, "files" | "loops">,
  stateDir: string,
): Promise<readonly LoopDevice[]> {
  const images = await identities(files, await imagesOf(files, stateDir));
  const all = await loops.list();
  const devices = all.filter(({ backing }) => images.has(backing));
  const nodes = await identities(
    files,
    devices.map(({ path }) => path),
  );
  return [...all.filter(({ backing }) => nodes.has(backing)), ...devices];
}

async function imagesOf(files: Host["files"], root: string): Promise<readonly string[]> {
  const below = async (directory: string) =>
    (await files.list(directory)).map((name) => `${directory}/${name}`);
  const ephemeral = await Promise.all((await below(`${root}/ephemeral`)).map(below));
  const folders = [
    ...(await below(`${root}/volumes`)),
    ...(await below(`${root}/snapshots`)),
    ...ephemeral.flat(),
  ];
  return folders.map((folder) => `${folder}/image.raw`);
}

async function identities(files: Host["files"], paths: readonly string[]): Promise<ReadonlySet<string>> {
  const found = await Promise.all(paths.map((path) => files.stat(path)));
  return new Set(found.flatMap((stat) => stat?.identity ?? []));
}
