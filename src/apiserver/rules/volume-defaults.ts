import { isJsonObject } from "../../kube/patch/json.ts";
import { withDefaults } from "./loose.ts";
import type { Sources } from "./volume-sources.ts";

/** 0644, readable by all: what files made of API objects have unless said otherwise. */
const FILE_MODE = 420;

/** Members of a source that are filled in, in pods and PersistentVolumes alike. */
const SOURCE_DEFAULTS: Readonly<Record<string, Sources>> = {
  secret: { defaultMode: FILE_MODE },
  configMap: { defaultMode: FILE_MODE },
  downwardAPI: { defaultMode: FILE_MODE },
  projected: { defaultMode: FILE_MODE },
  hostPath: { type: "" },
  iscsi: { iscsiInterface: "default" },
  rbd: { pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
  azureDisk: { cachingMode: "ReadWrite", kind: "Shared", fsType: "ext4", readOnly: false },
  scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" },
};

export function sourceDefaults<T extends object>(object: T): T {
  const changed = Object.entries(SOURCE_DEFAULTS).flatMap(([name, defaults]) => {
    const source = (object as Sources)[name];
    return isJsonObject(source) ? [[name, withDefaults<Sources>(source, defaults)]] : [];
  });
  return changed.length === 0 ? object : { ...object, ...(Object.fromEntries(changed) as Partial<T>) };
}
