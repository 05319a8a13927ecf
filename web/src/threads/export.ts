/**
 * A conversation as a markdown file.
 *
 * Invariant: a fence is longer than any run of backticks inside it.
 */
import { type ChatMessage, isHidden, textOf, toolCallsOf } from "../conversation/message";

export function exportMarkdown(title: string, messages: readonly ChatMessage[], words: { you: string }): string {
  const parts = [`# ${title}`];
  for (const message of messages) {
    if (isHidden(message)) continue;
    if (message.type === "human") parts.push(`## ${words.you}`, textOf(message));
    if (message.type === "ai") {
      const text = textOf(message);
      if (text) parts.push("## hart", text);
      for (const call of toolCallsOf(message)) {
        parts.push(`**${call.name}**`, fenced(JSON.stringify(call.args, null, 2), "json"));
      }
    }
    if (message.type === "tool") parts.push(fenced(textOf(message), ""));
  }
  return `${parts.join("\n\n")}\n`;
}

function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
