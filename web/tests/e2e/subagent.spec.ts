import { ask, expect, field, settled, test, transcript } from "./fixtures";
import { startExample } from "./hart";

test("a subagent's steps show in its card, and its result stays", async ({ page, model }) => {
  const server = await startExample(model.url);
  try {
    await page.goto(server.url);
    await expect(field(page)).toBeVisible();
    const inner = { description: "SAY inside words" };
    await ask(page, `CALL task ${JSON.stringify(inner)}`);
    const card = page.getByRole("region", { name: /^Delegate/ });
    await expect(card.getByRole("listitem")).toContainText("inside words");
    await settled(page);
    await expect(transcript(page).getByText("Tool said: inside words", { exact: true })).toBeVisible();
    await expect(card.locator(".markdown")).toContainText("inside words");
    // What the subagent says is in its card, not in the conversation: the call, and the answer after it.
    await expect(page.getByRole("article", { name: "hart" })).toHaveCount(2);
    await page.reload();
    await expect(card.locator(".markdown")).toContainText("inside words");
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
