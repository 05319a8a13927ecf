import type { Page } from "@playwright/test";
import type { Hart } from "./hart";
import { ask, expect, open, settled, test, transcript } from "./fixtures";

async function delegate(page: Page, hart: Hart, prompt: string): Promise<void> {
  await open(page, hart);
  await page.getByRole("button", { name: /^Mode:/ }).click();
  await page.getByRole("menuitemradio", { name: /^Ultra/ }).click();
  const task = { description: "Look around", prompt, subagent_type: "general-purpose" };
  await ask(page, `CALL task ${JSON.stringify(task)}`);
}

test("a subagent's card tells its steps, its state, its tokens and its time while it works", async ({ page, hart }) => {
  const steps = [
    ["bash", { description: "First", command: "echo one" }],
    ["bash", { description: "Second", command: "sleep 5; echo two" }],
  ];
  await delegate(page, hart, `STEPS ${JSON.stringify(steps)}`);
  const card = page.getByRole("region", { name: /^Delegate Look around/ });
  await expect(card.getByRole("listitem").nth(1)).toContainText("bash");
  await expect(card).toContainText("at work · general-purpose · scripted · 2 steps · 30 tokens");
  await expect(card.locator(".subagent-time")).toHaveText(/[1-9]\d*(\.0)? s/);
  await expect(transcript(page)).toHaveAttribute("aria-busy", "true");
  await expect(card).toContainText("done · general-purpose · scripted · 3 steps · 45 tokens");
  await expect(card.locator(".markdown")).toHaveText("All done.");
  await settled(page);
  const took = await card.locator(".subagent-time").textContent();
  await page.reload();
  // Its steps are in the run's log.
  await expect(card).toContainText("done · general-purpose · scripted · 3 steps · 45 tokens");
  await expect(card.getByRole("listitem")).toHaveText([/bash.*One moment/, /bash.*One moment/]);
  await expect(card.locator(".subagent-time")).toHaveText(took ?? "");
  await expect(card.locator(".markdown")).toHaveText("All done.");
});

test("a subagent's time goes on where it was when the page is opened again", async ({ page, hart }) => {
  const steps = [["bash", { description: "Wait", command: "sleep 12" }]];
  await delegate(page, hart, `STEPS ${JSON.stringify(steps)}`);
  const time = page.getByRole("region", { name: /^Delegate Look around/ }).locator(".subagent-time");
  const seconds = async () => Number(/([\d.]+) s/.exec((await time.textContent()) ?? "")?.[1] ?? 0);
  await expect.poll(seconds).toBeGreaterThanOrEqual(4);
  await page.reload();
  await expect(time).toBeVisible();
  expect(await seconds()).toBeGreaterThanOrEqual(4);
  await expect(transcript(page)).toHaveAttribute("aria-busy", "true");
  await settled(page);
});

test("a subagent that fails says why", async ({ page, hart }) => {
  await delegate(page, hart, "FAIL 400");
  const card = page.getByRole("region", { name: /^Delegate Look around/ });
  await expect(card.locator(".subagent-failed")).toHaveText("failed");
  await expect(card.locator(".tool-note-bad")).toContainText("scripted failure");
  await settled(page);
});
