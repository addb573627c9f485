import type { Api as BenchApi } from "../../bench/attach-detach/api.ts";
import { BENCH_DRIVER, type Estate } from "../../bench/attach-detach/estate.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import type { Informer } from "../../src/kube/informer/informer.ts";
import type { Api } from "./api.ts";
import type { Stage } from "./stage.ts";

const CALL_TRIES_MAX = 200;

/** Nodes, volumes, claims and pods as the benchmark makes them; every request goes on through a restart of the server. */
export function builderOf(api: Api): BenchApi {
  return {
    send: (method, path, body) => throughRestarts(() => api.send(method, path, body)),
    watch: () => Promise.reject(new Error("suites follow by informer")),
  };
}

/**
 * Again until it is answered. What was done although its answer was lost is done: "already exists" and "not found" are
 * then what was wanted.
 */
async function throughRestarts<T>(send: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      const text = String(error);
      if (tries > 1 && /: (409|404) /.test(text)) return {} as T;
      // A 403 is no refusal there: admission answers so when etcd is gone under it, and a new server before it has its roles.
      if (tries >= CALL_TRIES_MAX || /: (400|404|409|422) /.test(text)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/**
 * In place of a driver and its attacher: every VolumeAttachment is attached as soon as it is seen. Again on every change
 * of it, so that a patch lost in a restart is made up for.
 */
export function attachAtOnce(api: Api, attachments: Informer<VolumeAttachment>): void {
  const builder = builderOf(api);
  attachments.addHandler((delta) => {
    const { metadata, spec, status } = delta.object;
    if (delta.kind === "deleted" || spec.attacher !== BENCH_DRIVER || status?.attached) return;
    const path = `/apis/storage.k8s.io/v1/volumeattachments/${metadata.name ?? ""}/status`;
    // Deleted meanwhile is fine: then nobody wants it.
    void builder.send("PATCH", path, { status: { attached: true } }).catch(() => undefined);
  });
}

export function attachmentsOf(attachments: Informer<VolumeAttachment>, { name }: Estate): VolumeAttachment[] {
  return [...attachments.objects()].filter(({ spec }) =>
    spec.source.persistentVolumeName?.startsWith(`${name}-`),
  );
}

/** Exactly these many of the estate's volumes are attached. */
export async function untilAttached(
  stage: Stage,
  attachments: Informer<VolumeAttachment>,
  { estate, count, withinMs }: { readonly estate: Estate; readonly count: number; readonly withinMs: number },
): Promise<void> {
  await stage.until(`${count} volumes of ${estate.name} attached`, withinMs, async () => {
    const all = attachmentsOf(attachments, estate);
    const done = all.filter(({ status }) => status?.attached).length;
    if (done === count && all.length === count) return true;
    throw new Error(`${done} attached of ${all.length}`);
  });
}
