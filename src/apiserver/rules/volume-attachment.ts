import type { VolumeAttachment, VolumeAttachmentSource, VolumeError } from "kubernetes-types/storage/v1.js";
import {
  forbiddenField,
  IMMUTABLE,
  invalidFor,
  invalidValue,
  notNegative,
  required,
  tooLong,
} from "./causes.ts";
import type { Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { validateInlineVolumeSpec } from "./persistent-volume-spec.ts";
import { sameValue } from "./quantities.ts";
import { driverNameCauses, subdomainProblems } from "./text-rules.ts";
import { sourceDefaults } from "./volume-defaults.ts";

type AttachmentObject = LooseObject<VolumeAttachment>;
type AttachmentStatus = AttachmentObject["status"];

const METADATA_BYTES_MAX = 256 * 1_024;
const MESSAGE_BYTES_MAX = 1_024;

export const volumeAttachmentRules: RuleParts<AttachmentObject> = {
  applyDefaults(object) {
    const inline = object.spec?.source?.inlineVolumeSpec;
    const source = inline === undefined ? {} : { inlineVolumeSpec: sourceDefaults(inline) };
    return {
      ...object,
      ...(inline === undefined
        ? {}
        : { spec: { ...object.spec, source: { ...object.spec?.source, ...source } } }),
      status: withDefaults(object.status ?? {}, { attached: false }),
    };
  },

  prepareCreate: (object) => ({ ...object, status: { attached: false } }),

  validate({ spec = {}, status }) {
    const { attacher, nodeName = "", source = {} } = spec;
    return [
      ...(attacher === undefined || attacher === "" ? [required("spec.attacher")] : []),
      ...validateAttachmentSource("spec.source", source),
      ...invalidFor("spec.nodeName", nodeName, subdomainProblems(nodeName)),
      ...driverNameCauses("spec.attacher", attacher),
      ...validateStatus(status),
    ];
  },

  validateChange: ({ spec }, old) =>
    sameValue(spec, old.spec) ? [] : [invalidValue("spec", spec, IMMUTABLE)],

  validateStatus: ({ status }) => validateStatus(status),
};

function validateAttachmentSource(field: string, source: Loose<VolumeAttachmentSource>): Cause[] {
  const { persistentVolumeName, inlineVolumeSpec } = source;
  const rule = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (persistentVolumeName === undefined && inlineVolumeSpec === undefined) return [required(field, rule)];
  if (persistentVolumeName !== undefined && inlineVolumeSpec !== undefined)
    return [forbiddenField(field, rule)];
  if (inlineVolumeSpec !== undefined)
    return validateInlineVolumeSpec(`${field}.inlineVolumeSpec`, inlineVolumeSpec);
  if (persistentVolumeName === undefined || persistentVolumeName === "") {
    return [required(`${field}.persistentVolumeName`, "must specify non empty persistentVolumeName")];
  }
  return invalidFor(
    `${field}.persistentVolumeName`,
    persistentVolumeName,
    subdomainProblems(persistentVolumeName),
  );
}

function validateStatus(status: AttachmentStatus): Cause[] {
  const { attachmentMetadata = {}, attachError, detachError } = status ?? {};
  let bytes = 0;
  for (const [key, value = ""] of Object.entries(attachmentMetadata)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  const field = "status.attachmentMetadata";
  return [
    ...(Object.hasOwn(attachmentMetadata, "") ? [required(field, "can not be empty")] : []),
    ...(bytes > METADATA_BYTES_MAX ? [tooLong(field, METADATA_BYTES_MAX)] : []),
    ...validateError("status.attachError", attachError),
    ...validateError("status.detachError", detachError),
  ];
}

/** `errorCode` is of 1.33. */
function validateError(
  field: string,
  { message = "", errorCode }: Loose<VolumeError & { errorCode?: number }> = {},
): Cause[] {
  return [
    ...(Buffer.byteLength(message) > MESSAGE_BYTES_MAX
      ? [tooLong(`${field}.message`, MESSAGE_BYTES_MAX)]
      : []),
    ...notNegative(`${field}.errorCode`, errorCode),
  ];
}
