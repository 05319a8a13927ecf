/** Starts it. */
export async function start(): Promise<void> {}

/**
 * export function inComment() {}
 */
export class Store {}

export const limit = 3;
function inner() {}
