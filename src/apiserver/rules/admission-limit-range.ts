import type {
  Container,
  LimitRange,
  LimitRangeItem,
  PersistentVolumeClaim,
} from "kubernetes-types/core/v1.js";
import { compareQuantities, formatQuantity, parseQuantity, type Quantity } from "../../kube/quantity.ts";
import { forbidden } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "./admission.ts";
import type { Loose, LooseObject } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";
import { amountsOf, podAmounts, type Amounts } from "./pod-resources.ts";
import type { ResourceList } from "./quantities.ts";

/** LimitRanger: what a namespace's ranges say for containers that say nothing, and the bounds they set. */
const ANNOTATION = "kubernetes.io/limit-ranger";

export function applyLimitRanges(deps: AdmissionDeps, pod: PodObject): ApiObject {
  return rangesOf(deps, pod).reduce((current, { spec = {} }) => {
    const items = (spec.limits ?? []).filter(({ type }) => type === "Container");
    return items.length === 0 ? current : fillIn(current, items);
  }, pod);
}

/** Throws the answer for a pod or a claim that is beyond the bounds; asked when its defaults are in place. */
export function checkLimitRanges(deps: AdmissionDeps, kind: Kind, object: ApiObject): void {
  const problems = rangesOf(deps, object).flatMap(({ spec = {} }) =>
    (spec.limits ?? []).flatMap((item) =>
      kind.kind === "Pod" ? podProblems(item, object) : claimProblems(item, object),
    ),
  );
  if (problems.length === 0) return;
  const text = problems.length === 1 ? problems.join() : `[${problems.join(", ")}]`;
  throw forbidden(kind, object.metadata.name, text);
}

function rangesOf(deps: AdmissionDeps, { metadata }: ApiObject): LooseObject<LimitRange>[] {
  return [...deps.listObjects("limitranges", metadata.namespace)] as LooseObject<LimitRange>[];
}

function fillIn(pod: PodObject, items: readonly Loose<LimitRangeItem>[]): PodObject {
  const requests = Object.assign({}, ...items.map(({ defaultRequest }) => defaultRequest)) as ResourceList;
  const limits = Object.assign({}, ...items.map((item) => item.default)) as ResourceList;
  const told: string[] = [];
  const fill = (what: string) => (container: Loose<Container>) => {
    const { resources = {}, name = "" } = container;
    const tell = (defaults: ResourceList, given: ResourceList | undefined, which: string) => {
      const missing = Object.keys(defaults).filter((resource) => given?.[resource] === undefined);
      if (missing.length > 0) told.push(`${missing.sort().join(", ")} ${which} for ${what} ${name}`);
    };
    tell(requests, resources.requests, "request");
    tell(limits, resources.limits, "limit");
    const filled = {
      ...resources,
      ...merged("requests", requests, resources.requests),
      ...merged("limits", limits, resources.limits),
    };
    return { ...container, resources: filled };
  };
  const { spec = {}, metadata } = pod;
  const containers = (spec.containers ?? []).map(fill("container"));
  const initContainers = spec.initContainers?.map(fill("init container"));
  if (told.length === 0) return pod;
  const annotations = { ...metadata.annotations, [ANNOTATION]: `LimitRanger plugin set: ${told.join("; ")}` };
  return {
    ...pod,
    metadata: { ...metadata, annotations },
    spec: { ...spec, containers, ...(initContainers === undefined ? {} : { initContainers }) },
  };
}

function merged(key: string, defaults: ResourceList, given: ResourceList | undefined) {
  const all = { ...defaults, ...given };
  return Object.keys(all).length === 0 ? {} : { [key]: all };
}

/** What something asks for and may use. */
interface Asked {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

function podProblems(item: Loose<LimitRangeItem>, { spec = {} }: PodObject): string[] {
  if (item.type === "Pod")
    return boundProblems(item, {
      requests: podAmounts(spec, "requests"),
      limits: podAmounts(spec, "limits"),
    });
  if (item.type !== "Container") return [];
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(({ resources = {} }) =>
    boundProblems(item, { requests: amountsOf(resources.requests), limits: amountsOf(resources.limits) }),
  );
}

/** A claim asks and has no limits; a highest amount bounds what it asks for. */
function claimProblems(item: Loose<LimitRangeItem>, object: ApiObject): string[] {
  if (item.type !== "PersistentVolumeClaim") return [];
  const { spec = {} } = object as LooseObject<PersistentVolumeClaim>;
  const requests = amountsOf(spec.resources?.requests);
  return boundProblems(item, { requests, limits: requests });
}

function boundProblems(item: Loose<LimitRangeItem>, { requests, limits }: Asked): string[] {
  const per = `per ${item.type ?? ""} is`;
  const each = (
    list: ResourceList | undefined,
    judge: (resource: string, bound: Quantity) => string | undefined,
  ) =>
    Object.entries(list ?? {}).flatMap(([resource, amount]) => {
      const problem = amount === undefined ? undefined : judge(resource, parseQuantity(amount));
      return problem === undefined ? [] : [problem];
    });
  const isClaim = item.type === "PersistentVolumeClaim";
  return [
    ...each(item.min, (resource, bound) => {
      const text = `minimum ${resource} usage ${per} ${formatQuantity(bound)}`;
      const [request, limit] = [requests.get(resource), limits.get(resource)];
      if (request === undefined) return `${text}.  No request is specified`;
      if (compareQuantities(request, bound) < 0) return `${text}, but request is ${formatQuantity(request)}`;
      if (limit !== undefined && compareQuantities(limit, bound) < 0)
        return `${text}, but limit is ${formatQuantity(limit)}`;
      return undefined;
    }),
    ...each(item.max, (resource, bound) => {
      const text = `maximum ${resource} usage ${per} ${formatQuantity(bound)}`;
      const [request, limit] = [requests.get(resource), limits.get(resource)];
      if (limit === undefined) return `${text}.  No ${isClaim ? "request" : "limit"} is specified`;
      if (!isClaim && compareQuantities(limit, bound) > 0)
        return `${text}, but limit is ${formatQuantity(limit)}`;
      if (request !== undefined && compareQuantities(request, bound) > 0)
        return `${text}, but request is ${formatQuantity(request)}`;
      return undefined;
    }),
    ...each(item.maxLimitRequestRatio, (resource, bound) => {
      const text = `${resource} max limit to request ratio ${per} ${formatQuantity(bound)}`;
      const [request, limit] = [requests.get(resource), limits.get(resource)];
      if (request === undefined || request.nanos === 0n)
        return `${text}, but no request is specified or request is 0`;
      if (limit === undefined || limit.nanos === 0n)
        return `${text}, but no limit is specified or limit is 0`;
      const isBeyond = limit.nanos * 1_000_000_000n > bound.nanos * request.nanos;
      return isBeyond
        ? `${text}, but provided ratio is ${(Number(limit.nanos) / Number(request.nanos)).toFixed(6)}`
        : undefined;
    }),
  ];
}
