import { specName } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { NodePlugin } from "../plugin.ts";
import type { Paths } from "../paths.ts";
import { inlineSource, PLAIN_TRAITS } from "./sources.ts";

const GIT_REPO = "kubernetes.io/git-repo";

/**
 * Refused, always: it ran git as root on whatever a pod named, hooks included. Upstream locked it off for that. Claiming
 * the spec makes the refusal a sentence that says what to do, instead of "no plugin".
 */
export function createGitRepoPlugin({ paths }: { readonly paths: Paths }): NodePlugin {
  return {
    name: GIT_REPO,
    canSupport: (spec) => inlineSource(spec, "gitRepo") !== undefined,
    volumeName: (spec) => specName(spec) || undefined,
    traits: () => PLAIN_TRAITS,
    metricName: () => GIT_REPO,
    mountPath: (spec, podUid) => paths.podVolume(podUid, GIT_REPO, specName(spec)),
    async setUp({ spec }) {
      throw new VolumeError(
        "final",
        `volume ${specName(spec)}: gitRepo volumes are disabled; use an init container that clones into an emptyDir`,
        { kind: "not-supported" },
      );
    },
    tearDown: async () => undefined,
    reconstruct: async () => undefined,
  };
}
