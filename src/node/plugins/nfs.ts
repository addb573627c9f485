import type { Logger } from "../../base/log.ts";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";
import type { Paths } from "../paths.ts";
import type { NodePlugin } from "../plugin.ts";
import { hostStep } from "./failures.ts";
import { mountOnce } from "./mount-point.ts";
import { isReadOnly, joinOptions, mountOptionsOf, PLAIN_TRAITS, sourceOf } from "./sources.ts";
import { filesystemStats } from "./stats.ts";

const NFS = "kubernetes.io/nfs";

/** A server that is gone does not let go within a minute, and never will: after that the mount is forced off. */
const UNMOUNT_MS_MAX = 60_000;

/** An export of a server, mounted anew for each pod. Owners are the server's: no group is applied. */
export function createNfsPlugin(deps: {
  readonly host: Host;
  readonly paths: Paths;
  readonly log: Logger;
}): NodePlugin {
  const { host, paths } = deps;
  const source = (spec: VolumeSpec) => sourceOf(spec, "nfs");
  const target = (podUid: string, name: string) => paths.podVolume(podUid, NFS, name);

  return {
    name: NFS,
    canSupport: (spec) => source(spec) !== undefined,
    volumeName: (spec) => volumeName(source(spec)),
    traits: () => ({ ...PLAIN_TRAITS, mountOptions: true }),
    metricName: () => NFS,
    mountPath: (spec, podUid) => target(podUid, specName(spec)),
    async setUp({ spec, podUid }) {
      const { server = "", path = "" } = source(spec) ?? {};
      if (server === "" || path === "")
        throw new VolumeError("final", `nfs volume ${specName(spec)}: server and path must be set`);
      const readOnly = isReadOnly(spec, source(spec));
      const at = target(podUid, specName(spec));
      const share = `${server.includes(":") && !server.startsWith("[") ? `[${server}]` : server}:${path}`;
      const options = joinOptions(readOnly ? ["ro"] : [], mountOptionsOf(spec));
      await mountOnce(deps, { target: at, what: `mount ${share}` }, () =>
        host.mounts.mount({ source: share, target: at, type: "nfs", options }),
      );
      return { readOnly, managed: false, selinuxRelabel: false };
    },
    tearDown: ({ podUid, specName: name }) =>
      hostStep(`unmount volume ${name}`, () =>
        host.mounts.cleanUp(target(podUid, name), { timeoutMs: UNMOUNT_MS_MAX, force: true }),
      ),
    stats: (request) => filesystemStats(host, request),
    async reconstruct({ specName: name, path }) {
      const share = (await host.mounts.table()).at(path)?.source ?? "";
      const [, server = "", exported = ""] = /^\[?([^\]]*?)\]?:(\/.*)$/.exec(share) ?? [];
      return { spec: { kind: "inline", volume: { name, nfs: { server, path: exported } } } };
    },
  };
}

function volumeName(
  source: { readonly server?: string; readonly path?: string } | undefined,
): string | undefined {
  return source?.server && source.path ? `${source.server}/${source.path}` : undefined;
}
