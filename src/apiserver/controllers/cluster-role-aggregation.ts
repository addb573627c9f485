import { jsonEqual } from "../../kube/patch/json.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { effectiveRules } from "../auth/aggregation.ts";
import { rulesOf } from "../auth/rules.ts";
import { fieldAt, parseStored, type ApiObject } from "../objects.ts";
import type { VerbDeps } from "../request.ts";
import { AGAIN, DONE, type EngineController, type Marks } from "./engine-controller.ts";
import { changeSeen } from "./writes.ts";

const ROLES = "clusterroles.rbac.authorization.k8s.io";

/**
 * Writes into a ClusterRole with an `aggregationRule` the rules it stands for, for people and programs to read. The
 * authorizer of this server does not wait for that: it collects them for itself, and so a role counts from the next
 * request on. Order and content are those of upstream's controller, so that the two may run beside each other.
 *
 * Keys are names of roles with an `aggregationRule`. Any of them may collect from any role that changes, and there
 * are few.
 */
export function createClusterRoleAggregation(verbs: VerbDeps, { mark }: Marks): EngineController {
  const { store } = verbs;
  const roles = new Map<string, ApiObject>();
  const aggregated = new Set<string>();

  function withRules(role: ApiObject): ApiObject {
    const rules = effectiveRules(role, () => roles.values());
    return jsonEqual(rulesOf(role), rules) ? role : { ...role, rules };
  }

  return {
    clear() {
      roles.clear();
      aggregated.clear();
    },

    observe({ type, object }) {
      const { resource, name } = object.key;
      if (resource !== ROLES) return;
      const role = parseStored(object);
      if (type === "deleted") roles.delete(name);
      else roles.set(name, role);
      if (type !== "deleted" && fieldAt(role, "aggregationRule") !== undefined) aggregated.add(name);
      else aggregated.delete(name);
      aggregated.forEach(mark);
    },

    async reconcile(name): Promise<Outcome> {
      const stored = store.get({ resource: ROLES, namespace: "", name });
      if (stored === undefined || !aggregated.has(name)) return DONE;
      const role = parseStored(stored);
      if (withRules(role) === role) return DONE;
      return (await changeSeen(verbs, stored, withRules)) === "conflict" ? AGAIN : DONE;
    },
  };
}
