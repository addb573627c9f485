import { ZONE_LABELS } from "../../kube/api/persistent-volume.ts";
import { text } from "../untrusted.ts";
import {
  csiFields,
  handleField,
  partitionOf,
  READ_ONLY_MANY,
  READ_WRITE_MANY,
  READ_WRITE_ONCE,
  type InTreePlugin,
  type Origin,
  type Untranslatable,
} from "./in-tree.ts";

const DRIVER = "pd.csi.storage.gke.io";

/** The driver fills in what stands as UNSPECIFIED from the machine the disk is attached to. */
const UNSPECIFIED = "UNSPECIFIED";

export const gcePd: InTreePlugin<"gcePersistentDisk"> = {
  source: "gcePersistentDisk",
  driver: DRIVER,
  handle(source, origin) {
    const disk = handleField(source, "pdName");
    const place = placeOf(origin);
    if (typeof disk !== "string") return disk;
    return typeof place === "string" ? `projects/${UNSPECIFIED}/${place}/disks/${disk}` : place;
  },
  fields({ readOnly, fsType, partition }) {
    const number = partitionOf(partition);
    return csiFields({
      readOnly,
      fsType,
      volumeAttributes: { partition: number === 0 ? "" : String(number) },
    });
  },
  inlineName: ({ pdName }) => `${DRIVER}-${pdName}`,
  inlineAccessModes: ({ readOnly }) => [readOnly === true ? READ_ONLY_MANY : READ_WRITE_ONCE],
  accessModes: backwardCompatible,
};

/** `zones/us-central1-a`, or the region of a disk that several zones share. */
function placeOf(origin: Origin): string | Untranslatable {
  const zones = zonesOf(origin);
  const [only = ""] = zones;
  if (zones.length === 1) return `zones/${only || UNSPECIFIED}`;
  const regions = new Set(zones.map(regionOf));
  const [region] = regions;
  return region !== undefined && regions.size === 1
    ? `regions/${region}`
    : { problem: `has the zones ${zones.join(", ")}, which are not of one region` };
}

/** At least one, empty where nobody says. */
function zonesOf(origin: Origin): string[] {
  const { labels } = origin.kind === "persistent" ? origin.volume.metadata : { labels: undefined };
  const label = ZONE_LABELS.map((name) => text(labels?.[name])).find((zone) => zone !== "") ?? "";
  return label.split("__");
}

/** `us-central1` of `us-central1-a`; undefined for what is no zone. */
function regionOf(zone: string): string | undefined {
  const parts = zone.split("-");
  return parts.length === 3 ? parts.slice(0, 2).join("-") : undefined;
}

/**
 * The in-tree plugin attached a disk for writing by one node whatever its volume said, and the driver refuses
 * what it cannot do: so that old volumes keep working, each gets the one mode that was meant.
 */
function backwardCompatible(modes: readonly string[]): string[] {
  const writes = modes.includes(READ_WRITE_ONCE) || modes.includes(READ_WRITE_MANY);
  return [!writes && modes.includes(READ_ONLY_MANY) ? READ_ONLY_MANY : READ_WRITE_ONCE];
}
