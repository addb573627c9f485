import { describe, expect, test } from "vitest";
import {
  decodeRecord,
  encodeHead,
  encodeWrite,
  HEAD_KEY,
  writeKey,
  type WriteRecord,
} from "./lmdb-records.ts";

const WRITE: WriteRecord = {
  type: "updated",
  object: {
    key: { resource: "leases.coordination.k8s.io", namespace: "kube-node-lease", name: "node-ä" },
    revision: 2 ** 40 + 17,
    text: '{"metadata":{"name":"node-ä"},"spec":{"note":"\u{1f6a2} at anchor"}}',
  },
  previousRevision: 2 ** 33,
  committedAtMs: Date.UTC(2026, 0, 1),
};

const encoded = () => {
  const key = writeKey(WRITE.object.revision);
  return { key, value: encodeWrite(key, WRITE) };
};

describe("records", () => {
  for (const [what, write] of [
    ["an update", WRITE],
    ["a create", { ...WRITE, type: "created", previousRevision: 0 }],
    ["a delete", { ...WRITE, type: "deleted" }],
    [
      "a cluster-scoped object",
      { ...WRITE, object: { ...WRITE.object, key: { ...WRITE.object.key, namespace: "" } } },
    ],
    ["an empty text", { ...WRITE, object: { ...WRITE.object, text: "" } }],
  ] as const) {
    test(`${what} reads back as it was written`, () => {
      const key = writeKey(write.object.revision);

      expect(decodeRecord(key, encodeWrite(key, write), "f")).toEqual({ kind: "write", write });
    });
  }

  test("the head reads back as it was written", () => {
    const value = encodeHead({ compactedRevision: 2 ** 45 });

    expect(decodeRecord(HEAD_KEY, value, "f")).toEqual({
      kind: "head",
      head: { compactedRevision: 2 ** 45 },
    });
  });

  test("keys sort by revision, after the head", () => {
    const keys = [HEAD_KEY, ...[1, 2, 255, 256, 2 ** 32 - 1, 2 ** 32, 2 ** 40].map(writeKey)];

    expect([...keys].sort((a, b) => a.compare(b))).toEqual(keys);
  });

  test("a record with any one bit changed, in key or value, is refused by name", () => {
    const { key, value } = encoded();
    const both = Buffer.concat([key, value]);

    for (let bit = 8; bit < both.length * 8; bit++) {
      const changed = Buffer.from(both);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);

      expect(() => decodeRecord(changed.subarray(0, 9), changed.subarray(9), "data.mdb")).toThrow(
        /^Corrupt: read data\.mdb: the record of revision \d+ does not match its checksum/,
      );
    }
  });

  test("a record that was cut short is refused", () => {
    const { key, value } = encoded();

    for (let length = 0; length < value.length; length++) {
      expect(() => decodeRecord(key, value.subarray(0, length), "f")).toThrow("checksum");
    }
  });

  test("a record in another's place is refused", () => {
    expect(() => decodeRecord(writeKey(3), encoded().value, "f")).toThrow("revision 3 does not match");
  });

  test("a head of a later format is refused with what to do, whatever follows it", () => {
    const value = Buffer.concat([Buffer.from([0, 2]), Buffer.from("what a later version may write")]);

    expect(() => decodeRecord(HEAD_KEY, value, "data.mdb")).toThrow(
      /^NewerFormat: open data\.mdb: it has format 2 and this version reads up to 1; start the version/,
    );
  });

  test("a damaged head and an unknown key are refused", () => {
    const value = encodeHead({ compactedRevision: 7 });
    value.writeUInt8(8, 13);

    expect(() => decodeRecord(HEAD_KEY, value, "f")).toThrow("the head record does not match its checksum");
    expect(() => decodeRecord(Buffer.from([9]), value, "f")).toThrow("a key that no version writes (09)");
  });
});
