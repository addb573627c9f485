import type { Host, LoopDevice } from "./host.ts";

/** Matched by identity, never by a name that may have been reused. */
export interface PoolDevices {
  /** Of the images themselves, whoever attached them. */
  readonly images: readonly LoopDevice[];
  /** Of those devices: read-only ones for readers, and those by which a kubelet holds a raw block volume. */
  readonly stacked: readonly LoopDevice[];
}

export async function devicesOfPool(
  { files, loops }: Pick<Host, "files" | "loops">,
  stateDir: string,
): Promise<PoolDevices> {
  const imageFiles = await identities(files, await imagesOf(files, stateDir));
  const all = await loops.list();
  const images = all.filter(({ backing }) => imageFiles.has(backing));
  const nodes = await identities(
    files,
    images.map(({ path }) => path),
  );
  return { images, stacked: all.filter(({ backing }) => nodes.has(backing)) };
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
