/** For tests: the least that makes an object of each kind which runs pods, finds them or says what they may do. */
export const SAMPLES: Readonly<Record<string, object>> = samples();

function samples(): Record<string, object> {
  const labels = { app: "web" };
  const selector = { matchLabels: labels };
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: "c", image: "nginx:1", ports: [{ containerPort: 80 }] }] },
  };
  const job = {
    template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "busybox" }] } },
  };
  const webhook = {
    name: "h.ex.io",
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    clientConfig: { url: "https://h" },
  };
  const matchConstraints = {
    resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
  };
  const request = Buffer.from("-----BEGIN CERTIFICATE REQUEST-----\n").toString("base64");
  return {
    Service: { spec: { ports: [{ port: 80 }], selector: labels } },
    Endpoints: { subsets: [{ addresses: [{ ip: "10.1.2.3" }], ports: [{ port: 80 }] }] },
    LimitRange: { spec: { limits: [{ type: "Container", max: { cpu: "2" } }] } },
    PodTemplate: { template },
    ReplicationController: { spec: { template } },
    ResourceQuota: { spec: { hard: { pods: "5" } } },
    ControllerRevision: { revision: 3, data: { spec: { a: [1, { b: null }] } } },
    DaemonSet: { spec: { selector, template } },
    Deployment: { spec: { selector, template } },
    ReplicaSet: { spec: { selector, template } },
    StatefulSet: {
      spec: {
        selector,
        template,
        serviceName: "web",
        volumeClaimTemplates: [
          {
            metadata: { name: "data" },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
          },
        ],
      },
    },
    CronJob: { spec: { schedule: "*/5 * * * *", jobTemplate: { spec: job } } },
    Job: { spec: job },
    HorizontalPodAutoscaler: {
      spec: { maxReplicas: 3, scaleTargetRef: { kind: "Deployment", name: "web", apiVersion: "apps/v1" } },
    },
    EndpointSlice: { addressType: "IPv4", endpoints: [{ addresses: ["10.1.2.3"] }], ports: [{ port: 80 }] },
    Ingress: { spec: { defaultBackend: { service: { name: "web", port: { number: 80 } } } } },
    IngressClass: { spec: { controller: "ex.io/c", parameters: { kind: "K", name: "n" } } },
    IPAddress: { spec: { parentRef: { resource: "services", namespace: "t", name: "web" } } },
    NetworkPolicy: { spec: { podSelector: {}, egress: [{ ports: [{ port: 80 }] }] } },
    ServiceCIDR: { spec: { cidrs: ["10.5.0.0/16"] } },
    MutatingAdmissionPolicy: {
      spec: {
        matchConstraints,
        mutations: [
          {
            patchType: "JSONPatch",
            jsonPatch: { expression: "[JSONPatch{op: 'remove', path: '/spec/paused'}]" },
          },
        ],
        reinvocationPolicy: "Never",
      },
    },
    MutatingAdmissionPolicyBinding: { spec: { policyName: "p" } },
    MutatingWebhookConfiguration: { webhooks: [webhook] },
    ValidatingAdmissionPolicy: { spec: { matchConstraints, validations: [{ expression: "true" }] } },
    ValidatingAdmissionPolicyBinding: { spec: { policyName: "p", validationActions: ["Deny"] } },
    ValidatingWebhookConfiguration: { webhooks: [webhook] },
    CertificateSigningRequest: { spec: { request, signerName: "ex.io/s", usages: ["client auth"] } },
    FlowSchema: { spec: { priorityLevelConfiguration: { name: "p" } } },
    PriorityLevelConfiguration: { spec: { type: "Limited", limited: { limitResponse: { type: "Reject" } } } },
    RuntimeClass: { handler: "runc" },
    PodDisruptionBudget: { spec: { minAvailable: 1, selector } },
    DeviceClass: { spec: { selectors: [{ cel: { expression: "true" } }] } },
    ResourceClaim: { spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "d" } }] } } },
    ResourceClaimTemplate: {
      spec: { spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "d" } }] } } },
    },
    ResourceSlice: {
      spec: {
        driver: "ex.io",
        nodeName: "n",
        pool: { name: "n", generation: 1, resourceSliceCount: 1 },
        devices: [
          {
            name: "d0",
            capacity: { mem: { value: "1Gi" } },
            attributes: { a: { int: 0 }, b: { bool: false } },
          },
        ],
      },
    },
    PriorityClass: { value: 10 },
  };
}
