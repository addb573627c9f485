import type { MessageInitShape } from "@bufbuild/protobuf";
import { VolumeCapability_AccessMode_Mode as Mode, type VolumeCapabilitySchema } from "../csi/gen/csi_pb.ts";
import { StorageError } from "./errors.ts";

type Capability = MessageInitShape<typeof VolumeCapabilitySchema>;

/** How a volume is to be used; of a claim or of a volume. */
export interface Use {
  readonly accessModes: readonly string[];
  readonly block: boolean;
  readonly fsType: string;
  readonly mountFlags: readonly string[];
}

/** One capability for each access mode, all of one kind: the driver has to be able to do every one of them. */
export function toCapabilities(
  { accessModes, block, fsType, mountFlags }: Use,
  { singleNodeMultiWriter }: { readonly singleNodeMultiWriter: boolean },
): Capability[] {
  return accessModes.map((name): Capability => {
    const mode = singleNodeMultiWriter ? (MULTI_WRITER_MODES[name] ?? MODES[name]) : MODES[name];
    if (mode === undefined) throw new StorageError("BadSource", `access mode "${name}" is not one of CSI's`);
    const accessMode = { mode };
    if (block) return { accessMode, accessType: { case: "block", value: {} } };
    return { accessMode, accessType: { case: "mount", value: { fsType, mountFlags: [...mountFlags] } } };
  });
}

const MODES: Readonly<Record<string, Mode>> = {
  ReadWriteOnce: Mode.SINGLE_NODE_WRITER,
  ReadWriteOncePod: Mode.SINGLE_NODE_WRITER,
  ReadOnlyMany: Mode.MULTI_NODE_READER_ONLY,
  ReadWriteMany: Mode.MULTI_NODE_MULTI_WRITER,
};

/** For drivers that tell one pod from several on a node. */
const MULTI_WRITER_MODES: Readonly<Record<string, Mode>> = {
  ReadWriteOnce: Mode.SINGLE_NODE_MULTI_WRITER,
  ReadWriteOncePod: Mode.SINGLE_NODE_SINGLE_WRITER,
};
