/**
 * What a tool call is, for the eye: its kind, a one-line title, and the label the model gave it.
 *
 * Invariant: an unknown tool is `generic`, and everything it was given can still be read.
 */
import type { ToolCall } from "../conversation/message";

export type ToolKind =
  | "command"
  | "write"
  | "replace"
  | "read"
  | "delete"
  | "find"
  | "web-search"
  | "web-fetch"
  | "image-search"
  | "todos"
  | "subagent"
  | "present"
  | "image"
  | "clarification"
  | "generic";

const KINDS: Record<string, ToolKind> = {
  bash: "command",
  execute: "command",
  background: "command",
  write_file: "write",
  str_replace: "replace",
  edit_file: "replace",
  read_file: "read",
  delete: "delete",
  ls: "find",
  glob: "find",
  grep: "find",
  list_uploaded_files: "find",
  web_search: "web-search",
  web_fetch: "web-fetch",
  image_search: "image-search",
  write_todos: "todos",
  task: "subagent",
  present_files: "present",
  view_image: "image",
  ask_clarification: "clarification",
};

export function kindOf(call: ToolCall): ToolKind {
  return Object.hasOwn(KINDS, call.name) ? (KINDS[call.name] ?? "generic") : "generic";
}

/** What the call is about: the command, the file, the words searched for. */
export function subjectOf(call: ToolCall): string {
  const { args } = call;
  switch (kindOf(call)) {
    case "command":
      return firstLine(text(args.command) || text(args.id));
    case "write":
    case "replace":
    case "read":
    case "delete":
      return shortPath(text(args.path) || text(args.file_path));
    case "find":
      return [text(args.pattern), shortPath(text(args.path))].filter(Boolean).join(" · ");
    case "web-search":
    case "image-search":
      return text(args.query);
    case "web-fetch":
      return text(args.url);
    case "todos":
      return "";
    case "subagent":
      return text(args.description) || firstLine(text(args.prompt));
    case "present":
      return list(args.filepaths).map(baseName).join(", ");
    case "image":
      return shortPath(text(args.image_path));
    case "clarification":
      return text(args.question);
    case "generic":
      return firstLine(Object.values(args).map(text).find(Boolean) ?? "");
  }
}

/** The label that sandbox tools are given for the user. */
export function labelOf(call: ToolCall): string | undefined {
  if (kindOf(call) === "subagent" || kindOf(call) === "generic") return undefined;
  return text(call.args.description) || undefined;
}

export function baseName(path: string): string {
  return path.split("/").filter(Boolean).at(-1) ?? path;
}

/** Below the conversation's own folder, as a person would say it. */
export function shortPath(path: string): string {
  return path.replace(/^\/mnt\/user-data\//, "");
}

/** Whether the subject is words, and no name or code. */
export function speaks(kind: ToolKind): boolean {
  return ["subagent", "clarification", "web-search", "image-search", "todos"].includes(kind);
}

export const text = (value: unknown): string => (typeof value === "string" ? value : "");

export const list = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];

const firstLine = (value: string): string => value.trim().split("\n", 1)[0] ?? "";
