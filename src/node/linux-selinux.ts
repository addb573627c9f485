import type { SELinuxOptions } from "kubernetes-types/core/v1.js";
import type { Logger } from "../base/log.ts";
import type { Host } from "./host.ts";
import type { Paths } from "./paths.ts";
import { NO_SELINUX, type Selinux } from "./steps/selinux.ts";

/** What drivers in containers put there they may read again. */
const PLUGINS_LABEL = "system_u:object_r:container_file_t:s0";
const CHCON_MS = 10_000;

/**
 * SELinux of this machine, read once: whether the kernel has it, and which label the policy gives to files of containers.
 * A machine without it gets `NO_SELINUX`, with which every rule about labels is inert.
 */
export async function readSelinux({
  host,
  log,
}: {
  readonly host: Host;
  readonly log: Logger;
}): Promise<Selinux> {
  if ((await host.files.read("/sys/fs/selinux/enforce")) === undefined) return NO_SELINUX;
  const type = /^\s*SELINUXTYPE\s*=\s*([\w.-]+)/m.exec(
    (await host.files.read("/etc/selinux/config")) ?? "",
  )?.[1];
  const contexts = type && (await host.files.read(`/etc/selinux/${type}/contexts/lxc_contexts`));
  const label = /^\s*file\s*=\s*"?([^"\s]+)"?/m.exec(contexts ?? "")?.[1];
  if (label === undefined)
    log.warn("SELinux is on, but its policy names no label for files of containers", {
      policy: type ?? "unknown",
    });
  return { enabled: true, fileLabel: (options) => fileLabel(label, options) };
}

/**
 * The policy's label with the user and the level of the options. Without a level the runtime picks one at random for each
 * container, which nobody can know in advance: such a volume is left to the runtime.
 */
export function fileLabel(policy: string | undefined, { user, level }: SELinuxOptions): string | undefined {
  if (!level) return "";
  const [policyUser, role, type] = policy?.split(":") ?? [];
  if (policyUser === undefined || role === undefined || type === undefined) return undefined;
  const parts = [user || policyUser, role, type, level];
  // It becomes a mount option: a quote or a space would end it.
  return parts.every((part) => /^[\w.:,-]+$/.test(part)) ? parts.join(":") : undefined;
}

/** Directories that drivers share with the node. A failure is only told: drivers then need rights of their own. */
export async function labelPluginDirectories(
  { host, log, selinux }: { readonly host: Host; readonly log: Logger; readonly selinux: Selinux },
  { plugins, registry }: { readonly plugins: Paths["plugins"]; readonly registry: string },
): Promise<void> {
  if (!selinux.enabled) return;
  for (const path of [plugins, registry]) {
    const run = await host.programs
      .run("chcon", [PLUGINS_LABEL, path], { timeoutMs: CHCON_MS })
      .catch((error: unknown) => ({ exitCode: 1, stderr: String(error) }));
    if (run.exitCode !== 0)
      log.warn("SELinux label not set", { path, label: PLUGINS_LABEL, reason: run.stderr });
  }
}
