import { expect, open, test, transcript } from "./fixtures";

/** A thread of two thousand messages, written into the state as any client may. */
async function longThread(url: string): Promise<string> {
  const json = (path: string, body: unknown) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }).then((response) => response.json() as Promise<{ thread_id: string }>);
  const { thread_id } = await json("/threads", { metadata: { graph_id: "lead_agent", title: "Long" } });
  const messages = Array.from({ length: 2000 }, (_, index) =>
    index % 2 === 0
      ? { type: "human", id: `m${index}`, content: `Question ${index}` }
      : {
          type: "ai",
          id: `m${index}`,
          content: `Answer ${index}\n\n- one\n- **two**\n\n\`\`\`js\nlet x = ${index};\n\`\`\``,
        },
  );
  await json(`/threads/${thread_id}/state`, { values: { messages }, as_node: "model" });
  return thread_id;
}

test("two thousand messages: few are in the page, the newest is in sight, and the first can be reached", async ({
  page,
  hart,
}) => {
  await open(page, hart);
  const thread = await longThread(hart.url);
  await page.goto(`${hart.url}/chat/${thread}`);
  await expect(transcript(page).getByText("Answer 1999")).toBeVisible();
  expect(await page.getByRole("article").count()).toBeLessThan(80);
  await transcript(page).evaluate((element) => (element.scrollTop = 0));
  await expect(transcript(page).getByText("Question 0", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Jump to the newest message" }).click();
  await expect(transcript(page).getByText("Answer 1999")).toBeVisible();
});

test("while an answer streams, finished messages are not drawn again", async ({ page, hart }) => {
  await open(page, hart);
  const thread = await longThread(hart.url);
  await page.goto(`${hart.url}/chat/${thread}`);
  await expect(transcript(page).getByText("Answer 1999")).toBeVisible();
  await page.getByRole("textbox", { name: "Message", exact: true }).fill("SLOW 20 100");
  await page.keyboard.press("Enter");
  await expect(transcript(page).getByText(/tick2/)).toBeVisible();
  const changed = await page.evaluate(async () => {
    const old = [...document.querySelectorAll("article")].find((one) => one.textContent?.includes("Question 1998"));
    let changes = 0;
    const observer = new MutationObserver((list) => (changes += list.length));
    if (old) observer.observe(old, { subtree: true, childList: true, attributes: true, characterData: true });
    await new Promise((resolve) => setTimeout(resolve, 1200));
    return old ? changes : -1;
  });
  expect(changed).toBe(0);
});
