import { join } from "node:path";
import type { Host } from "../host.ts";
import { sha256, type Paths } from "../paths.ts";
import { parseIscsiDirectory, type IscsiIdentity } from "./iscsi-identity.ts";

/**
 * How a volume was connected, kept for the day it is disconnected. The kubelet keeps `iscsi.json` in the volume's own
 * directory, where the mount hides it while it is needed most, and without the portal as it was written; so the same is
 * kept once more among the agent's own records.
 */
export interface IscsiRecords {
  save(directory: string, identity: IscsiIdentity, volume: string): Promise<void>;
  /** From the record, else from the name of the directory, which knows one portal. */
  load(directory: string): Promise<IscsiIdentity | undefined>;
  remove(directory: string): Promise<void>;
}

export function createIscsiRecords(
  { host, paths }: { readonly host: Host; readonly paths: Paths },
  base: string,
): IscsiRecords {
  const folder = join(paths.journal, "iscsi");
  const fileOf = (directory: string) => join(folder, `${sha256(directory)}.json`);

  async function readIn(directory: string, path: string): Promise<IscsiIdentity | undefined> {
    const fields = fieldsOf(await host.files.read(path));
    const named = parseIscsiDirectory(relative(base, directory));
    if (named === undefined) return undefined;
    const portals = listOf(fields["Portals"]);
    const after = fields["InitIface"];
    const initiatorName = fields["InitiatorName"];
    const targetPortal = fields["TargetPortal"];
    const ownIface =
      typeof after === "string" && typeof initiatorName === "string" && initiatorName !== ""
        ? { after, initiatorName }
        : undefined;
    return {
      ...named,
      ...(portals.length > 0 && { portals }),
      ...(typeof targetPortal === "string" && { targetPortal }),
      ownIface,
    };
  }

  return {
    async save(directory, { targetPortal, portals, iqn, lun, iface, ownIface }, volume) {
      const record = {
        VolName: volume,
        Portals: portals,
        Iqn: iqn,
        Lun: String(lun),
        InitIface: ownIface?.after ?? iface,
        Iface: iface,
        InitiatorName: ownIface?.initiatorName ?? "",
        TargetPortal: targetPortal,
      };
      const text = `${JSON.stringify(record)}\n`;
      await host.files.makeDirectories(folder, 0o700);
      await host.files.writeDurable(fileOf(directory), text, 0o600);
      if (!(await host.mounts.isMountPoint(directory)))
        await host.files.writeDurable(join(directory, "iscsi.json"), text, 0o600);
    },
    async load(directory) {
      const own = fileOf(directory);
      const isOwn = (await host.files.stat(own)) !== undefined;
      return readIn(directory, isOwn ? own : join(directory, "iscsi.json"));
    },
    remove: (directory) => host.files.removeFile(fileOf(directory)),
  };
}

function relative(base: string, directory: string): string {
  const prefix = [join(base, "volumeDevices"), base].find((each) => directory.startsWith(`${each}/`)) ?? base;
  return directory.slice(prefix.length + 1);
}

function fieldsOf(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text ?? "{}");
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    // Half of a file by a kubelet that crashed: the directory's name tells the rest.
    return {};
  }
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}
