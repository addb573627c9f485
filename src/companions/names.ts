/** Words that Kubernetes and the CSI sidecars write on objects; others read them, so none may be spelled differently. */

/** On a claim: the binder has finished; what it is bound to is no longer a wish. */
export const BIND_COMPLETED = "pv.kubernetes.io/bind-completed";
/** On a claim or a volume: the binder chose the other half, not a person. */
export const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";
/** On a volume: the driver that made it, and that alone deletes it. */
export const PROVISIONED_BY = "pv.kubernetes.io/provisioned-by";
/** On a claim: who shall make its volume. Two spellings, both read by provisioners in use. */
export const STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner";
export const STORAGE_PROVISIONER_BETA = "volume.beta.kubernetes.io/storage-provisioner";
/** On a claim: the node its first pod will run on; the scheduler writes it. */
export const SELECTED_NODE = "volume.kubernetes.io/selected-node";
/** Where a class stood before there was a field for it. */
export const CLASS_BETA = "volume.beta.kubernetes.io/storage-class";
export const DEFAULT_CLASS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
] as const;

/** On a volume: its driver still has it. */
export const PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer";
export const DELETION_SECRET_NAME = "volume.kubernetes.io/provisioner-deletion-secret-name";
export const DELETION_SECRET_NAMESPACE = "volume.kubernetes.io/provisioner-deletion-secret-namespace";
/**
 * On a claim, ours: a CreateVolume was begun for it, and no PersistentVolume says yet what came of it. Upstream keeps
 * that in memory, and a provisioner that is killed meanwhile leaks the volume when the claim goes.
 */
export const PROVISIONING_FINALIZER = "mooring.dev/provisioning-protection";
/** On a claim that is being cloned. */
export const CLONING_FINALIZER = "provisioner.storage.kubernetes.io/cloning-protection";
