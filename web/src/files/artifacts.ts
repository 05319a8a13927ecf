/**
 * The files of a conversation: handed over by the agent, written by it, attached by the user.
 *
 * Invariant: each path is listed once, the newest mention first.
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
  const add = (path: string, origin: ConversationFile["origin"]) => {
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
      if (call.name === "present_files") for (const path of list(call.args.filepaths)) add(path, "presented");
    }
  }
  for (const path of list(artifacts)) add(path, "presented");
  return [...files.values()].reverse();
}
