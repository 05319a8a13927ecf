/**
 * Whom a model can be had from, and what the form asks for then.
 *
 * Invariant: what the server does not list is not offered.
 */
import type { Connect, Provider } from "../api/around";

export const PLACES = ["key", "local", "other"] as const;
export type Place = (typeof PLACES)[number];

const NAMES: Record<string, string> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  gemini: "Google Gemini",
  deepseek: "DeepSeek",
  openrouter: "OpenRouter",
  groq: "Groq",
  mistral: "Mistral",
  xai: "xAI",
  moonshot: "Moonshot (Kimi)",
  minimax: "MiniMax",
  mimo: "Xiaomi MiMo",
  stepfun: "StepFun",
  qwen: "Qwen (DashScope)",
  zai: "Z.ai (GLM)",
  ollama: "Ollama",
  lmstudio: "LM Studio",
  llamacpp: "llama.cpp",
  vllm: "vLLM",
};

/** Those most people look for come first. */
const ORDER = Object.keys(NAMES);

/** Anything that speaks OpenAI's protocol. */
export const OTHER = "openai-compatible";

export function providerName(name: string): string {
  return NAMES[name] ?? name;
}

export function providersAt(place: Place, providers: readonly Provider[]): Provider[] {
  const fits = (one: Provider) =>
    place === "other" ? one.name === OTHER : place === "local" ? one.local : one.key !== null;
  const rank = (one: Provider) => (ORDER.includes(one.name) ? ORDER.indexOf(one.name) : ORDER.length);
  return providers.filter(fits).sort((a, b) => rank(a) - rank(b));
}

export interface Form {
  place: Place;
  provider: string;
  key: string;
  address: string;
  model: string;
}

/** Only what was filled in, and an address only where it is not the provider's own. */
export function connectOf(form: Form, provider: Provider | undefined): Connect {
  const text = (value: string) => value.trim();
  const address = form.place === "key" ? "" : text(form.address);
  return {
    provider: form.provider,
    ...(text(form.key) ? { api_key: text(form.key) } : {}),
    ...(text(form.model) ? { model: text(form.model) } : {}),
    ...(address && address !== provider?.base_url ? { base_url: address } : {}),
  };
}

/** As the server takes it. */
export function connectionName(model: string): string {
  return model.replace(/[^A-Za-z0-9\-_.:/@]/g, "-").slice(0, 128) || "model";
}
