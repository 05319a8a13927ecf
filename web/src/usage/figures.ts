/**
 * Figures as people read them, and the shape of a chart.
 *
 * Invariant: pure; what is not known is not a zero.
 */
import type { Figures, Usage } from "../api/around";

export type Measure = "total_tokens" | "cost" | "runs";

export interface Bar {
  label: string;
  value: number;
  parts: { name: string; value: number }[];
}

export function readableCost(cost: number, currency?: string | null): string {
  const digits = digitsOf(cost);
  try {
    if (currency) {
      return new Intl.NumberFormat(undefined, {
        style: "currency",
        currency,
        minimumFractionDigits: 2,
        maximumFractionDigits: digits,
      }).format(cost);
    }
  } catch {
    // Not one of the world's currencies: a plain figure says enough.
  }
  return cost.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: digits });
}

/** A small amount keeps two digits that say something. */
function digitsOf(cost: number): number {
  const size = Math.abs(cost);
  if (size === 0 || size >= 0.1) return 2;
  return Math.min(Math.max(4, 1 - Math.floor(Math.log10(size))), 8);
}

/** `1234567` as `1.2M`. */
export function shortNumber(value: number): string {
  return new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

/** One bar a day, its parts by model. Models beyond the largest few are one part. */
export function dayBars(
  usage: Usage,
  measure: Measure,
  others: string,
  most = 5,
  nameOf: (model: string) => string = (model) => model,
): Bar[] {
  if (measure === "runs") return usage.days.map((day) => ({ label: day.date, value: day.runs, parts: [] }));
  const ranked = modelsByUse(usage, measure).slice(0, most);
  return usage.days.map((day) => {
    const parts = ranked.map((name) => ({ name: nameOf(name), value: day.by_model[name]?.[measure] ?? 0 }));
    const named = parts.reduce((sum, part) => sum + part.value, 0);
    const value = day[measure] ?? 0;
    // Calls whose model is not known are in the day's sum alone.
    const rest = value - named;
    if (rest > value * 1e-6) parts.push({ name: others, value: rest });
    return { label: day.date, value, parts: parts.filter((part) => part.value > 0) };
  });
}

export function modelsByUse(usage: Usage, measure: Exclude<Measure, "runs"> = "total_tokens"): string[] {
  const entries = Object.entries(usage.by_model);
  const of = (figures: Figures) => figures[measure] ?? 0;
  return entries.sort(([, a], [, b]) => of(b) - of(a)).map(([name]) => name);
}

/** A round number that is at least `highest`, for the top of an axis. */
export function axisTop(highest: number): number {
  if (highest <= 0) return 1;
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * magnitude >= highest) ?? 10;
  return step * magnitude;
}
