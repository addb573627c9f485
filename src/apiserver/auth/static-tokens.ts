import { createHash, timingSafeEqual } from "node:crypto";
import { KubeError } from "../../kube/errors.ts";
import type { UserInfo } from "./user.ts";

/** Tokens that an administrator wrote into a file, one a line: `token,user,uid,"group1,group2"`. */
export interface StaticTokens {
  find(token: string): UserInfo | undefined;
}

export const noStaticTokens: StaticTokens = { find: () => undefined };

/**
 * Only digests are kept, and all of them are looked at for every token: how long the search takes says
 * nothing about how much of a guess was right. A token that stands twice means its last line.
 */
export function parseStaticTokens(text: string): StaticTokens {
  const entries = text
    .split("\n")
    .map((line, index) => parseLine(line, index + 1))
    .filter((entry) => entry !== undefined);
  return {
    find(token) {
      const digest = digestOf(token);
      let found: UserInfo | undefined;
      for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) found = entry.user;
      return found;
    },
  };
}

interface Entry {
  readonly digest: Buffer;
  readonly user: UserInfo;
}

function parseLine(line: string, number: number): Entry | undefined {
  if (line.trim() === "") return undefined;
  const [token = "", name = "", uid = "", groups = ""] = splitLine(line.trim(), number);
  if (token === "" || name === "") throw unusable(number, "a token and a user name are needed");
  const user = {
    name,
    uid,
    groups: groups
      .split(",")
      .map((group) => group.trim())
      .filter((group) => group !== ""),
  };
  return { digest: digestOf(token), user };
}

/** Commas outside quotes part the fields; a doubled quote within quotes stands for itself. */
function splitLine(line: string, number: number): string[] {
  const fields: string[] = [];
  const field = /\s*(?:"((?:[^"]|"")*)"\s*|([^,"]*))(,|$)/y;
  for (let isLast = false; !isLast;) {
    const match = field.exec(line);
    if (match === null) throw unusable(number, "its quotes do not pair up");
    const [, quoted, plain = "", end] = match;
    fields.push(quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"'));
    isLast = end === "";
  }
  return fields;
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** The line is named by its number: what stands in it is secret. */
function unusable(number: number, why: string): KubeError {
  return new KubeError(
    "BadConfig",
    `read token file: line ${number} cannot be used: ${why}; write it as token,user,uid,"group1,group2"`,
  );
}
