import type { ApiObject } from "../objects.ts";
import { listAt, textAt } from "./fields.ts";
import { ageColumn, column, createPrinter, nameColumn, wideColumn } from "./printer.ts";

/** Both kinds of binding look alike; roles have no columns of their own. */
export const roleBindingPrinter = createPrinter([
  nameColumn,
  column(
    "Role",
    "What it grants",
    (binding) => `${textAt(binding, "roleRef", "kind")}/${textAt(binding, "roleRef", "name")}`,
  ),
  ageColumn,
  wideColumn("Users", "The users it grants that to", (binding) => subjects(binding, "User")),
  wideColumn("Groups", "The groups it grants that to", (binding) => subjects(binding, "Group")),
  wideColumn("ServiceAccounts", "The service accounts it grants that to", (binding) =>
    subjects(binding, "ServiceAccount"),
  ),
]);

function subjects(binding: ApiObject, kind: string): string {
  return listAt(binding, "subjects")
    .filter((subject) => textAt(subject, "kind") === kind)
    .map((subject) => {
      const name = textAt(subject, "name");
      return kind === "ServiceAccount" ? `${textAt(subject, "namespace")}/${name}` : name;
    })
    .join(", ");
}
