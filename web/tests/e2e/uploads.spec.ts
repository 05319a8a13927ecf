import { mkdtemp, open as openFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { ask, expect, field, open, settled, test, transcript } from "./fixtures";

const attached = (page: Page) => page.getByRole("list", { name: "Attached files" }).getByRole("listitem");
const threadOf = (page: Page) => /\/chat\/([^/]+)/.exec(page.url())?.[1] ?? "";

async function uploaded(page: Page, url: string): Promise<string[]> {
  const answer = await fetch(`${url}/api/threads/${threadOf(page)}/uploads/list`);
  const { files } = (await answer.json()) as { files: { filename: string }[] };
  return files.map((file) => file.filename).sort();
}

function text(name: string, content: string) {
  return { name, mimeType: "text/plain", buffer: Buffer.from(content) };
}

/** A file with nothing in it that takes no room on the disk. */
async function hole(megabytes: number): Promise<{ path: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "hart-web-"));
  const path = join(folder, "large.bin");
  const file = await openFile(path, "w");
  await file.truncate(megabytes << 20);
  await file.close();
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

test("files come by button, paste and drop, and the agent reads them", async ({ page, hart }) => {
  await open(page, hart);
  await page.locator("input[type=file]").setInputFiles(text("button.txt", "by button"));
  await expect(attached(page).filter({ hasText: "button.txt" })).toContainText("9 B");
  await field(page).evaluate((element) => {
    const data = new DataTransfer();
    data.items.add(new File(["by paste"], "paste.txt", { type: "text/plain" }));
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await expect(attached(page).filter({ hasText: "paste.txt" })).toContainText("8 B");
  const data = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["by drop"], "drop.txt", { type: "text/plain" }));
    return data;
  });
  // Anywhere on the page will do.
  await page
    .getByRole("heading", { name: "What shall we get done?" })
    .dispatchEvent("dragover", { dataTransfer: data });
  await expect(page.getByText("Drop files to attach them")).toBeVisible();
  await page.getByRole("heading", { name: "What shall we get done?" }).dispatchEvent("drop", { dataTransfer: data });
  await expect(attached(page).filter({ hasText: "drop.txt" })).toContainText("7 B");
  // A name that is taken gets a number; one that is taken off does not stay.
  await page.locator("input[type=file]").setInputFiles(text("button.txt", "another"));
  await expect(attached(page)).toHaveCount(4);
  await expect.poll(() => uploaded(page, hart.url)).toEqual(["button.txt", "button_1.txt", "drop.txt", "paste.txt"]);
  await page.getByRole("button", { name: "Remove paste.txt" }).click();
  await expect.poll(() => uploaded(page, hart.url)).toEqual(["button.txt", "button_1.txt", "drop.txt"]);
  await ask(page, `CALL bash ${JSON.stringify({ command: "cat /mnt/user-data/uploads/*.txt" })}`);
  await expect(transcript(page).getByText(/Tool said: by button/)).toContainText("anotherby drop");
  await settled(page);
  const message = page.getByRole("article", { name: "You" });
  await expect(message).toContainText("button_1.txt");
  await expect(message).not.toContainText("paste.txt");
  await message.getByRole("button", { name: "drop.txt" }).click();
  await expect(page.getByRole("complementary", { name: "Files" })).toContainText("by drop");
});

test("a hundred megabytes are refused with the limit, and so are too many files", async ({ page, hart }) => {
  const large = await hole(100);
  try {
    await open(page, hart);
    await page.locator("input[type=file]").setInputFiles(large.path);
    await expect(attached(page)).toContainText("larger than the limit of 50 MB");
    await page.getByRole("button", { name: "Remove large.bin" }).click();
    const many = Array.from({ length: 11 }, (_, index) => text(`${index}.txt`, "x"));
    await page.locator("input[type=file]").setInputFiles(many);
    await expect(attached(page).filter({ hasText: "only 10 files go with one message" })).toHaveCount(1);
    await ask(page, "SAY the rest is here");
    await expect(transcript(page).getByText("the rest is here", { exact: true })).toBeVisible();
    await expect(page.getByRole("article", { name: "You" })).toContainText("9.txt");
  } finally {
    await large.remove();
  }
});

test("where the limits are not known the server refuses, and the page says so", async ({ page, hart }) => {
  const large = await hole(60);
  try {
    await page.route("**/uploads/limits", (route) => route.fulfill({ status: 500, json: { detail: "broken" } }));
    await open(page, hart);
    await page.locator("input[type=file]").setInputFiles(large.path);
    await expect(attached(page).getByRole("alert")).toContainText(/larger than 50 MB|cut off, or the server refused/);
    await expect.poll(() => uploaded(page, hart.url)).toEqual([]);
    await page.getByRole("button", { name: "Remove large.bin" }).click();
    await ask(page, "SAY still well");
    await expect(transcript(page).getByText("still well", { exact: true })).toBeVisible();
  } finally {
    await large.remove();
  }
});

test("an upload shows how far it is, holds the message back, and can be cancelled or tried again", async ({
  page,
  hart,
}) => {
  let let_go: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (let_go = resolve));
  let calls = 0;
  await page.route(/\/api\/threads\/[^/]+\/uploads$/, async (route) => {
    calls += 1;
    if (calls === 1) await held;
    if (calls === 2) return route.abort("connectionreset");
    return route.continue();
  });
  await open(page, hart);
  await page.locator("input[type=file]").setInputFiles(text("slow.txt", "slow"));
  await expect(attached(page).getByRole("progressbar")).toBeVisible();
  await field(page).fill("SAY too early");
  await expect(page.getByRole("button", { name: "Send" })).toBeDisabled();
  // It is on its way, not only on the page.
  await expect.poll(() => calls).toBe(1);
  await page.getByRole("button", { name: "Remove slow.txt" }).click();
  await expect(attached(page)).toHaveCount(0);
  let_go();
  await page.locator("input[type=file]").setInputFiles(text("cut.txt", "cut"));
  await expect(attached(page).getByRole("alert")).toContainText("cut off");
  await page.getByRole("button", { name: "Upload cut.txt again" }).click();
  await expect(attached(page)).toContainText("3 B");
  await expect(page.getByRole("button", { name: "Send" })).toBeEnabled();
});

test("files of a message that did not get through stay with it, and go with it the next time", async ({
  page,
  hart,
}) => {
  await open(page, hart);
  await page.locator("input[type=file]").setInputFiles([text("one.txt", "first "), text("two.txt", "second")]);
  await expect(attached(page).filter({ hasText: "6 B" })).toHaveCount(2);
  await page.route("**/runs/stream", (route) => route.fulfill({ status: 500, json: { detail: "boom" } }));
  const words = `CALL bash ${JSON.stringify({ command: "cat /mnt/user-data/uploads/*.txt" })}`;
  await ask(page, words);
  await expect(page.getByRole("alert")).toContainText("The run failed");
  await expect(field(page)).toHaveValue(words);
  await expect(attached(page)).toHaveText([/one\.txt/, /two\.txt/]);
  // Written and not sent, they outlive the page.
  await page.reload();
  await expect(field(page)).toHaveValue(words);
  await expect(attached(page)).toHaveText([/one\.txt/, /two\.txt/]);
  await page.unroute("**/runs/stream");
  await field(page).press("Enter");
  await expect(transcript(page).getByText("Tool said: first second")).toBeVisible();
  await settled(page);
  await expect(page.getByRole("article", { name: "You" })).toContainText("one.txt");
  await expect(attached(page)).toHaveCount(0);
  await page.reload();
  await expect(page.getByRole("article", { name: "You" })).toContainText("two.txt");
  await expect(attached(page)).toHaveCount(0);
});

test("files move on with the words when the conversation is gone", async ({ page, hart }) => {
  await open(page, hart);
  await page.locator("input[type=file]").setInputFiles(text("kept.txt", "still here"));
  await expect(attached(page)).toContainText("10 B");
  await fetch(`${hart.url}/threads/${threadOf(page)}`, { method: "DELETE" });
  await ask(page, `CALL bash ${JSON.stringify({ command: "cat /mnt/user-data/uploads/kept.txt" })}`);
  await expect(page.getByRole("alert")).toContainText("This is not there any more");
  await page.getByRole("alert").getByRole("button", { name: "New chat" }).click();
  await expect(attached(page)).toContainText("10 B");
  await field(page).press("Enter");
  await expect(transcript(page).getByText("Tool said: still here")).toBeVisible();
  await settled(page);
});

test("a megabyte of text can go as a file", async ({ page, hart }) => {
  await open(page, hart);
  await field(page).fill("y".repeat(1 << 20));
  await page.getByRole("button", { name: "Attach it as a file" }).click();
  await expect(attached(page)).toContainText("message.txt");
  await expect(attached(page)).toContainText("1.0 MB");
  await expect(field(page)).toHaveValue("");
  await ask(page, `CALL bash ${JSON.stringify({ command: "wc -c < /mnt/user-data/uploads/message.txt" })}`);
  await expect(transcript(page).getByText(/Tool said: 1048576/)).toBeVisible();
});
