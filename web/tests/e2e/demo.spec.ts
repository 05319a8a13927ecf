import { expect, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

test("without a model the first visit plays a recorded task with real tools", async ({ page }) => {
  const hart = await startHart(null);
  try {
    // Whatever language the page speaks, a recording answers to the words that it was made with.
    await page.goto(hart.url);
    await page.evaluate(() => localStorage.setItem("hart:settings", JSON.stringify({ language: "zh" })));
    await page.reload();
    await expect(page.getByRole("button", { name: /交付结果.*Find all prime numbers/ })).toBeVisible();
    await page.evaluate(() => localStorage.removeItem("hart:settings"));
    await page.reload();
    await page.getByRole("button", { name: /Write a script, run it, hand over its result/ }).click();
    await expect(transcript(page).locator(".tool").first()).toBeVisible();
    await expect(page.getByRole("region", { name: /^Hand over/ })).toBeVisible({ timeout: 40_000 });
    await settled(page);
    await expect(page.getByRole("alert")).toHaveCount(0);
  } finally {
    await hart.stop();
  }
});
