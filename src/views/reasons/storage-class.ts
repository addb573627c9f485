import type { Words } from "./words.ts";

/** A StorageClass that cannot give volumes, and a driver that cannot serve them. */
export const STORAGE_CLASS = {
  "class-gone": {
    link: "class",
    state: "unbound",
    says: "StorageClass {class} does not exist, and {askers} for it (there are: {others})",
    next: "they are taken up as soon as a class of that name exists; the class of a claim cannot be changed",
    help: {
      command: "kubectl apply --filename CLASS.yaml",
      note: "or make the claims anew with a class that exists",
    },
  },
  "class-provisioner-unknown": {
    link: "driver",
    state: "unbound",
    confidence: "likely",
    says: "nothing in the cluster knows provisioner {provisioner} of StorageClass {class}: there is no CSIDriver of that name, no node has it, and no volume was ever made by it",
    next: "nothing until that provisioner is installed; claims of the class are taken up then",
    help: { command: "kubectl get csidrivers,csinodes", note: "is the name spelt as the driver has it?" },
  },
  "class-driver-nowhere": {
    link: "driver",
    state: "mounting",
    says: "driver {provisioner} of StorageClass {class} is registered on no node, so its volumes can be mounted nowhere",
    next: "it goes on as soon as the driver's node plugin runs and registers",
    help: { command: "mooring why csidriver/{provisioner}" },
  },
  "class-topology-unmatched": {
    link: "class",
    state: "unbound",
    says: "no node is where StorageClass {class} may make volumes: allowedTopologies wants {terms}",
    next: "nothing until a node with those labels is there; the field of a class cannot be changed",
    help: {
      none: "label the nodes as they are, or make a class whose allowedTopologies names labels that nodes have",
      look: "kubectl get nodes --show-labels",
    },
  },
  "class-two-defaults": {
    link: "class",
    state: "unbound",
    says: "several StorageClasses are the default ({defaults}): a claim that names no class gets the newest, {newest}",
    next: "nothing waits for it, but new claims may get another class than you mean",
    help: {
      command: "kubectl annotate storageclass CLASS storageclass.kubernetes.io/is-default-class-",
      note: "takes the mark away from a class; volumes that exist are not touched",
    },
  },
  "class-no-default": {
    link: "class",
    state: "unbound",
    says: "no StorageClass is the default, and {askers} without naming a class",
    next: "they are bound once a class is the default, or a PersistentVolume without a class fits",
    help: {
      command: "kubectl annotate storageclass CLASS storageclass.kubernetes.io/is-default-class=true",
      note: "every claim without a class then gets a volume of it",
    },
  },
  "driver-nowhere": {
    link: "driver",
    state: "mounting",
    says: "driver {driver} is registered on no node, so its volumes can be mounted nowhere ({needed})",
    next: "it goes on as soon as the driver's node plugin runs and registers",
    help: {
      command: "kubectl get daemonsets --all-namespaces",
      note: "is the driver's node plugin there, and are its pods ready?",
    },
  },
  "driver-attacher-silent": {
    link: "attachment",
    state: "attaching",
    waiting: "driver-attaching",
    confidence: "likely",
    says: "no external-attacher works for driver {driver}: it has to attach its volumes (attachRequired), and {pending} without anybody having taken it up",
    next: "they are attached as soon as an attacher for {driver} runs",
    help: { command: "kubectl get pods --all-namespaces | grep -i attacher" },
  },
} as const satisfies Record<string, Words>;
