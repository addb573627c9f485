import { create, fromBinary, getOption, type DescMessage } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import * as csi from "./gen/csi_pb.ts";
import { redactMessage, renderMessage, scrubValues, sensitiveValues } from "./redact.ts";

const SECRET = "opensesame-1234";

describe("redaction", () => {
  test("a publish request as a log line: secrets and mount flags gone, everything else told", () => {
    const request = create(csi.ControllerPublishVolumeRequestSchema, {
      volumeId: "v",
      nodeId: "n",
      readonly: true,
      secrets: { password: SECRET },
      volumeContext: { a: "b", "csi.storage.k8s.io/serviceAccount.tokens": SECRET },
      volumeCapability: {
        accessType: { case: "mount", value: { fsType: "ext4", mountFlags: [`password=${SECRET}`] } },
        accessMode: { mode: csi.VolumeCapability_AccessMode_Mode.SINGLE_NODE_WRITER },
      },
    });

    expect(renderMessage(csi.ControllerPublishVolumeRequestSchema, request)).toBe(
      '{"volume_id":"v","node_id":"n","volume_capability":{"mount":{"fs_type":"ext4","mount_flags":"***stripped***"},' +
        '"access_mode":{"mode":"SINGLE_NODE_WRITER"}},"readonly":true,"secrets":"***stripped***",' +
        '"volume_context":{"a":"b","csi.storage.k8s.io/serviceAccount.tokens":"***stripped***"}}',
    );
    expect(request.secrets).toEqual({ password: SECRET });
  });

  test("every field named secrets in the protocol is marked, and nothing else is", () => {
    const fields = csi.file_csi.messages.flatMap((message) => [...fieldsOf(message)]);
    const marked = fields.filter((field) => getOption(field, csi.csi_secret));

    expect(marked.length).toBe(22);
    expect(fields.filter(({ name }) => name === "secrets")).toEqual(marked);
  });

  test("lists, wrappers, wide integers and presence are shown as they are", () => {
    const list = create(csi.ListVolumesResponseSchema, {
      entries: [{ volume: { volumeId: "v", capacityBytes: 1n << 60n } }],
    });
    const probe = create(csi.ProbeResponseSchema, { ready: false });

    expect(redactMessage(csi.ListVolumesResponseSchema, list)).toEqual({
      entries: [{ volume: { capacity_bytes: "1152921504606846976", volume_id: "v" } }],
    });
    expect(redactMessage(csi.ProbeResponseSchema, probe)).toEqual({ ready: false });
  });

  test("unknown enum numbers are shown as numbers, unknown fields not at all", () => {
    const bytes = Buffer.from("1a04" + "1a020863" + "c23e03616263", "hex");
    const newer = fromBinary(csi.ControllerPublishVolumeRequestSchema, bytes);

    expect(redactMessage(csi.ControllerPublishVolumeRequestSchema, newer)).toEqual({
      volume_capability: { access_mode: { mode: 99 } },
    });
  });
});

describe("scrubbing", () => {
  test("secrets, mount flags and single tokens are found in a request", () => {
    const tokens = JSON.stringify({ vault: { token: "token-value-1", expirationTimestamp: "x" } });
    const request = create(csi.NodePublishVolumeRequestSchema, {
      secrets: { a: SECRET },
      volumeContext: { "csi.storage.k8s.io/serviceAccount.tokens": tokens },
      volumeCapability: { accessType: { case: "mount", value: { mountFlags: ["pass=1234"] } } },
    });

    expect(sensitiveValues(csi.NodePublishVolumeRequestSchema, request).sort()).toEqual(
      [SECRET, "pass=1234", "token-value-1", tokens].sort(),
    );
  });

  for (const [claim, text, values, expected] of [
    ["longest first", "abcdefgh abcd", ["abcd", "abcdefgh"], "***stripped*** ***stripped***"],
    ["as base64", `x ${Buffer.from(SECRET).toString("base64")}`, [SECRET], "x ***stripped***"],
    ["percent-encoded", "p=a%2Fb%2Fc", ["a/b/c"], "p=***stripped***"],
    ["short words stay", "mounted ro on /x", ["ro", ""], "mounted ro on /x"],
    ["patterns are plain text", "a.*b(", [".*b("], "a***stripped***"],
  ] as const) {
    test(claim, () => expect(scrubValues(text, values)).toBe(expected));
  }
});

function* fieldsOf(message: DescMessage): Generator<DescMessage["fields"][number]> {
  yield* message.fields;
  for (const nested of message.nestedMessages) yield* fieldsOf(nested);
}
