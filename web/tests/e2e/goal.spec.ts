import { ask, expect, field, open, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

test("a goal stands above the field, says why it is not reached, and goes when it is", async ({ page, model }) => {
  const hart = await startHart(model.url, "goal:\n  enabled: true\n  max_continuations: 0\n");
  const judge = (satisfied: boolean, reason: string) => {
    const blocker = satisfied ? "none" : "needs_user_input";
    model.replies = [{ to: "evidence_summary", say: JSON.stringify({ satisfied, blocker, reason }) }];
  };
  try {
    await open(page, hart);
    await field(page).pressSequentially("/go");
    await page.keyboard.press("Enter");
    await expect(field(page)).toHaveValue("/goal ");
    await field(page).pressSequentially("three poems are written");
    await page.keyboard.press("Enter");
    const chip = page.getByRole("region", { name: "Goal" });
    await expect(chip).toContainText("three poems are written");
    await expect(field(page)).toHaveValue("");
    judge(false, "Only one poem is there.");
    await ask(page, "SAY a poem");
    await expect(transcript(page).getByText("a poem", { exact: true })).toBeVisible();
    await settled(page);
    await expect(chip).toContainText("Only one poem is there.");
    await page.reload();
    await expect(chip).toContainText("three poems are written");
    judge(true, "All are there.");
    await ask(page, "SAY more poems");
    await expect(page.getByText("The goal is reached.")).toBeVisible();
    await expect(chip).toHaveCount(0);
    await settled(page);
    await ask(page, "/goal another one");
    await expect(chip).toContainText("another one");
    await chip.getByRole("button", { name: "Clear the goal" }).click();
    await expect(chip).toHaveCount(0);
    await page.reload();
    await expect(transcript(page).getByText("more poems", { exact: true })).toBeVisible();
    await expect(chip).toHaveCount(0);
  } finally {
    model.replies = [];
    await hart.stop();
  }
});
