import { ask, expect, field, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

test("money and models have one name everywhere: the one that the operator gave them", async ({ page, model }) => {
  const pricing = "{currency: EUR, input_per_million: 100000, output_per_million: 0}";
  const hart = await startHart(model.url, `    display_name: The Big One\n    pricing: ${pricing}\n`);
  try {
    await page.goto(hart.url);
    await expect(field(page)).toBeVisible();
    await ask(page, "SAY counted");
    await expect(transcript(page).getByText("counted", { exact: true })).toBeVisible();
    await settled(page);
    await expect(page.locator(".turn-usage")).toContainText(/cost €\d/);
    await page.getByRole("button", { name: "Run inspector" }).click();
    const panel = page.getByRole("complementary", { name: "Run inspector" });
    await expect(panel.locator(".usage")).toContainText(/Cost €\d/);
    await expect(panel.locator(".usage")).toContainText("The Big One");
    await expect(panel.locator(".run-head")).toContainText(/Cost €\d/);
    await page.getByRole("button", { name: "Settings" }).click();
    const dialog = page.getByRole("dialog", { name: "Settings" });
    await dialog.getByRole("tab", { name: "Usage" }).click();
    await expect(dialog.locator(".usage-total")).toContainText(/€\d/);
    const row = dialog.getByRole("table", { name: "By model" }).getByRole("row").nth(1);
    await expect(row).toContainText("The Big One");
    await expect(row).toContainText(/€\d/);
  } finally {
    await hart.stop();
  }
});
