/**
 * Messages as LangGraph spells them, and what can be read from one.
 *
 * Invariant: nothing here trusts a field to be there or to have the type it should.
 */

export interface ToolCall {
  id?: string | undefined;
  name: string;
  args: Record<string, unknown>;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
}

export interface ChatMessage {
  id?: string | undefined;
  type: string;
  name?: string | null | undefined;
  content?: unknown;
  additional_kwargs?: Record<string, unknown> | undefined;
  response_metadata?: Record<string, unknown> | undefined;
  tool_calls?: ToolCall[] | undefined;
  invalid_tool_calls?: { name?: string | null; args?: string | null; id?: string | null }[] | undefined;
  tool_call_id?: string | undefined;
  status?: string | undefined;
  artifact?: unknown;
  usage_metadata?: Usage | null | undefined;
}

type Block = Record<string, unknown>;

function blocks(message: ChatMessage): Block[] {
  if (typeof message.content === "string") return [{ type: "text", text: message.content }];
  if (!Array.isArray(message.content)) return [];
  return message.content.map((block: unknown) =>
    typeof block === "string" ? { type: "text", text: block } : ((block ?? {}) as Block),
  );
}

const THINK = /<think>([\s\S]*?)(?:<\/think>|$)/g;

/** The words, without the reasoning that some models write between tags. */
export function textOf(message: ChatMessage): string {
  const text = blocks(message)
    .filter((block) => block.type === "text" && typeof block.text === "string")
    .map((block) => block.text as string)
    .join("");
  if (message.type !== "ai" || !text.includes("<think>")) return text;
  return text.replace(THINK, "").trimStart();
}

export function reasoningOf(message: ChatMessage): string {
  const parts: string[] = [];
  for (const block of blocks(message)) {
    if (block.type === "reasoning") parts.push(reasoningBlock(block));
    else if (block.type === "thinking" && typeof block.thinking === "string") parts.push(block.thinking);
    else if (block.type === "text" && typeof block.text === "string" && block.text.includes("<think>")) {
      for (const match of block.text.matchAll(THINK)) parts.push(match[1] ?? "");
    }
  }
  const thought = parts.filter((part) => part.trim() !== "").join("\n\n");
  const told = message.additional_kwargs?.reasoning_content;
  // States tell it both ways, fragments only this one.
  return thought || (typeof told === "string" && told.trim() !== "" ? told : "");
}

function reasoningBlock(block: Block): string {
  if (typeof block.reasoning === "string") return block.reasoning;
  if (!Array.isArray(block.summary)) return "";
  return block.summary
    .map((part: unknown) => (isObject(part) && typeof part.text === "string" ? part.text : ""))
    .join("\n\n");
}

export interface Picture {
  /** A `data:` address; pictures from elsewhere are not loaded. */
  data?: string;
  /** Where it would come from. */
  remote?: string;
}

export function picturesOf(message: ChatMessage): Picture[] {
  return blocks(message).flatMap((block): Picture[] => {
    if (block.type === "image_url") {
      const url = isObject(block.image_url) ? block.image_url.url : block.image_url;
      return typeof url === "string" ? [picture(url)] : [];
    }
    if (block.type === "image") {
      const data = block.data ?? block.base64;
      const mime = typeof block.mime_type === "string" ? block.mime_type : "image/png";
      if (typeof data === "string") return [picture(`data:${mime};base64,${data}`)];
      if (typeof block.url === "string") return [picture(block.url)];
    }
    return [];
  });
}

const INLINE_PICTURE = /^data:image\/(png|jpe?g|gif|webp|avif|bmp);base64,/i;

function picture(url: string): Picture {
  return INLINE_PICTURE.test(url) ? { data: url } : { remote: url };
}

export interface AttachedFile {
  filename: string;
  size?: number;
  path?: string;
}

export function filesOf(message: ChatMessage): AttachedFile[] {
  const files = message.additional_kwargs?.files;
  if (!Array.isArray(files)) return [];
  return files.filter((file): file is AttachedFile => isObject(file) && typeof file.filename === "string");
}

/** Messages that middlewares write for the model, or that belong to a form. */
export function isHidden(message: ChatMessage): boolean {
  return message.additional_kwargs?.hide_from_ui === true || message.type === "system";
}

export function toolCallsOf(message: ChatMessage): ToolCall[] {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  return calls.filter((call) => typeof call?.name === "string" && call.name !== "");
}

export function modelOf(message: ChatMessage): string | undefined {
  const name = message.response_metadata?.model_name;
  return typeof name === "string" ? name : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
