import { PageTokens } from "../../base/page-tokens.ts";
import { KubeError } from "../errors.ts";
import { resourceName, type Resource } from "../object.ts";

/** Follows the `continue` tokens of one list: undefined after its last page, an error where they lead nowhere. */
export function createPages(resource: Resource): (token: string | undefined) => string | undefined {
  const tokens = new PageTokens();
  const nowhere = (why: string) =>
    new KubeError("BadResponse", `list ${resourceName(resource)}: the server's pages lead nowhere: ${why}`);
  return (token) => tokens.follow(token, nowhere);
}
