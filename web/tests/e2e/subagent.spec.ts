import { ask, expect, field, settled, test, transcript } from "./fixtures";
import { startExample } from "./hart";

test("a subagent's steps show while it works, and its result stays", async ({ page, model }) => {
  const server = await startExample(model.url);
  try {
    await page.goto(server.url);
    await expect(field(page)).toBeVisible();
    await ask(page, `CALL task ${JSON.stringify({ description: "SLOW 15 200" })}`);
    const card = page.getByRole("region", { name: /^Delegate/ });
    await expect(card.getByRole("listitem")).toContainText("tick2");
    await expect(transcript(page)).toHaveAttribute("aria-busy", "true");
    // What the subagent says is in its card, not in the conversation.
    await expect(page.getByRole("article", { name: "hart" })).toHaveCount(1);
    await settled(page);
    await expect(transcript(page).getByText(/^Tool said: tick1/)).toBeVisible();
    await expect(card.locator(".markdown")).toContainText("tick15");
  } finally {
    await server.stop();
  }
});

test("any question of any agent can be answered", async ({ page, model }) => {
  const server = await startExample(model.url);
  try {
    await page.goto(server.url);
    await ask(page, `CALL ask_human ${JSON.stringify({ question: "Deploy?" })}`);
    const question = page.getByRole("region", { name: "A question for you" });
    await expect(question).toContainText("Deploy?");
    await page.reload();
    await question.getByRole("textbox").fill("yes, go");
    await question.getByRole("button", { name: "Answer" }).click();
    await expect(transcript(page).getByText("Tool said: Human answered: yes, go")).toBeVisible();
  } finally {
    await server.stop();
  }
});
