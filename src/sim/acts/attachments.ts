import { volumeAttachments, type VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import { HANDLE_ANNOTATION, volumeAttachmentName } from "../../volumes/names.ts";
import type { ActOf, AttachmentAct } from "../act.ts";
import type { ActContext, Performers } from "./context.ts";

/** People with kubectl make and delete VolumeAttachments. */
export const ATTACHMENTS: Performers<AttachmentAct["kind"]> = {
  "foreign-attachment": attachByHand,
  "delete-attachment": detachByHand,
};

const BY_HAND = { "made-by": "hand" };

/** Whether somebody made the VolumeAttachment himself. */
export function isByHand({
  labels,
}: {
  readonly labels?: Readonly<Record<string, string>> | undefined;
}): boolean {
  return labels?.["made-by"] === "hand";
}

/** Everybody deletes what he made, and an operator what nobody can tell any more (decision 9 leaves that to a person). */
export async function healAttachments(context: ActContext): Promise<void> {
  const { items } = await context.client.list(volumeAttachments);
  for (const attachment of items) {
    const { name = "" } = attachment.metadata;
    if (isByHand(attachment.metadata)) await letGo(name, context);
    else if (isMisnamed(attachment, context)) await context.client.delete(volumeAttachments, { name });
  }
}

/** Its PersistentVolume became another disk before an attacher had recorded which one it was made for. */
function isMisnamed({ metadata, spec }: VolumeAttachment, { world }: ActContext): boolean {
  if (metadata.annotations?.[HANDLE_ANNOTATION] !== undefined) return false;
  const volume = world.objects.get("persistentvolumes", spec.source.persistentVolumeName ?? "");
  const csi = volume?.spec?.csi;
  return csi !== undefined && volumeAttachmentName(csi, spec.nodeName) !== metadata.name;
}

/** Somebody makes a VolumeAttachment of his own for the disk of an app, and deletes it again. */
async function attachByHand(act: ActOf<"foreign-attachment">, context: ActContext): Promise<void> {
  const { app, node, disguisedFor, forMs } = act;
  const { client, world } = context;
  const volume = context.apps.claimOf({ name: app })?.spec?.volumeName;
  if (volume === undefined) return;
  const csi = world.objects.get("persistentvolumes", volume)?.spec?.csi;
  if (csi === undefined) return;
  const name =
    disguisedFor === undefined || disguisedFor === node
      ? `by-hand-${app}-${node}`
      : volumeAttachmentName(csi, disguisedFor);
  const spec = { attacher: csi.driver, nodeName: node, source: { persistentVolumeName: volume } };
  await client.create(volumeAttachments, { metadata: { name, labels: BY_HAND }, spec });
  context.later(forMs, () => letGo(name, context));
}

/** Somebody deletes the VolumeAttachment of an app's disk, under a pod that uses it or not; whose finalizer is left to the attacher. */
async function detachByHand({ app }: ActOf<"delete-attachment">, context: ActContext): Promise<void> {
  const { client, world } = context;
  const { metadata } = attachmentOf(app, context) ?? {};
  if (metadata === undefined) return;
  world.byHand.letGo.add(metadata.uid ?? "");
  await client.delete(volumeAttachments, { name: metadata.name ?? "" });
}

/** One that nobody made by hand, of the disk that the app's claim has. */
export function attachmentOf(
  app: string,
  { apps, world }: Pick<ActContext, "apps" | "world">,
): VolumeAttachment | undefined {
  const volume = apps.claimOf({ name: app })?.spec?.volumeName;
  return world.objects
    .all("volumeattachments.storage.k8s.io")
    .find(
      ({ metadata, spec }) =>
        volume !== undefined && spec.source.persistentVolumeName === volume && !isByHand(metadata),
    );
}

async function letGo(name: string, { world, client }: ActContext): Promise<void> {
  const { metadata } = world.objects.get("volumeattachments.storage.k8s.io", name) ?? {};
  if (metadata === undefined || !isByHand(metadata)) return;
  world.byHand.letGo.add(metadata.uid ?? "");
  await client.delete(volumeAttachments, { name }).catch(() => undefined);
}
