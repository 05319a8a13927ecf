import type { Page } from "@playwright/test";
import { ask, expect, field, open, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

const said = (page: Page, text: string) => transcript(page).getByText(text, { exact: true });
const you = (page: Page) => page.getByRole("article", { name: "You" });

async function say(page: Page, text: string): Promise<void> {
  await ask(page, `SAY ${text}`);
  await expect(said(page, text)).toBeVisible();
  await settled(page);
}

async function edit(page: Page, which: number, text: string): Promise<void> {
  await you(page).nth(which).hover();
  await you(page).nth(which).getByRole("button", { name: "Edit and ask again" }).click();
  await page.getByRole("textbox", { name: "Edit and ask again" }).fill(text);
  await page.getByRole("button", { name: "Ask again", exact: true }).click();
}

test("each turn says what it took, also after a reload", async ({ page, model }) => {
  // Fifteen tokens a call: ten read, five written.
  const hart = await startHart(model.url, "    pricing: {input_per_million: 1000, output_per_million: 2000}\n");
  try {
    await open(page, hart);
    await ask(page, `CALL bash ${JSON.stringify({ command: "true" })}`);
    await settled(page);
    const usage = page.locator(".turn-usage");
    await expect(usage).toHaveText(/^30 tokens · cost 0\.04 · \d/);
    await say(page, "short");
    await expect(usage.last()).toHaveText(/^15 tokens · cost 0\.02 · \d/);
    await page.reload();
    await expect(usage.first()).toHaveText(/^30 tokens · cost 0\.04 · \d/);
    await expect(usage.last()).toHaveText(/^15 tokens · cost 0\.02 · \d/);
  } finally {
    await hart.stop();
  }
});

test("an answer is rated with words, the rating stays, and is taken back", async ({ page, hart }) => {
  await open(page, hart);
  await say(page, "judge me");
  const thread = /\/chat\/([^/]+)/.exec(page.url())?.[1];
  const opinions = async () => {
    const runs = (await (await fetch(`${hart.url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const found = await fetch(`${hart.url}/api/threads/${thread}/runs/${runs[0]?.run_id}/feedback`);
    return (await found.json()) as { rating: number; comment: string | null }[];
  };
  const bad = page.getByRole("button", { name: "Bad answer" });
  await bad.click();
  await expect(bad).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("textbox", { name: "What was wrong with it? (optional)" }).fill("too short");
  await page.getByRole("button", { name: "Send comment" }).click();
  await expect.poll(opinions).toMatchObject([{ rating: -1, comment: "too short" }]);
  await page.reload();
  await expect(bad).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("button", { name: "Good answer" }).click();
  await expect(bad).toHaveAttribute("aria-pressed", "false");
  await expect.poll(opinions).toMatchObject([{ rating: 1 }]);
  await page.getByRole("button", { name: "Good answer" }).click();
  await expect(page.getByRole("button", { name: "Good answer" })).toHaveAttribute("aria-pressed", "false");
  await expect.poll(opinions).toEqual([]);
});

test("versions of a message can be gone between, and each goes on by itself", async ({ page, hart }) => {
  await open(page, hart);
  await say(page, "first");
  await say(page, "after the first");
  await edit(page, 0, "SAY second");
  await expect(said(page, "second")).toBeVisible();
  await settled(page);
  await expect(said(page, "after the first")).toHaveCount(0);
  const versions = page.getByRole("group", { name: "Versions" });
  await expect(versions).toContainText("2 of 2");
  await page.getByRole("button", { name: "Answer again" }).click();
  await expect(versions).toContainText("3 of 3");
  await versions.getByRole("button", { name: "Earlier version" }).click();
  await expect(versions).toContainText("2 of 3");
  await versions.getByRole("button", { name: "Earlier version" }).click();
  await expect(said(page, "first")).toBeVisible();
  await expect(said(page, "after the first")).toBeVisible();
  await expect(said(page, "second")).toHaveCount(0);
  await page.reload();
  await expect(versions).toContainText("1 of 3");
  await say(page, "goes on here");
  await expect(said(page, "after the first")).toBeVisible();
  await versions.getByRole("button", { name: "Later version" }).click();
  await expect(said(page, "second")).toBeVisible();
  await expect(said(page, "goes on here")).toHaveCount(0);
  await versions.getByRole("button", { name: "Earlier version" }).click();
  await expect(said(page, "goes on here")).toBeVisible();
});

test("answering again does the whole turn again", async ({ page, hart }) => {
  await open(page, hart);
  const command = "n=/mnt/user-data/workspace/n; echo x >> $n; echo $(wc -l < $n) times";
  await ask(page, `CALL bash ${JSON.stringify({ command })}`);
  await expect(transcript(page).getByText("Tool said: 1 times")).toBeVisible();
  await settled(page);
  await page.getByRole("button", { name: "Answer again" }).click();
  await expect(transcript(page).getByText("Tool said: 2 times")).toBeVisible();
  await settled(page);
  await expect(transcript(page).getByText("Tool said: 1 times")).toHaveCount(0);
  await expect(page.getByRole("region", { name: /^Run/ })).toHaveCount(1);
  await expect(page.locator(".turn-usage")).toHaveText(/^30 tokens/);
});

test("a branch begins at any message, and both ways between the conversations are there", async ({ page, hart }) => {
  await open(page, hart);
  await say(page, "one");
  await say(page, "two");
  const original = page.url();
  await you(page).nth(1).hover();
  await you(page).nth(1).getByRole("button", { name: "Branch at this message" }).click();
  await expect(page).not.toHaveURL(original);
  await expect(said(page, "one")).toBeVisible();
  await expect(you(page)).toHaveCount(2);
  await expect(said(page, "two")).toHaveCount(0);
  await page.getByRole("button", { name: "Answer this" }).click();
  await expect(said(page, "two")).toBeVisible();
  await settled(page);
  await transcript(page).getByRole("link", { name: "SAY one" }).click();
  await expect(page).toHaveURL(original);
  await you(page).nth(1).hover();
  await page.getByRole("button", { name: "1 branch begins here" }).click();
  await page.getByRole("menuitem").click();
  await expect(page).not.toHaveURL(original);
  await expect(page.getByText("Branch of")).toBeVisible();
});

test("what one might ask next is one press away", async ({ page, hart, model }) => {
  model.replies = [{ to: "Suggest 3 short questions", say: '["SAY why so?", "SAY and then?"]' }];
  try {
    await open(page, hart);
    await say(page, "an answer");
    await page.getByRole("button", { name: "SAY and then?" }).click();
    await expect(said(page, "and then?")).toBeVisible();
    await settled(page);
    await expect(page.getByRole("button", { name: "SAY why so?" })).toBeVisible();
    // A question is answered, and what was stopped is not gone on with: neither asks the model for more.
    const asked: string[] = [];
    page.on("request", (request) => request.url().endsWith("/suggestions") && asked.push(request.url()));
    await ask(
      page,
      `CALL ask_clarification ${JSON.stringify({ question: "Which?", clarification_type: "missing_info" })}`,
    );
    await expect(page.getByRole("region", { name: "A question for you" })).toBeVisible();
    await settled(page);
    await ask(page, "SLOW 200 100");
    await expect(transcript(page).getByText(/tick2/)).toBeVisible();
    await page.getByRole("button", { name: "Stop" }).click();
    await settled(page);
    await expect(transcript(page).getByText("Stopped", { exact: true })).toBeVisible();
    expect(asked).toEqual([]);
  } finally {
    model.replies = [];
  }
});

test("a server that suggests nothing is not asked to", async ({ page, model }) => {
  const hart = await startHart(model.url, "suggestions:\n  enabled: false\n");
  const asked: string[] = [];
  page.on("request", (request) => request.url().endsWith("/suggestions") && asked.push(request.url()));
  try {
    await open(page, hart);
    const configured = page.waitForResponse("**/api/suggestions/config");
    await say(page, "an answer");
    expect(await (await configured).json()).toMatchObject({ enabled: false });
    await say(page, "another");
    expect(asked).toEqual([]);
  } finally {
    await hart.stop();
  }
});

test("words are put better, and back", async ({ page, hart, model }) => {
  model.replies = [{ to: "Rewrite the user's draft", say: "SAY a clear request" }];
  try {
    await open(page, hart);
    await field(page).fill("pls do thing");
    await page.getByRole("button", { name: "Put it in better words" }).click();
    await expect(field(page)).toHaveValue("SAY a clear request");
    await page.getByRole("button", { name: "Back to your own words" }).click();
    await expect(field(page)).toHaveValue("pls do thing");
  } finally {
    model.replies = [];
  }
});

test("skills are completed after a slash, and the message calls one", async ({ page, hart }) => {
  const { skills } = (await (await fetch(`${hart.url}/api/skills`)).json()) as {
    skills: { name: string; enabled: boolean }[];
  };
  const skill = skills.find((one) => one.enabled)?.name ?? "";
  await open(page, hart);
  await field(page).pressSequentially(`/${skill.slice(0, 4)}`);
  await page
    .getByRole("option", { name: `/${skill}` })
    .first()
    .click();
  await expect(field(page)).toHaveValue(new RegExp(`^/${skill.slice(0, 4)}\\S* $`));
  await expect(field(page)).toBeFocused();
});
