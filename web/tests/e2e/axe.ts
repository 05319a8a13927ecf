/** What axe finds against WCAG 2.2 A and AA. */
import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";

const AXE = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; any: { message: string }[] }[];
}

export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } }).axe;
    const result = await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
    return result.violations;
  });
  return found.map(
    (one) =>
      `${one.impact} ${one.id}: ${one.nodes.map((node) => `${node.html.slice(0, 90)} ${node.any[0]?.message}`).join(" | ")}`,
  );
}
