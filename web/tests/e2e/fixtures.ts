/** What every browser test has: one server per worker, and a page that notices what must not happen. */
import { test as base, expect, type Page } from "@playwright/test";
import { type Hart, startHart } from "./hart";
import { type ScriptedModel, startModel } from "./model";

interface Worker {
  model: ScriptedModel;
  hart: Hart;
}

interface Fixtures {
  /** Requests that left for another place, and scripts that the policy stopped. */
  outside: string[];
}

const CONFIG = `
interrupt_on:
  delete: true
`;

export const test = base.extend<Fixtures, Worker>({
  model: [
    async ({}, use) => {
      const model = await startModel();
      await use(model);
      await model.close();
    },
    { scope: "worker" },
  ],
  hart: [
    async ({ model }, use) => {
      const hart = await startHart(model.url, CONFIG);
      await use(hart);
      await hart.stop();
    },
    { scope: "worker" },
  ],
  outside: [
    async ({ page, hart }, use) => {
      const outside: string[] = [];
      page.on("request", (request) => {
        const url = new URL(request.url());
        if (/^https?:|^wss?:/.test(url.protocol) && url.origin !== new URL(hart.url).origin) outside.push(url.href);
      });
      await use(outside);
    },
    { auto: true },
  ],
});

export { expect };

export function field(page: Page) {
  return page.getByRole("textbox", { name: "Message", exact: true });
}

export async function ask(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press("Enter");
}

export function transcript(page: Page) {
  return page.getByRole("log");
}

/** Until the run is over. */
export async function settled(page: Page): Promise<void> {
  await expect(transcript(page)).toHaveAttribute("aria-busy", "false");
}

export async function open(page: Page, hart: Hart): Promise<void> {
  await page.goto(hart.url);
  await expect(field(page)).toBeVisible();
}
