/**
 * Questions of `ask_clarification`, and the messages that answer them.
 *
 * Invariant: an answer names the question it answers, and its text says everything the form holds.
 */
import type { ChatMessage } from "../conversation/message";

export interface ChoiceOption {
  id: string;
  label: string;
  value: string;
}

export type FieldKind = "text" | "textarea" | "number" | "select" | "multi_select" | "checkbox" | "date";

export interface FormField {
  name: string;
  label: string;
  type: FieldKind;
  required: boolean;
  options: ChoiceOption[];
  placeholder?: string | undefined;
}

export interface Clarification {
  requestId: string;
  version: number;
  kind: string;
  question: string;
  context?: string | undefined;
  options: ChoiceOption[];
  fields: FormField[];
}

const FIELD_KINDS: readonly string[] = ["text", "textarea", "number", "select", "multi_select", "checkbox", "date"];

/** Reads the question out of the tool's result, if it is one. */
export function clarificationOf(result: ChatMessage | undefined): Clarification | undefined {
  const artifact = result?.artifact;
  if (!isObject(artifact) || !isObject(artifact.human_input)) return undefined;
  const asked = artifact.human_input;
  if (asked.kind !== "human_input_request" || typeof asked.request_id !== "string") return undefined;
  return {
    requestId: asked.request_id,
    version: typeof asked.version === "number" ? asked.version : 1,
    kind: String(asked.clarification_type ?? "missing_info"),
    question: String(asked.question ?? ""),
    context: typeof asked.context === "string" ? asked.context : undefined,
    options: optionsOf(asked.options),
    fields: Array.isArray(asked.fields) ? asked.fields.flatMap(fieldOf) : [],
  };
}

function fieldOf(field: unknown): FormField[] {
  if (!isObject(field) || typeof field.name !== "string") return [];
  const type = FIELD_KINDS.includes(String(field.type)) ? (field.type as FieldKind) : "text";
  return [
    {
      name: field.name,
      label: String(field.label ?? field.name),
      type,
      required: field.required === true,
      options: optionsOf(field.options),
      placeholder: typeof field.placeholder === "string" ? field.placeholder : undefined,
    },
  ];
}

function optionsOf(options: unknown): ChoiceOption[] {
  if (!Array.isArray(options)) return [];
  return options.flatMap((option, index) => {
    if (typeof option === "string") return [{ id: `option-${index + 1}`, label: option, value: option }];
    if (!isObject(option)) return [];
    const label = String(option.label ?? option.value ?? "");
    return [{ id: String(option.id ?? `option-${index + 1}`), label, value: String(option.value ?? label) }];
  });
}

export type FormValues = ReadonlyMap<string, string | string[] | boolean>;

/** What a person still has to fill in. */
export function missingFields(fields: readonly FormField[], values: FormValues): string[] {
  return fields
    .filter((field) => {
      const value = values.get(field.name);
      if (!field.required) return false;
      if (field.type === "checkbox") return value !== true;
      if (Array.isArray(value)) return value.length === 0;
      return typeof value !== "string" || value.trim() === "";
    })
    .map((field) => field.name);
}

/** The form as the text the model reads. */
export function formText(fields: readonly FormField[], values: FormValues): string {
  return fields
    .map((field) => {
      const value = values.get(field.name);
      const labels = (raw: string) => field.options.find((option) => option.value === raw)?.label ?? raw;
      if (field.type === "checkbox") return `${field.label}: ${value === true ? "yes" : "no"}`;
      if (Array.isArray(value)) return `${field.label}: ${value.map(labels).join(", ") || "-"}`;
      return `${field.label}: ${typeof value === "string" && value ? labels(value) : "-"}`;
    })
    .join("\n");
}

export function answerInWords(asked: Clarification, value: string): ChatMessage {
  return answer(asked, value, { response_kind: "text" });
}

export function answerByOption(asked: Clarification, option: ChoiceOption): ChatMessage {
  return answer(asked, option.value, { response_kind: "option", option_id: option.id });
}

function answer(asked: Clarification, value: string, how: Record<string, string>): ChatMessage {
  return {
    type: "human",
    content: value,
    additional_kwargs: {
      hide_from_ui: true,
      human_input_response: {
        version: 1,
        kind: "human_input_response",
        source: "ask_clarification",
        request_id: asked.requestId,
        value,
        ...how,
      },
    },
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
