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

test("who answers at once after a reload is heard by the agent that asked", async ({ page, model }) => {
  const server = await startExample(model.url);
  try {
    await page.goto(server.url);
    await ask(page, `CALL ask_human ${JSON.stringify({ question: "Deploy?" })}`);
    const question = page.getByRole("region", { name: "A question for you" });
    await expect(question).toContainText("Deploy?");
    // The page does not know yet which agents there are.
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await page.route("**/assistants/search", async (route) => {
      await held;
      await route.continue();
    });
    await page.reload();
    await question.getByRole("textbox").fill("yes, at once");
    await question.getByRole("button", { name: "Answer" }).click();
    await expect(question).toBeHidden();
    await expect(transcript(page)).toHaveAttribute("aria-busy", "true");
    letGo();
    await expect(transcript(page).getByText("Tool said: Human answered: yes, at once")).toBeVisible();
  } finally {
    await server.stop();
  }
});

test("a question is shown once it will stay, whatever the page read while the run was ending", async ({
  page,
  model,
}) => {
  const server = await startExample(model.url);
  try {
    await page.goto(server.url);
    await ask(page, `CALL ask_human ${JSON.stringify({ question: "Deploy?" })}`);
    const question = page.getByRole("region", { name: "A question for you" });
    await expect(question).toContainText("Deploy?");

    // The run is said to be at work, and has ended meanwhile: it is heard to its end first.
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await page.route(/\/threads\/[^/]+\/runs\?limit=20/, async (route) => {
      const answer = await route.fetch();
      const runs = (await answer.json()) as { status: string }[];
      await route.fulfill({ response: answer, json: runs.map((run) => ({ ...run, status: "running" })) });
    });
    let joined = false;
    await page.route(/\/runs\/[^/]+\/stream/, async (route) => {
      joined = true;
      await held;
      await route.continue();
    });
    await page.reload();
    await expect.poll(() => joined).toBe(true);
    await expect(transcript(page)).toHaveAttribute("aria-busy", "true");
    await expect(question).toHaveCount(0);
    letGo();
    await expect(question).toContainText("Deploy?");
    await page.unrouteAll({ behavior: "wait" });

    // The thread was read before the run paused, the runs after it: it is read once more.
    let reads = 0;
    await page.route(/\/api\/langgraph\/threads\/[^/?]+$/, async (route) => {
      if (route.request().method() !== "GET" || ++reads > 1) return route.continue();
      const answer = await route.fetch();
      const thread = (await answer.json()) as object;
      await route.fulfill({ response: answer, json: { ...thread, status: "busy", interrupts: {} } });
    });
    await page.reload();
    await question.getByRole("textbox").fill("yes, go");
    await question.getByRole("button", { name: "Answer" }).click();
    await expect(transcript(page).getByText("Tool said: Human answered: yes, go")).toBeVisible();
    expect(reads).toBeGreaterThan(1);
  } finally {
    await server.stop();
  }
});
