/**
 * Where the embedded server differs from the recorded one on purpose: the server recorded is 1.26 and the one we
 * stand for is newer, some of its answers to bad input are faults, and some steps are about its own cluster.
 */
export interface Deliberate {
  readonly steps: readonly number[];
  readonly why: string;
  /** Only problems like this; all of the steps' problems where absent. */
  readonly only?: RegExp;
}

const TAINT = "a new Node is not tainted not-ready: nothing here would take the taint away";
const REPEATED = "the recorded server names one cause twice";
const FAULT = "500 for bad input is a fault of the recorded server; ours says what is wrong";

const MANAGED = /managedFields/;
const NO_DRIVERS = "an empty list of drivers is not told from none, so nobody owns it";

export const DELIBERATE: Readonly<Record<string, readonly Deliberate[]>> = {
  "01-discovery": [
    { steps: [4], why: "health has checks of our own" },
    {
      steps: [7, 8, 10, 17, 18, 19, 20, 28, 31],
      why: "other groups, kinds and subresources are served",
      only: /items|paths/,
    },
    { steps: [12, 14, 16], why: "newer servers fill in the singular name", only: /singular/ },
    { steps: [19, 20], why: "aggregated discovery is v2, no longer v2beta1", only: /apiVersion/ },
  ],
  "02-create-defaults": [
    { steps: [2], why: TAINT, only: /taints/ },
    { steps: [16], why: NO_DRIVERS, only: MANAGED },
  ],
  "03-create-errors": [
    { steps: [6], why: FAULT },
    { steps: [18], why: "the recording shows a revision of its own cluster", only: /apiVersion: v1/ },
  ],
  "04-update-concurrency": [{ steps: [11], why: FAULT }],
  "05-patch": [
    { steps: [36], why: FAULT },
    { steps: [14, 59], why: REPEATED, only: /causes/ },
  ],
  "06-delete": [
    { steps: [9], why: REPEATED, only: /causes/ },
    { steps: [31], why: FAULT },
    { steps: [75], why: NO_DRIVERS, only: MANAGED },
  ],
  "07-list": [
    { steps: [26, 28], why: FAULT },
    { steps: [49, 55], why: "other objects of the recorded cluster" },
  ],
  "08-watch": [
    { steps: [7], why: "revision 1 was still known to the recorded server" },
    { steps: [9], why: FAULT },
    { steps: [13, 14], why: "the old /watch/ paths are not served" },
    { steps: [15], why: "an object, not a stream, and recorded as a stream of one", only: /watch=true: 200/ },
    {
      steps: [11],
      why: "one bookmark before the timeout, where the recorded server sent another number",
      only: /items/,
    },
    { steps: [16], why: "ages depend on how long the replay takes", only: /cells/ },
    { steps: [18], why: "streaming lists are served" },
  ],
  "09-tables": [
    { steps: [22], why: "the age of a restart depends on the day of the recording", only: /ago/ },
    {
      steps: [23, 24],
      why: "newer servers have a VolumeAttributesClass column",
      only: /columnDefinitions|cells/,
    },
  ],
  "10-validation": [
    { steps: [2, 12, 52, 53, 67, 100], why: REPEATED, only: /causes/ },
    {
      steps: [22, 23, 24],
      why: "newer servers call it Invalid, field is immutable",
      only: /FieldValueForbidden/,
    },
    { steps: [35, 37, 38, 39], why: "podInfoOnMount and fsGroupPolicy may change from 1.30 on" },
    { steps: [48], why: "CSINode allocatable may change from 1.35 on" },
    { steps: [97, 101, 102], why: TAINT, only: /taints/ },
    {
      steps: [90],
      why: "entries are ordered by time, and here time passed between two writes",
      only: MANAGED,
    },
    { steps: [92], why: "resizeStatus is gone from newer servers", only: MANAGED },
  ],
  "11-subresources": [
    { steps: [9], why: FAULT },
    { steps: [18], why: "policy/v1beta1 is gone from newer servers" },
    { steps: [19, 22], why: "logs and exec are not served" },
    { steps: [29, 30], why: TAINT, only: /taints/ },
    {
      steps: [23, 25, 28, 35, 36, 38, 39, 41, 42, 43, 44],
      why: "a question that is not stored has no owners",
      only: MANAGED,
    },
    { steps: [40], why: "rules come in another order, and newer servers have more" },
  ],
  "13-namespace-gc": [
    { steps: [2], why: "the description is in our own words", only: /description/ },
    { steps: [2, 31], why: "what the engine's controllers write has no owner", only: MANAGED },
    { steps: [21, 23, 24, 26], why: "binding volumes is the product's work, not the engine's" },
  ],
  "17-negotiation": [
    {
      steps: [14, 18],
      why: "the recording counts characters and items in words of its own",
      only: /chars|len|\.n:/,
    },
    { steps: [20], why: "HTTP drops the body of a HEAD; the handler does not know about it" },
  ],
  "18-admission": [
    { steps: [10], why: "the recording shows the pod's spec without its name", only: /volumes/ },
  ],
};
