import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { closeSocketFolders, openSocketFolder } from "./socket-folder.ts";

const place = mkdtempSync(join(tmpdir(), "mooring-sockets-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

test("is made for us alone, taken again after a kill, and gone when it is empty", async () => {
  const path = join(place, "new");

  await openSocketFolder(path);
  await openSocketFolder(path);

  expect(statSync(path).mode & 0o777).toBe(0o700);
  await closeSocketFolders([path, path]);
  expect(existsSync(path)).toBe(false);
});

test("a folder that others can enter, or a link, is refused and left as it is", async () => {
  const [open, link] = [join(place, "open"), join(place, "link")];
  mkdirSync(open);
  chmodSync(open, 0o755);
  writeFileSync(join(open, "precious"), "");
  symlinkSync(open, link);

  for (const path of [open, link])
    await expect(openSocketFolder(path)).rejects.toThrow(`${path} is in the way`);

  expect(existsSync(join(open, "precious"))).toBe(true);
});

test("what somebody put into it keeps it from being removed", async () => {
  const path = join(place, "used");
  await openSocketFolder(path);
  writeFileSync(join(path, "precious"), "");

  await closeSocketFolders([path]);

  expect(existsSync(join(path, "precious"))).toBe(true);
});
