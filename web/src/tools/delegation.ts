/**
 * How a subagent ended, from the result of its call.
 *
 * Invariant: the result's own keys are believed before its text; a result without them is shown as it is.
 */
import { type ChatMessage, textOf } from "../conversation/message";

export interface Delegation {
  status?: string;
  /** What it reported, without the words around it that are for the model. */
  said?: string;
  error?: string;
  model?: string;
  tokens?: number;
  /** In milliseconds. */
  took?: number;
  /** It had to stop before it was done. */
  capped: boolean;
}

export function delegation(result: ChatMessage | undefined): Delegation {
  const told = result?.additional_kwargs ?? {};
  if (!result || typeof told.subagent_status !== "string") return { capped: false, ...figuresOf(told) };
  const text = (key: string) => (typeof told[key] === "string" ? { value: told[key] as string } : undefined);
  const [model, error] = [text("subagent_model_name"), text("subagent_error")];
  const prefix = "Task Succeeded. Result: ";
  const said = textOf(result);
  return {
    status: told.subagent_status,
    capped: typeof told.subagent_stop_reason === "string" && told.subagent_stop_reason !== "",
    ...(said.startsWith(prefix) ? { said: said.slice(prefix.length) } : {}),
    ...(model ? { model: model.value } : {}),
    ...(error ? { error: error.value } : {}),
    ...figuresOf(told),
  };
}

function figuresOf(told: Record<string, unknown>): { tokens?: number; took?: number } {
  const usage = told.subagent_token_usage as { total_tokens?: unknown } | undefined;
  const took = told.subagent_duration_ms;
  return {
    ...(typeof usage?.total_tokens === "number" ? { tokens: usage.total_tokens } : {}),
    ...(typeof took === "number" ? { took } : {}),
  };
}
