import { keyCountAt, listAt, textAt } from "./fields.ts";
import { ageColumn, column, createPrinter, nameColumn } from "./printer.ts";

/** Kinds whose rows say little more than that they exist. */

export const namespacePrinter = createPrinter([
  nameColumn,
  column("Status", "Whether the namespace is in use or on its way out", (namespace) =>
    textAt(namespace, "status", "phase"),
  ),
  ageColumn,
]);

export const secretPrinter = createPrinter([
  nameColumn,
  column("Type", "What the secret is for", (secret) => textAt(secret, "type")),
  column("Data", "How many keys it holds", (secret) => keyCountAt(secret, "data")),
  ageColumn,
]);

export const configMapPrinter = createPrinter([
  nameColumn,
  column(
    "Data",
    "How many keys it holds, text and binary",
    (map) => keyCountAt(map, "data") + keyCountAt(map, "binaryData"),
  ),
  ageColumn,
]);

export const serviceAccountPrinter = createPrinter([
  nameColumn,
  column("Secrets", "How many secrets its pods may mount", (account) => listAt(account, "secrets").length),
  ageColumn,
]);

export const leasePrinter = createPrinter([
  nameColumn,
  column("Holder", "Who holds the lease", (lease) => textAt(lease, "spec", "holderIdentity")),
  ageColumn,
]);

/** For kinds without columns of their own. Their one column besides the name is a date, not an age. */
export const defaultPrinter = createPrinter([
  nameColumn,
  column("Created At", "When the object was created", createdAt, { type: "date" }),
]);

function createdAt(object: Parameters<typeof nameColumn.cell>[0]): string {
  // What was never stored has no birthday; the real server then shows the zero of its calendar.
  return textAt(object, "metadata", "creationTimestamp") || "0001-01-01T00:00:00Z";
}
