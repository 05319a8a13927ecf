/**
 * Keeps objects that say the same.
 *
 * Invariant: an element equal to its predecessor under the same id *is* its predecessor.
 */

/** Every step of a run sends the whole state again; what has not changed in it must not be drawn again. */
export function keepIdentity<T extends { id?: string | undefined }>(previous: readonly T[], next: readonly T[]): T[] {
  const known = new Map<string, T>();
  for (const item of previous) if (item.id) known.set(item.id, item);
  return next.map((item) => {
    const old = item.id ? known.get(item.id) : undefined;
    return old !== undefined && (old === item || equal(old, item)) ? old : item;
  });
}

export function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => key in right && equal(left[key], right[key]));
}
