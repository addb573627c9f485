import type { Container, ContainerPort } from "kubernetes-types/core/v1.js";
import {
  causeIf,
  duplicate,
  inRange,
  invalidFor,
  invalidValue,
  oneOf,
  required,
  type Cause,
} from "./causes.ts";
import type { Loose } from "./loose.ts";
import { ipProblems, portNameProblems } from "./text-rules.ts";

export const PORTS = { min: 1, max: 65_535 };

export function validatePorts(field: string, ports: readonly Loose<ContainerPort>[] = []): Cause[] {
  const names = ports.map(({ name = "" }) => name);
  return ports.flatMap(({ name = "", containerPort = 0, hostPort = 0, protocol, hostIP = "" }, index) => {
    const path = `${field}[${index}]`;
    const problems = name === "" ? [] : portNameProblems(name);
    const isRepeated = problems.length === 0 && name !== "" && names.indexOf(name) < index;
    return [
      ...invalidFor(`${path}.name`, name, problems),
      ...causeIf(isRepeated, duplicate(`${path}.name`, name)),
      ...(containerPort === 0
        ? [required(`${path}.containerPort`)]
        : inRange(`${path}.containerPort`, containerPort, PORTS)),
      ...(hostPort === 0 ? [] : inRange(`${path}.hostPort`, hostPort, PORTS)),
      ...oneOf(`${path}.protocol`, protocol, ["SCTP", "TCP", "UDP"]),
      ...(hostIP === "" ? [] : invalidFor(`${path}.hostIP`, hostIP, ipProblems(hostIP))),
    ];
  });
}

/** Two containers that run at the same time cannot both have a port of the host. */
export function validateHostPorts(field: string, containers: readonly Loose<Container>[]): Cause[] {
  const taken = new Set<string>();
  return containers.flatMap(({ ports = [] }, container) =>
    ports.flatMap(({ protocol = "", hostIP = "", hostPort = 0 }, index) => {
      const port = `${protocol}/${hostIP}/${hostPort}`;
      if (hostPort === 0) return [];
      if (taken.has(port)) return [duplicate(`${field}[${container}].ports[${index}].hostPort`, port)];
      taken.add(port);
      return [];
    }),
  );
}

/** On the host's network there are no ports but the host's. */
export function validateHostNetworkPorts(field: string, containers: readonly Loose<Container>[]): Cause[] {
  return containers.flatMap(({ ports = [] }, container) =>
    ports.flatMap(({ containerPort = 0, hostPort = 0 }, index) =>
      causeIf(
        hostPort !== containerPort,
        invalidValue(
          `${field}[${container}].ports[${index}].hostPort`,
          hostPort,
          "must match `containerPort` when `hostNetwork` is true",
        ),
      ),
    ),
  );
}
