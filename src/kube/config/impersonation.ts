import type { ClusterAccess } from "../transport/access.ts";
import type { Fields } from "./fields.ts";

/** Whom to act as. A uid, groups or extra need a user: the API server would refuse every request otherwise. */
export function readImpersonation(fields: Fields): ClusterAccess["impersonation"] {
  const user = headerValue(fields, "as", fields.string("as"));
  const uid = headerValue(fields, "as-uid", fields.string("as-uid"));
  const groups = fields
    .strings("as-groups")
    .filter((group) => headerValue(fields, "as-groups", group) !== undefined);
  const extra = readExtra(fields);
  const hasMore = uid !== undefined || groups.length > 0 || extra.size > 0;
  if (hasMore && !fields.isSet("as")) {
    fields.complain(
      "as",
      "is missing, but as-uid, as-groups or as-user-extra is given; name the user to act as",
    );
  }
  return {
    ...(user === undefined ? {} : { "Impersonate-User": user }),
    ...(uid === undefined ? {} : { "Impersonate-Uid": uid }),
    ...(groups.length === 0 ? {} : { "Impersonate-Group": groups }),
    ...Object.fromEntries([...extra].map(([key, values]) => [`Impersonate-Extra-${escapeKey(key)}`, values])),
  };
}

/** Keys in lower case: the server lowers them anyway, and two that differ in case only are one list. */
function readExtra(fields: Fields): Map<string, readonly string[]> {
  const extra = fields.map("as-user-extra");
  const byKey = new Map<string, readonly string[]>();
  for (const name of extra?.names() ?? []) {
    const values = (extra?.strings(name) ?? []).filter(
      (value) => headerValue(fields, "as-user-extra", value) !== undefined,
    );
    byKey.set(name.toLowerCase(), [...(byKey.get(name.toLowerCase()) ?? []), ...values]);
  }
  return byKey;
}

function headerValue(fields: Fields, name: string, value: string | undefined): string | undefined {
  if (value === undefined || /^[\x20-\x7e]+$/.test(value)) return value;
  fields.complain(name, "contains characters that no HTTP header can carry; use printable ASCII");
  return undefined;
}

/** Percent-encodes what may not stand in a header's name, the percent sign itself included. */
function escapeKey(key: string): string {
  return [...Buffer.from(key, "utf8")]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[A-Za-z0-9!#$&'*+\-.^_`|~]/.test(char)
        ? char
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}
