import type { Outcome } from "../../kube/workqueue/controller.ts";
import { fieldAt, parseStored, type ApiObject } from "../objects.ts";
import type { VerbDeps } from "../request.ts";
import type { StoredObject } from "../store/store.ts";
import { AGAIN, DONE, type EngineController, type Marks } from "./engine-controller.ts";
import { finalizersOf, isMarked } from "./lifecycle.ts";
import { toText } from "./served.ts";
import { changeSeen, withoutFinalizer } from "./writes.ts";

const CLASSES = "volumeattributesclasses.storage.k8s.io";
const CLAIMS = "persistentvolumeclaims";
const VOLUMES = "persistentvolumes";
const VAC_PROTECTION = "kubernetes.io/vac-protection";

/**
 * A VolumeAttributesClass that is being deleted goes once no claim and no volume names it: whoever modifies the volume
 * reads the class's parameters again. Admission puts the finalizer on; here those get it that were stored without, and
 * it is removed. Keys are names of classes.
 */
export function createVacProtection(verbs: VerbDeps, { mark }: Marks): EngineController {
  const { store } = verbs;
  const users = new ClassUsers();

  function protect(object: ApiObject): ApiObject {
    const isProtected = finalizersOf(object).includes(VAC_PROTECTION);
    if (isMarked(object)) {
      const isReleased = isProtected && !users.has(object.metadata.name ?? "");
      return isReleased ? withoutFinalizer(object, VAC_PROTECTION) : object;
    }
    if (isProtected) return object;
    const finalizers = [...finalizersOf(object), VAC_PROTECTION];
    return { ...object, metadata: { ...object.metadata, finalizers } };
  }

  return {
    clear: () => users.clear(),

    observe({ type, object }) {
      const { key } = object;
      if (key.resource === CLASSES && type !== "deleted") mark(key.name);
      if (key.resource !== CLAIMS && key.resource !== VOLUMES) return;
      const named = type === "deleted" ? [] : classesNamedBy(object);
      for (const name of users.set(toText(key), named)) mark(name);
    },

    async reconcile(name): Promise<Outcome> {
      const stored = store.get({ resource: CLASSES, namespace: "", name });
      if (stored === undefined) return DONE;
      const object = parseStored(stored);
      if (protect(object) === object) return DONE;
      return (await changeSeen(verbs, stored, protect)) === "conflict" ? AGAIN : DONE;
    },
  };
}

/** The class wanted, the one the volume has, and the one it is being given. */
const CLASS_FIELDS = [
  ["spec", "volumeAttributesClassName"],
  ["status", "currentVolumeAttributesClassName"],
  ["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
] as const;

/** Few claims and volumes name a class, and only those need to be parsed. */
function classesNamedBy(stored: StoredObject): readonly string[] {
  if (!stored.text.includes("olumeAttributesClassName")) return [];
  const object = parseStored(stored);
  return CLASS_FIELDS.flatMap((path) => {
    const name = fieldAt(object, ...path);
    return typeof name === "string" && name !== "" ? [name] : [];
  });
}

/** Who names which class, both ways round. */
class ClassUsers {
  readonly #classes = new Map<string, readonly string[]>();
  readonly #users = new Map<string, Set<string>>();

  clear(): void {
    this.#classes.clear();
    this.#users.clear();
  }

  has(name: string): boolean {
    return this.#users.has(name);
  }

  /** Replaces what the user names; returns what it named before. */
  set(user: string, names: readonly string[]): readonly string[] {
    const before = this.#classes.get(user) ?? [];
    for (const name of before) this.#drop(name, user);
    if (names.length === 0) this.#classes.delete(user);
    else this.#classes.set(user, names);
    for (const name of names) this.#users.set(name, (this.#users.get(name) ?? new Set()).add(user));
    return before;
  }

  #drop(name: string, user: string): void {
    const users = this.#users.get(name);
    users?.delete(user);
    if (users?.size === 0) this.#users.delete(name);
  }
}
