/**
 * What a paused run asks for, in LangChain's shapes, and the answers that let it go on.
 *
 * Invariant: with several questions open, each answer is addressed by the id of its question.
 */

export type DecisionKind = "approve" | "edit" | "reject" | "respond";

export interface ActionRequest {
  name: string;
  args: Record<string, unknown>;
  description?: string | undefined;
  allowed: DecisionKind[];
}

export interface Decision {
  type: DecisionKind;
  message?: string;
  edited_action?: { name: string; args: Record<string, unknown> };
}

export type Question =
  | { kind: "approval"; id: string | undefined; form: "batched" | "single"; actions: ActionRequest[] }
  | { kind: "ask"; id: string | undefined; text: string }
  | { kind: "breakpoint"; id: undefined };

const ALL: DecisionKind[] = ["approve", "edit", "reject", "respond"];

export interface RawInterrupt {
  id?: string | undefined;
  value?: unknown;
  when?: string;
}

export function questionOf(interrupt: RawInterrupt): Question {
  if (interrupt.when === "breakpoint" && interrupt.value === undefined) return { kind: "breakpoint", id: undefined };
  const value = interrupt.value;
  if (isObject(value)) {
    if (Array.isArray(value.action_requests)) {
      const configs = Array.isArray(value.review_configs) ? value.review_configs.filter(isObject) : [];
      const actions = value.action_requests.filter(isObject).map((action, index): ActionRequest => {
        const name = String(action.name ?? action.action ?? "");
        const config = configs.find((one) => one.action_name === name) ?? configs[index];
        return { ...actionOf(action, name), allowed: allowedOf(config?.allowed_decisions) };
      });
      return { kind: "approval", id: interrupt.id, form: "batched", actions };
    }
    if (value.type === "tool_approval") {
      const action = { ...actionOf(value, String(value.name ?? "")), allowed: allowedOf(value.allowed_decisions) };
      return { kind: "approval", id: interrupt.id, form: "single", actions: [action] };
    }
    const text = value.question ?? value.message ?? value.description;
    if (typeof text === "string") return { kind: "ask", id: interrupt.id, text };
  }
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return { kind: "ask", id: interrupt.id, text: text ?? "" };
}

function actionOf(action: Record<string, unknown>, name: string): Omit<ActionRequest, "allowed"> {
  const args = isObject(action.args) ? action.args : {};
  return { name, args, description: typeof action.description === "string" ? action.description : undefined };
}

function allowedOf(allowed: unknown): DecisionKind[] {
  if (!Array.isArray(allowed)) return ALL;
  return ALL.filter((kind) => allowed.includes(kind));
}

/** The value that answers one question. */
export function approvalAnswer(question: Question & { kind: "approval" }, decisions: Decision[]): unknown {
  return question.form === "single" ? decisions[0] : { decisions };
}

/** The `command.resume` for all open questions, given the answers by their position. */
export function resumeValue(questions: readonly Question[], answers: readonly unknown[]): unknown {
  if (questions.length === 1) return answers[0];
  return Object.fromEntries(questions.map((question, index) => [question.id ?? String(index), answers[index]]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
