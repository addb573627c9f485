/** What the command line needs to know of the server before it is loaded. */
export {
  ALL_CONTROLLERS,
  parseControllers,
  type ControllerName,
} from "../apiserver/controllers/selection.ts";
