import { ask, expect, field, open, settled, test, transcript } from "./fixtures";

test("a server that is slow is waited for, and the page says so", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY worth waiting for");
  await settled(page);
  let answer: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (answer = resolve));
  await page.route(/\/api\/langgraph\/threads\/[^/]+$/, async (route) => {
    await held;
    await route.continue();
  });
  await page.reload();
  await expect(page.getByText("Loading the conversation…")).toBeVisible();
  await expect(page.getByText("The server takes longer than usual. Still waiting…")).toBeVisible();
  answer();
  await expect(transcript(page).getByText("worth waiting for", { exact: true })).toBeVisible();
  let take: () => void = () => undefined;
  const later = new Promise<void>((resolve) => (take = resolve));
  await page.route("**/runs/stream", async (route) => {
    await later;
    await route.continue();
  });
  await ask(page, "SAY at last");
  await expect(page.getByText("The server takes longer than usual. Still waiting…")).toBeVisible();
  take();
  await expect(transcript(page).getByText("at last", { exact: true })).toBeVisible();
  await settled(page);
});

test("a conversation that cannot be read now is read again on request", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY read me again");
  await settled(page);
  const broken = /\/api\/langgraph\/threads\/[^/]+$/;
  await page.route(broken, (route) => route.fulfill({ status: 500, json: { detail: "boom" } }));
  await page.reload();
  await expect(page.getByRole("alert")).toContainText("The run failed");
  await expect(page.getByRole("alert")).toContainText("boom");
  await page.unroute(broken);
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(transcript(page).getByText("read me again", { exact: true })).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("words that did not get through are back in the field", async ({ page, hart }) => {
  await page.route("**/runs/stream", (route) => route.fulfill({ status: 500, json: { detail: "boom" } }));
  await open(page, hart);
  await ask(page, "SAY precious words");
  await expect(page.getByRole("alert")).toContainText("The run failed");
  await expect(field(page)).toHaveValue("SAY precious words");
  await page.unroute("**/runs/stream");
  await field(page).press("Enter");
  await expect(transcript(page).getByText("precious words", { exact: true })).toBeVisible();
  await settled(page);
  await expect(page.getByRole("article", { name: "You" })).toHaveCount(1);
  await expect(field(page)).toHaveValue("");
});

test("a conversation that is deleted elsewhere while it is open says so, and the words move on", async ({
  page,
  hart,
}) => {
  await open(page, hart);
  await ask(page, "SAY soon gone");
  await settled(page);
  const thread = /\/chat\/([^/]+)/.exec(page.url())?.[1];
  await fetch(`${hart.url}/threads/${thread}`, { method: "DELETE" });
  await ask(page, "SAY where am I");
  await expect(page.getByRole("alert")).toContainText("This is not there any more");
  await page.getByRole("alert").getByRole("button", { name: "New chat" }).click();
  await expect(page).toHaveURL(`${hart.url}/`);
  await expect(field(page)).toHaveValue("SAY where am I");
  await field(page).press("Enter");
  await expect(transcript(page).getByText("where am I", { exact: true })).toBeVisible();
  await settled(page);
});

test("words written while the server is down wait until it is back", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY before");
  await settled(page);
  await hart.kill();
  try {
    await ask(page, "SAY into the dark");
    await expect(page.getByText("Connection lost. Reconnecting…")).toBeVisible({ timeout: 40_000 });
    await expect(field(page)).toHaveValue("SAY into the dark");
  } finally {
    await hart.start();
  }
  await expect(page.getByText("Connection lost. Reconnecting…")).toBeHidden({ timeout: 30_000 });
  await expect(field(page)).toHaveValue("SAY into the dark");
  await field(page).press("Enter");
  await expect(transcript(page).getByText("into the dark", { exact: true })).toBeVisible();
  await settled(page);
});

test("bytes that are no text are named, not shown", async ({ page, hart }) => {
  await open(page, hart);
  const noise = ["bash", { description: "Noise", command: "head -c 4000 /dev/urandom" }];
  await ask(page, `STEPS ${JSON.stringify([noise])}`);
  await expect(transcript(page).getByText("All done.")).toBeVisible();
  await settled(page);
  await transcript(page).getByRole("button", { name: /Noise/ }).click();
  await expect(page.getByRole("region", { name: /^Run/ })).toContainText("Binary data, not shown");
});

test("words from right to left stay so in the field, the message, the list and a card", async ({ page, hart }) => {
  await open(page, hart);
  const text = "SAY شكرا جزيلا لكم";
  await field(page).fill("مرحبا");
  expect(await field(page).evaluate((element) => getComputedStyle(element).direction)).toBe("rtl");
  await ask(page, text);
  await settled(page);
  await ask(page, `CALL bash ${JSON.stringify({ description: "اطبع", command: "echo مرحبا بالعالم" })}`);
  await settled(page);
  await transcript(page).getByRole("button", { name: /اطبع/ }).click();
  const output = page.getByRole("region", { name: /^Run/ }).locator(".tool-text");
  await expect(output).toContainText("مرحبا");
  expect(await output.evaluate((element) => getComputedStyle(element).direction)).toBe("rtl");
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow).toBeLessThanOrEqual(0);
});
