import { expect, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

test("without a model the first visit plays a recorded task with real tools", async ({ page }) => {
  const hart = await startHart(null);
  try {
    await page.goto(hart.url);
    await page.getByRole("button", { name: /Write a script, run it, hand over its result/ }).click();
    await expect(transcript(page).locator(".tool").first()).toBeVisible();
    await expect(page.getByRole("region", { name: /^Hand over/ })).toBeVisible({ timeout: 40_000 });
    await settled(page);
    await expect(page.getByRole("alert")).toHaveCount(0);
  } finally {
    await hart.stop();
  }
});
