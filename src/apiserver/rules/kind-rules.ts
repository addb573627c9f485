import type { ApiObject } from "../objects.ts";
import type { Causes } from "./causes.ts";

/** When a write happens, for the fields that say so. */
export interface Moment {
  readonly now: Date;
}

/**
 * What the server makes of an object of one kind before it is stored. In the order of the real one:
 * applyDefaults, admission, prepare, validate, admission that refuses. All of it is pure; nothing
 * changes what it is given.
 */
export interface KindRules<T = ApiObject> {
  /** Fills in what may be left out, and folds fields that are only another spelling of others. */
  applyDefaults(object: T): T;
  /** Resets what a creator has no say in. */
  prepareCreate(object: T, moment: Moment): T;
  /** Restores from `old` what a write to the object itself has no say in. */
  prepareUpdate(object: T, old: T, moment: Moment): T;
  /** The same for a write to `/status`. */
  prepareStatusUpdate(object: T, old: T, moment: Moment): T;
  validateCreate(object: T): Causes;
  validateUpdate(object: T, old: T): Causes;
  validateStatusUpdate(object: T, old: T): Causes;
}

/** What a kind adds to the rules that hold for all; the split of spec and status is done before `prepare…`. */
export interface RuleParts<T> {
  /** A Node registers itself with its status; everybody else's is dropped. */
  readonly statusOnCreate?: "keep";
  applyDefaults?(object: T): T;
  prepareCreate?(object: T, moment: Moment): T;
  prepareUpdate?(object: T, old: T, moment: Moment): T;
  prepareStatusUpdate?(object: T, old: T, moment: Moment): T;
  /** What must hold at any time, so after every write to the object itself. */
  validate?(object: T): Causes;
  /** What must hold of a new object, but need not of one that is stored already. */
  validateNew?(object: T): Causes;
  /** What may not change. */
  validateChange?(object: T, old: T): Causes;
  validateStatus?(object: T, old: T): Causes;
}
