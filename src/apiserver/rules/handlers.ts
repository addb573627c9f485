import type { Container, Lifecycle, LifecycleHandler, Probe } from "kubernetes-types/core/v1.js";
import {
  causeIf,
  forbiddenField,
  inRange,
  invalidFor,
  invalidValue,
  notNegative,
  oneOf,
  required,
  requiredText,
  type Cause,
} from "./causes.ts";
import { PORTS } from "./container-ports.ts";
import type { Loose } from "./loose.ts";
import { portNameProblems } from "./text-rules.ts";

type PodContainer = Loose<Container>;
/** What a probe or a hook does; hooks alone can sleep, and probes alone speak gRPC. */
type Handler = Loose<Probe & LifecycleHandler>;

const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"] as const;

/** How a container is asked whether it is well, and told of its beginning and end. */
export function validateHandlers(field: string, container: PodContainer, graceSeconds: number): Cause[] {
  const { lifecycle = {} } = container;
  return [
    ...(["postStart", "preStop"] as const).flatMap((name) =>
      validateHook(`${field}.lifecycle.${name}`, lifecycle[name], graceSeconds),
    ),
    ...PROBES.flatMap((name) => validateProbe(`${field}.${name}`, name, container[name])),
  ];
}

/** A container that runs to its end before the others start has nobody to ask it. */
export function forbidHandlers(field: string, container: PodContainer): Cause[] {
  const rule = "may not be set for init containers without restartPolicy=Always";
  return (["lifecycle", ...PROBES] as const)
    .filter((name) => container[name] !== undefined)
    .map((name) => forbiddenField(`${field}.${name}`, rule));
}

function validateHook(
  field: string,
  hook: NonNullable<Loose<Lifecycle>["preStop"]> | undefined,
  graceSeconds: number,
): Cause[] {
  if (hook === undefined) return [];
  const seconds = hook.sleep?.seconds ?? 0;
  // Zero seconds are allowed since 1.33.
  const isTooLong = hook.sleep !== undefined && (seconds < 0 || seconds > graceSeconds);
  const rule = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`;
  return [
    ...validateHandler(field, hook),
    ...causeIf(isTooLong, invalidValue(`${field}.sleep`, seconds, rule)),
  ];
}

function validateProbe(
  field: string,
  name: (typeof PROBES)[number],
  probe: Loose<Probe> | undefined,
): Cause[] {
  if (probe === undefined) return [];
  const { successThreshold, terminationGracePeriodSeconds: grace } = probe;
  const counts = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold"] as const;
  return [
    ...validateHandler(field, probe),
    ...[...counts, "failureThreshold" as const].flatMap((count) =>
      notNegative(`${field}.${count}`, probe[count]),
    ),
    ...causeIf(
      grace !== undefined && grace <= 0,
      invalidValue(`${field}.terminationGracePeriodSeconds`, grace, "must be greater than 0"),
    ),
    ...causeIf(
      name === "readinessProbe" && grace !== undefined,
      invalidValue(`${field}.terminationGracePeriodSeconds`, grace, "must not be set for readinessProbes"),
    ),
    ...causeIf(
      name !== "readinessProbe" && successThreshold !== 1,
      invalidValue(`${field}.successThreshold`, successThreshold ?? 0, "must be 1"),
    ),
  ];
}

const ACTIONS = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;

function validateHandler(field: string, handler: Handler): Cause[] {
  const given = ACTIONS.filter((name) => handler[name] !== undefined);
  const [first, ...tooMany] = given;
  if (first === undefined) return [required(field, "must specify a handler type")];
  return [
    ...validateAction(`${field}.${first}`, first, handler),
    ...tooMany.map((name) => forbiddenField(`${field}.${name}`, "may not specify more than 1 handler type")),
  ];
}

function validateAction(field: string, name: (typeof ACTIONS)[number], handler: Handler): Cause[] {
  switch (name) {
    case "exec":
      return causeIf((handler.exec?.command ?? []).length === 0, required(`${field}.command`));
    case "httpGet":
      return [
        ...requiredText(`${field}.path`, handler.httpGet?.path),
        ...validatePort(`${field}.port`, handler.httpGet?.port),
        ...oneOf(`${field}.scheme`, handler.httpGet?.scheme, ["HTTP", "HTTPS"]),
      ];
    case "tcpSocket":
      return validatePort(`${field}.port`, handler.tcpSocket?.port);
    case "grpc":
      return validatePort(`${field}.port`, handler.grpc?.port);
    case "sleep":
      return [];
  }
}

function validatePort(field: string, port: number | string = 0): Cause[] {
  if (typeof port === "number") return inRange(field, port, PORTS);
  return invalidFor(field, port, portNameProblems(port));
}
