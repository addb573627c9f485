import { describe, expect, test } from "vitest";
import { decodeSnapshot, encodeSnapshot, type SnapshotContent } from "./snapshot-format.ts";

const MADE = { version: "1.2.3", createdAt: new Date(1_700_000_000_000) };
const FILES = [
  { name: "pki/ca.crt", text: "-----BEGIN\nline\n" },
  { name: "pki/sa.key", text: "ключ" },
];

function object(name: string, revision: number, text: string) {
  return { key: { resource: "configmaps", namespace: "default", name }, revision, text };
}

const OBJECTS = [
  object("a", 3, '{"data":{"2":"b","1":"a"},"n":1.0,"text":"größe \\n \u{1f40b}"}'),
  object("tricky", 5, '{"a":",\\"object\\":","object":{}}'),
  object("odd", 9, "not JSON,\nand two lines\u2028"),
];

function encode(objects = OBJECTS, files = FILES, revision = 12): Buffer {
  return Buffer.from([...encodeSnapshot({ revision, objects }, files, MADE)].join(""));
}

async function decode(bytes: Buffer, chunkBytes = 7): Promise<SnapshotContent> {
  async function* chunks() {
    // As a file is read: one buffer, again and again.
    const buffer = Buffer.alloc(chunkBytes);
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      yield buffer.subarray(0, await Promise.resolve(bytes.copy(buffer, 0, at, at + chunkBytes)));
    }
  }
  return decodeSnapshot("x.snapshot", chunks());
}

describe("a snapshot", () => {
  test("comes back with every text as it was, whatever it looks like and however it is read", async () => {
    for (const chunkBytes of [1, 7, 64, 100_000]) {
      const { header, revision, files, objects } = await decode(encode(), chunkBytes);

      expect({ revision, files, objects }).toEqual({ revision: 12, files: FILES, objects: OBJECTS });
      expect(header).toEqual({
        formatVersion: 1,
        version: "1.2.3",
        createdAt: "2023-11-14T22:13:20.000Z",
        revision: 12,
        objects: 3,
        files: 2,
      });
    }
  });

  test("of an empty store is one too", async () => {
    expect(await decode(encode([], []))).toMatchObject({ revision: 12, objects: [], files: [] });
  });

  test("says on its first line what it is, and has an object a line for jq", () => {
    const [first, , , second] = encode().toString().split("\n");

    expect(JSON.parse(first ?? "")).toMatchObject({ mooring: "snapshot", formatVersion: 1, objects: 3 });
    expect(JSON.parse(second ?? "")).toMatchObject({ revision: 3, object: { data: { 1: "a", 2: "b" } } });
  });
});

describe("a snapshot is refused", () => {
  test("wherever it is cut short", async () => {
    const whole = encode();

    for (let bytes = 0; bytes < whole.length; bytes++) {
      await expect(decode(whole.subarray(0, bytes), 512), `${bytes} bytes`).rejects.toMatchObject({
        code: "BadFile",
        message: expect.stringContaining("Nothing was changed") as string,
      });
    }
    await expect(decode(whole.subarray(0, whole.lastIndexOf('{"sha256"')))).rejects.toThrow(
      /cut short after 3 of 3 objects/,
    );
  });

  test("whichever bit of it changes", async () => {
    const whole = encode();

    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      await expect(decode(changed, 512), `byte ${at}`).rejects.toMatchObject({ code: "BadFile" });
    }
  });

  for (const [what, bytes, complaint] of [
    ["from a later version", Buffer.from('{"mooring":"snapshot","formatVersion":2}\n'), /format 2.*up to 1/],
    ["that is something else", Buffer.from("hello\n"), /no snapshot of mooring/],
    ["that goes on after its end", Buffer.concat([encode(), encode()]), /goes on after its end/],
    ["with a file outside", encode([], [{ name: "pki/../../x.key", text: "" }]), /line 2 is no file/],
    ["with an object twice", encode([OBJECTS[0]!, { ...OBJECTS[0]!, revision: 4 }]), /no object/],
    ["with an object after its revision", encode([object("a", 13, "{}")]), /no object/],
    ["with objects out of order", encode([object("a", 3, "{}"), object("b", 2, "{}")]), /no object/],
  ] as const) {
    test(`${what}, also with a correct checksum`, async () => {
      await expect(decode(bytes)).rejects.toThrow(complaint);
    });
  }
});
