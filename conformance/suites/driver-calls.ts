import { readFile } from "node:fs/promises";
import type { Cast, Play } from "../harness/cast.ts";

/** A driver acts first and tells of it afterwards. */
const TELL_MS_MAX = 10_000;

/** What a driver's log says of each call, in the order in which a volume lives. */
const CALLS: readonly (Readonly<Record<Cast["driver"], string>> & { readonly onNode: boolean })[] = [
  { "host-path": "/CreateVolume", ours: '"volume created"', onNode: false },
  { "host-path": "/ControllerPublishVolume", ours: '"volume attached"', onNode: false },
  { "host-path": "/NodeStageVolume", ours: '"volume staged"', onNode: true },
  { "host-path": "/NodePublishVolume", ours: '"volume published"', onNode: true },
  { "host-path": "/NodeUnpublishVolume", ours: '"volume unpublished"', onNode: true },
  { "host-path": "/NodeUnstageVolume", ours: '"volume unstaged"', onNode: true },
  { "host-path": "/ControllerUnpublishVolume", ours: '"volume detached"', onNode: false },
  { "host-path": "/DeleteVolume", ours: '"volume deleted"', onNode: false },
];

/**
 * The driver was called for every step of the volume's life, and in this order: API objects that look right say nothing
 * of a backend that was never asked, or was asked to detach what was still staged.
 */
export async function calledInOrder({ cast, driverLog, stage }: Play): Promise<void> {
  await stage.until("every call in the driver's log", TELL_MS_MAX, async () => {
    const said = await readFile(driverLog, "utf8");
    let last = { call: "", at: -1 };
    for (const { onNode, [cast.driver]: call } of CALLS) {
      if (onNode && cast.node === "absent") continue;
      const at = said.indexOf(call);
      if (at < 0) throw new Error(`the driver's log has no ${call}`);
      if (at < last.at) throw new Error(`the driver was called for ${call} before ${last.call}`);
      last = { call, at };
    }
    return true;
  });
}
