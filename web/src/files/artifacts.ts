/**
 * The files of a conversation: handed over by the agent, written by it, attached by the user.
 *
 * Invariant: each path is listed once, the newest mention first; what was deleted is not listed.
 */
import { type ChatMessage, filesOf, toolCallsOf } from "../conversation/message";
import { list, text } from "../tools/kind";

export interface ConversationFile {
  path: string;
  origin: "presented" | "written" | "attached";
}

const WRITERS = new Set(["write_file", "str_replace", "edit_file"]);

export function filesOfConversation(messages: readonly ChatMessage[], artifacts: unknown): ConversationFile[] {
  const files = new Map<string, ConversationFile>();
  const gone = new Set<string>();
  const succeeded = new Set(
    messages.filter((one) => one.type === "tool" && one.status !== "error").map((one) => one.tool_call_id),
  );
  const add = (path: string, origin: ConversationFile["origin"]) => {
    gone.delete(path);
    const known = files.get(path);
    files.delete(path);
    files.set(path, { path, origin: known?.origin === "presented" ? "presented" : origin });
  };
  for (const message of messages) {
    for (const file of filesOf(message)) if (file.path) add(file.path, "attached");
    for (const call of toolCallsOf(message)) {
      if (WRITERS.has(call.name)) {
        const path = text(call.args.path) || text(call.args.file_path);
        if (path) add(path, "written");
      }
      if (call.name === "delete" && call.id && succeeded.has(call.id)) {
        const path = text(call.args.path);
        for (const known of [...files.keys()]) {
          if (known !== path && !known.startsWith(`${path}/`)) continue;
          files.delete(known);
          gone.add(known);
        }
      }
      if (call.name === "present_files") for (const path of list(call.args.filepaths)) add(path, "presented");
    }
  }
  for (const path of list(artifacts)) if (!gone.has(path)) add(path, "presented");
  return [...files.values()].reverse();
}
