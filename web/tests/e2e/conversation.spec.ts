import { ask, expect, field, open, settled, test, transcript } from "./fixtures";

test("a first visit teaches, and an answer streams in", async ({ page, hart }) => {
  await open(page, hart);
  await expect(page.getByRole("heading", { name: "What shall we get done?" })).toBeVisible();
  await ask(page, "SAY hello **big** world");
  await expect(transcript(page).getByText("hello big world")).toBeVisible();
  await expect(page.locator("strong", { hasText: "big" })).toBeVisible();
  await settled(page);
  await expect(page).toHaveURL(/\/chat\//);
  await expect(page.getByRole("navigation").getByText("SAY hello **big** world")).toBeVisible();
});

test("a reload shows the same conversation", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY remember me");
  await expect(transcript(page).getByText("remember me", { exact: true })).toBeVisible();
  await settled(page);
  await page.reload();
  await expect(transcript(page).getByText("remember me", { exact: true })).toBeVisible();
});

test("a reload in mid-run loses nothing", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SLOW 20 150");
  await expect(transcript(page).getByText(/tick3/)).toBeVisible();
  await page.reload();
  await expect(transcript(page).getByText(/tick1 tick2 .*tick20/)).toBeVisible();
  await settled(page);
  expect(
    await transcript(page)
      .getByText(/tick1 /)
      .count(),
  ).toBe(1);
});

test("another tab sees the run that is under way", async ({ page, hart, context }) => {
  await open(page, hart);
  await ask(page, "SLOW 20 150");
  await expect(page).toHaveURL(/\/chat\//);
  await expect(transcript(page).getByText(/tick2/)).toBeVisible();
  const other = await context.newPage();
  await other.goto(page.url());
  await expect(transcript(other).getByText(/tick1 .*tick20/)).toBeVisible();
});

test("stop ends the run, and the conversation goes on", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SLOW 200 100");
  await expect(transcript(page).getByText(/tick2/)).toBeVisible();
  await page.getByRole("button", { name: "Stop" }).click();
  await settled(page);
  await expect(transcript(page).getByText("Stopped", { exact: true })).toBeVisible();
  await ask(page, "SAY still here");
  await expect(transcript(page).getByText("still here", { exact: true })).toBeVisible();
  await settled(page);
  await expect(transcript(page).getByText("Stopped", { exact: true })).toHaveCount(1);
});

test("a message written ahead waits its turn, also over a reload", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SLOW 25 150");
  await expect(transcript(page).getByText(/tick2/)).toBeVisible();
  await ask(page, "SAY second in line");
  await expect(page.getByRole("region", { name: "Waiting their turn" })).toContainText("SAY second in line");
  await page.reload();
  await expect(transcript(page).getByText("second in line", { exact: true })).toBeVisible();
  await settled(page);
  await expect(transcript(page).getByText(/tick25/)).toBeVisible();
});

test("a message written before the server has taken the first one waits behind it", async ({ page, hart }) => {
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  await page.route("**/runs/stream", async (route) => {
    await held;
    await route.continue();
  });
  await open(page, hart);
  await ask(page, "SAY first answer");
  await ask(page, "SAY second answer");
  await ask(page, "SAY taken back");
  const queue = page.getByRole("region", { name: "Waiting their turn" });
  await expect(queue.getByRole("listitem")).toHaveText([/second answer/, /taken back/]);
  await queue.getByRole("listitem").last().getByRole("button").click();
  await expect(queue.getByRole("listitem")).toHaveText([/second answer/]);
  letGo();
  await expect(transcript(page).getByText("first answer", { exact: true })).toBeVisible();
  await expect(transcript(page).getByText("second answer", { exact: true })).toBeVisible();
  await settled(page);
  await expect(page.getByRole("article", { name: "You" })).toHaveText([/first answer/, /second answer/]);
});

test("reasoning is folded", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "THINK so be it");
  await expect(transcript(page).getByText("so be it", { exact: true })).toBeVisible();
  await expect(page.getByText("weighing both sides")).toBeHidden();
  await page.getByRole("button", { name: "Reasoning" }).click();
  await expect(page.getByText("weighing both sides")).toBeVisible();
});

test("a failure says what to do, and can be tried again", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "FAIL 400");
  await expect(page.getByRole("alert")).toContainText("The model failed");
  await expect(page.getByRole("button", { name: "Try again" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("alert")).toContainText("The model failed");
});

test("editing a message asks again from there; answering again replaces the answer", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY first answer");
  await expect(transcript(page).getByText("first answer", { exact: true })).toBeVisible();
  await settled(page);
  await page.getByRole("article", { name: "You" }).hover();
  await page.getByRole("button", { name: "Edit and ask again" }).click();
  await page.getByRole("textbox", { name: "Edit and ask again" }).fill("SAY second answer");
  await page.getByRole("button", { name: "Ask again" }).click();
  await expect(transcript(page).getByText("second answer", { exact: true })).toBeVisible();
  await settled(page);
  await expect(transcript(page).getByText("first answer", { exact: true })).toHaveCount(0);
  await page.getByRole("button", { name: "Answer again" }).click();
  await expect(transcript(page).getByText("second answer", { exact: true })).toHaveCount(1);
  await settled(page);
  await page.reload();
  await expect(transcript(page).getByText("second answer", { exact: true })).toHaveCount(1);
});

test("a branch leaves the original as it is", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY one");
  await expect(transcript(page).getByText("one", { exact: true })).toBeVisible();
  await settled(page);
  await ask(page, "SAY two");
  await expect(transcript(page).getByText("two", { exact: true })).toBeVisible();
  await settled(page);
  const original = page.url();
  await page.getByRole("article", { name: "hart" }).first().hover();
  await page.getByRole("button", { name: "Branch into a new conversation" }).first().click();
  await expect(page).not.toHaveURL(original);
  await expect(transcript(page).getByText("one", { exact: true })).toBeVisible();
  await expect(transcript(page).getByText("two", { exact: true })).toHaveCount(0);
  await ask(page, "SAY three");
  await expect(transcript(page).getByText("three", { exact: true })).toBeVisible();
  await page.goto(original);
  await expect(transcript(page).getByText("two", { exact: true })).toBeVisible();
  await expect(transcript(page).getByText("three", { exact: true })).toHaveCount(0);
});

test("conversations are found, renamed, pinned and deleted", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY to be managed");
  await settled(page);
  const list = page.getByRole("navigation");
  await list.getByRole("button", { name: "More: SAY to be managed" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await list.getByRole("textbox", { name: "Rename" }).fill("Quarterly zebra");
  await list.getByRole("textbox", { name: "Rename" }).press("Enter");
  await expect(list.getByRole("link", { name: "Quarterly zebra" })).toBeVisible();
  await list.getByRole("button", { name: "More: Quarterly zebra" }).click();
  await page.getByRole("menuitem", { name: "Pin" }).click();
  await expect(list.getByRole("region", { name: "Pinned" }).getByText("Quarterly zebra")).toBeVisible();
  await page.reload();
  await list.getByRole("searchbox").fill("zebra");
  await expect(list.getByRole("listitem")).toHaveCount(1);
  await list.getByRole("button", { name: "More: Quarterly zebra" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(list.getByText("Nothing found.")).toBeVisible();
  await expect(page).toHaveURL(`${hart.url}/`);
});

test("a conversation deleted elsewhere says so", async ({ page, hart }) => {
  await page.goto(`${hart.url}/chat/0190a5a0-0000-7000-8000-000000000000`);
  await expect(page.getByRole("alert")).toContainText("This is not there any more");
  await expect(field(page)).toBeVisible();
});

test("the page waits for a server that went away, and loses nothing", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY before the fall");
  await expect(transcript(page).getByText("before the fall", { exact: true })).toBeVisible();
  await settled(page);
  await ask(page, "SLOW 100 100");
  await expect(transcript(page).getByText(/tick3/)).toBeVisible();
  await hart.kill();
  await expect(page.getByText("Connection lost. Reconnecting…")).toBeVisible({ timeout: 40_000 });
  await hart.start();
  await expect(page.getByText("Connection lost. Reconnecting…")).toBeHidden({ timeout: 30_000 });
  await expect(transcript(page).getByText("before the fall", { exact: true })).toBeVisible();
  await settled(page);
  await ask(page, "SAY after the fall");
  await expect(transcript(page).getByText("after the fall", { exact: true })).toBeVisible();
});
