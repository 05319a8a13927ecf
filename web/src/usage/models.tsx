/**
 * The models' names and money as people know them, wherever figures are shown.
 *
 * Invariant: a currency is said only where all prices are in one; a model nobody lists keeps the name it was counted by.
 */
import { createContext, useContext, useMemo } from "react";
import type { ModelInfo } from "../api/native";
import { readableCost } from "./figures";

const NO_MODELS: readonly ModelInfo[] = [];

export const ModelsContext = createContext<readonly ModelInfo[]>(NO_MODELS);

/** Money as text. */
export function useMoney(): (cost: number) => string {
  const models = useContext(ModelsContext);
  return useMemo(() => {
    const currency = currencyOf(models);
    return (cost) => readableCost(cost, currency);
  }, [models]);
}

/** What the interface calls a model that is counted by its configured name. */
export function useModelName(): (name: string) => string {
  const models = useContext(ModelsContext);
  return useMemo(() => (name) => modelName(models, name), [models]);
}

export function modelName(models: readonly ModelInfo[], name: string): string {
  return models.find((one) => one.name === name)?.display_name || name;
}

export function currencyOf(models: readonly ModelInfo[]): string | null {
  const found = new Set(models.flatMap(({ pricing }) => (pricing ? [pricing.currency ?? null] : [])));
  return found.size === 1 ? ([...found][0] ?? null) : null;
}
