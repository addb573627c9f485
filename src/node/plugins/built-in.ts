import type { NodePlugin } from "../plugin.ts";
import { createConfigMapPlugin } from "./config-map.ts";
import { createDownwardApiPlugin } from "./downward-api.ts";
import { createEmptyDirPlugin } from "./empty-dir.ts";
import { createFcPlugin } from "./fc.ts";
import { createGitRepoPlugin } from "./git-repo.ts";
import { createHostPathPlugin } from "./host-path.ts";
import { createImagePlugin } from "./image.ts";
import { createIscsiPlugin } from "./iscsi.ts";
import { createLocalPlugin, type LocalDeps } from "./local.ts";
import { createNfsPlugin } from "./nfs.ts";
import { createProjectedPlugin, type ProjectedDeps } from "./projected.ts";
import { createSecretPlugin } from "./secret.ts";

/** Every plugin of the node itself, in upstream's order; CSI and FlexVolume drivers come beside them. */
export function createBuiltInPlugins(deps: ProjectedDeps & LocalDeps): readonly NodePlugin[] {
  return [
    createEmptyDirPlugin(deps),
    createGitRepoPlugin(deps),
    createHostPathPlugin(deps),
    createNfsPlugin(deps),
    createSecretPlugin(deps),
    createIscsiPlugin(deps),
    createDownwardApiPlugin(deps),
    createFcPlugin(deps),
    createConfigMapPlugin(deps),
    createProjectedPlugin(deps),
    createLocalPlugin(deps),
    createImagePlugin(),
  ];
}
