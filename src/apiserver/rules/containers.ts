import type { Container, Volume } from "kubernetes-types/core/v1.js";
import {
  causeIf,
  duplicate,
  forbiddenField,
  invalidFor,
  invalidValue,
  oneOf,
  required,
  type Cause,
} from "./causes.ts";
import { validateEnv, validateEnvFrom } from "./container-env.ts";
import { validateMountsAndDevices } from "./container-mounts.ts";
import { validateHostPorts, validatePorts } from "./container-ports.ts";
import { validateResources } from "./container-resources.ts";
import { forbidHandlers, validateHandlers } from "./handlers.ts";
import type { Loose } from "./loose.ts";
import { validateContainerSecurity } from "./security-context.ts";
import { labelProblems } from "./text-rules.ts";

type PodContainer = Loose<Container>;

/** What a container has to fit into. */
export interface Surroundings {
  /** Those of the pod that are right; what is wrong with one is said where it stands. */
  readonly volumes: readonly Loose<Volume>[];
  readonly graceSeconds: number;
  /** Names of containers in other lists of the pod. */
  readonly taken: readonly string[];
}

export function validateContainers(
  field: string,
  containers: readonly PodContainer[],
  around: Surroundings,
): Cause[] {
  return [
    ...validateEach(field, containers, around),
    ...containers.flatMap((container, index) =>
      validateHandlers(`${field}[${index}]`, container, around.graceSeconds),
    ),
    ...validateHostPorts(field, containers),
  ];
}

/** They run one after the other, but for those that are started first and stay. */
export function validateInitContainers(
  field: string,
  containers: readonly PodContainer[],
  around: Surroundings,
): Cause[] {
  return [
    ...validateEach(field, containers, around),
    ...containers.flatMap((container, index) => {
      const path = `${field}[${index}]`;
      const stays = container.restartPolicy === "Always";
      return [
        ...oneOf(`${path}.restartPolicy`, container.restartPolicy, ["Always", "Never", "OnFailure"]),
        ...(stays ? validateHandlers(path, container, around.graceSeconds) : forbidHandlers(path, container)),
      ];
    }),
  ];
}

/** They come and go while the pod runs, so they may not be what it is about. */
export function validateEphemeralContainers(
  field: string,
  containers: readonly PodContainer[],
  around: Surroundings,
): Cause[] {
  const forbidden = [
    "ports",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resources",
  ] as const;
  return [
    ...validateEach(field, containers, around),
    ...containers.flatMap((container, index) =>
      forbidden
        .filter((name) => container[name] !== undefined)
        .map((name) =>
          forbiddenField(`${field}[${index}].${name}`, "cannot be set for an Ephemeral Container"),
        ),
    ),
  ];
}

function validateEach(
  field: string,
  containers: readonly PodContainer[],
  { volumes, taken }: Surroundings,
): Cause[] {
  const names = containers.map(({ name = "" }) => name);
  return containers.flatMap((container, index) => {
    const { name = "" } = container;
    const isTaken = name !== "" && (names.indexOf(name) < index || taken.includes(name));
    return [
      ...validateContainer(`${field}[${index}]`, container, volumes),
      ...causeIf(isTaken, duplicate(`${field}[${index}].name`, name)),
    ];
  });
}

function validateContainer(
  field: string,
  container: PodContainer,
  volumes: readonly Loose<Volume>[],
): Cause[] {
  const { name = "", terminationMessagePolicy } = container;
  return [
    ...(name === "" ? [required(`${field}.name`)] : invalidFor(`${field}.name`, name, labelProblems(name))),
    ...validateImage(`${field}.image`, container.image),
    ...oneOf(`${field}.terminationMessagePolicy`, terminationMessagePolicy, [
      "File",
      "FallbackToLogsOnError",
    ]),
    ...validatePorts(`${field}.ports`, container.ports),
    ...validateEnv(`${field}.env`, container.env),
    ...validateEnvFrom(`${field}.envFrom`, container.envFrom),
    ...validateMountsAndDevices(field, container, volumes),
    ...oneOf(`${field}.imagePullPolicy`, container.imagePullPolicy, ["Always", "IfNotPresent", "Never"]),
    ...validateResources(`${field}.resources`, container.resources),
    ...validateContainerSecurity(`${field}.securityContext`, container.securityContext),
  ];
}

export function validateImage(field: string, image = ""): Cause[] {
  if (image === "") return [required(field)];
  return causeIf(
    image.trim() !== image,
    invalidValue(field, image, "must not have leading or trailing whitespace"),
  );
}
