/** What the command line needs to check its flags before anything is loaded or started. */
export { parseEndpoint } from "../csi/endpoint.ts";
export { parseFaults, type Fault } from "../driver/faults.ts";
