import type { Words } from "./words.ts";

const DESCRIBE = "kubectl --namespace {ns} describe {resource} {workload}";

/** Of a StatefulSet or Deployment: pods that are never made, or that wait for each other. */
export const WORKLOAD = {
  "workload-quota": {
    link: "workload",
    state: "waiting",
    says: "{what} of {kind} {ns}/{workload} cannot be made, because ResourceQuota {quota} has no room for it ({usage})",
    next: "the controller tries again with growing pauses; it works once something in the namespace goes or the quota grows",
    help: {
      none: "whoever owns the quota has to raise it, or something else in namespace {ns} has to go",
      look: "kubectl --namespace {ns} describe resourcequota {quota}",
    },
  },
  "workload-denied": {
    link: "workload",
    state: "waiting",
    says: "{what} of {kind} {ns}/{workload} is refused by the API server: {message}",
    next: "the controller tries again with growing pauses, and is refused until the rule or the template changes",
    help: { none: "what the refusal names has to be put right", look: DESCRIBE },
  },
  "workload-create-failed": {
    link: "workload",
    state: "waiting",
    says: "{what} of {kind} {ns}/{workload} cannot be made: {message}",
    next: "the controller tries again with growing pauses",
    help: { none: "what the message says has to be put right", look: DESCRIBE },
  },
  "workload-claim-deleting": {
    link: "claim",
    state: "waiting",
    says: "pod {pod} is not made while its claim {claim} is being deleted (finalizers {finalizers})",
    next: "the claim goes when no pod uses it ({users}); then the StatefulSet makes a new, empty one",
    help: {
      none: "a deletion cannot be taken back: what is on the volume goes or stays as its PersistentVolume's reclaim policy says",
      look: "kubectl --namespace {ns} describe pvc {claimName}",
    },
  },
  "workload-pod-not-made": {
    link: "workload",
    state: "waiting",
    confidence: "likely",
    says: "{what} of {kind} {ns}/{workload} was not made, and no event says why: the {kind} controller is not running, or it is stuck",
    next: "a running controller makes it within seconds",
    help: {
      command: "kubectl --namespace kube-system get leases,pods",
      note: "is kube-controller-manager running?",
    },
  },
  "workload-pod-not-ready": {
    link: "pod",
    state: "waiting",
    says: "pod {pod} has its volumes and runs, but is not ready: {message}",
    next: "{then}",
    help: {
      none: "this is none of the volumes' doing: its containers or their readiness probes say more",
      look: "kubectl --namespace {ns} describe pod {podName}",
    },
  },
  "workload-pod-over": {
    link: "pod",
    state: "waiting",
    says: "pod {pod} is over ({phase}: {message}) and has not been replaced",
    next: "its controller deletes it and makes a new one",
    help: {
      none: "its last state says why it ended",
      look: "kubectl --namespace {ns} describe pod {podName}",
    },
  },
  "rollout-deadlock": {
    link: "workload",
    state: "held",
    waiting: "held-by-other-node",
    says: "the rolling update waits for itself: new pod {pod} ({place}) needs claim {claim}, which only {scope} may have, and old pod {other} ({otherPlace}) keeps it until the new one is ready",
    next: "never by itself: a rolling update ends the old pod only once the new one is ready",
    help: {
      command:
        'kubectl --namespace {ns} patch deployment {workload} --patch \'{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}\'',
      note: "Recreate ends the old pod first: a short outage at each update, and no deadlock",
    },
  },
  "replicas-share-claim": {
    link: "workload",
    state: "held",
    waiting: "held-by-other-node",
    says: "the replicas share claim {claim}, which only {scope} may have: pod {other} has it ({otherPlace}), so pod {pod} ({place}) never gets it",
    next: "never by itself, as long as both replicas are wanted",
    help: {
      none: "replicas need a ReadWriteMany claim, a claim each (a StatefulSet with volumeClaimTemplates), or one replica",
      look: "kubectl --namespace {ns} get deployment {workload} --output yaml",
    },
  },
} as const satisfies Record<string, Words>;
