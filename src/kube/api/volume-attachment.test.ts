import { expect, test } from "vitest";
import { trimVolumeAttachment, type VolumeAttachment } from "./volume-attachment.ts";

const identity = {
  name: "csi-1",
  uid: "u-1",
  resourceVersion: "7",
  creationTimestamp: "2025-01-01T00:00:00Z",
};
const spec = {
  attacher: "csi.example.com",
  source: { persistentVolumeName: "pv-1" },
  nodeName: "node-a",
};

function attachment(overrides: { metadata?: object; spec?: object; status?: object } = {}): VolumeAttachment {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { ...identity, managedFields: [{ manager: "csi-attacher" }], ...overrides.metadata },
    spec: { ...spec, ...overrides.spec },
    ...(overrides.status === undefined ? {} : { status: overrides.status }),
  } as VolumeAttachment;
}

test("an attachment keeps what it is about and whether it is done", () => {
  const trimmed = trimVolumeAttachment(attachment({ status: { attached: true } }));

  expect(trimmed).toStrictEqual({ metadata: identity, spec, status: { attached: true } });
});

test("one without a status is not attached", () => {
  expect(trimVolumeAttachment(attachment()).status).toEqual({ attached: false });
});

for (const status of [
  { attached: false },
  { attached: true, attachmentMetadata: { devicePath: "/dev/xvdf" } },
  { attached: false, attachError: { time: "2025-01-01T00:00:00Z", message: "no", errorCode: 8 } },
  { attached: true, detachError: { time: "2025-01-01T00:00:00Z", message: "busy" } },
]) {
  test(`the status ${JSON.stringify(status)} is kept whole`, () => {
    expect(trimVolumeAttachment(attachment({ status })).status).toEqual(status);
  });
}

for (const metadata of [
  { finalizers: ["external-attacher/csi-example-com"] },
  { finalizers: [] },
  { annotations: { "csi.alpha.kubernetes.io/node-id": "i-1" } },
  {
    finalizers: ["external-attacher/csi-example-com", "example.com/backup"],
    annotations: { "csi.alpha.kubernetes.io/node-id": "i-1" },
  },
  {
    finalizers: ["external-attacher/csi-example-com"],
    annotations: {},
    deletionTimestamp: "2025-01-02T00:00:00Z",
  },
]) {
  test(`of ${JSON.stringify(metadata)} nothing is lost and nothing is made up`, () => {
    expect(trimVolumeAttachment(attachment({ metadata })).metadata).toStrictEqual({
      ...identity,
      ...metadata,
    });
  });
}

test("an inline volume is kept whole", () => {
  const source = { inlineVolumeSpec: { csi: { driver: "csi.example.com", volumeHandle: "v" } } };

  expect(trimVolumeAttachment(attachment({ spec: { source } })).spec.source).toEqual(source);
});

test("kubectl's copy of the object is dropped, the annotations beside it stay", () => {
  const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}", note: "x" };

  expect(trimVolumeAttachment(attachment({ metadata: { annotations } })).metadata.annotations).toEqual({
    note: "x",
  });
});
