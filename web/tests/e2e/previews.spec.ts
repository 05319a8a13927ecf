import { readFile } from "node:fs/promises";
import type { Page } from "@playwright/test";
import { findings } from "./axe";
import { ask, expect, open, settled, test, transcript } from "./fixtures";
import { CONTENT_REVIEWER } from "./model";
import type { Hart } from "./hart";
import { zip } from "./zip";

const O = "/mnt/user-data/outputs";

/** A conversation whose agent has handed these files over. */
async function handedOver(page: Page, hart: Hart, files: Record<string, Buffer | string>): Promise<string> {
  const made = await page.request.post(`${hart.url}/api/threads`, { data: {} });
  const { thread_id: id } = (await made.json()) as { thread_id: string };
  const all = Object.entries(files);
  // The server takes ten at once.
  for (let at = 0; at < all.length; at += 10) {
    const form = new FormData();
    for (const [name, body] of all.slice(at, at + 10)) form.append("files", new File([Buffer.from(body)], name));
    const sent = await page.request.post(`${hart.url}/api/threads/${id}/uploads`, { multipart: form });
    expect(sent.ok(), await sent.text()).toBe(true);
  }
  await page.goto(`${hart.url}/chat/${id}`);
  const filepaths = Object.keys(files).map((name) => `${O}/${name}`);
  const copy = { description: "Copy", command: `cp /mnt/user-data/uploads/* ${O}/` };
  await ask(
    page,
    `STEPS ${JSON.stringify([
      ["bash", copy],
      ["present_files", { filepaths }],
    ])}`,
  );
  await expect(transcript(page).getByText("All done.")).toBeVisible();
  await settled(page);
  await page.getByRole("button", { name: "Files", exact: true }).click();
  return id;
}

function panelOf(page: Page) {
  const panel = page.getByRole("complementary", { name: "Files" });
  return {
    panel,
    async show(name: string) {
      const back = panel.getByRole("button", { name: "Back to the list" });
      if (await back.isVisible()) await back.click();
      await panel.getByRole("button", { name: new RegExp(`^${name.replace(/[.$]/g, "\\$&")}`) }).click();
    },
  };
}

/** A tenth of a second of silence. */
function wav(): Buffer {
  const samples = 800;
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8000, 24);
  head.writeUInt32LE(8000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples, 40);
  return Buffer.concat([head, Buffer.alloc(samples, 128)]);
}

/** Recorded by the browser itself. */
async function webm(page: Page): Promise<Buffer> {
  const base64 = await page.evaluate(async () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [32, 32];
    const paint = canvas.getContext("2d");
    const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm" });
    const parts: Blob[] = [];
    recorder.ondataavailable = (event) => parts.push(event.data);
    const done = new Promise((resolve) => (recorder.onstop = resolve));
    recorder.start();
    for (let index = 0; index < 12; index++) {
      paint?.fillRect(index, index, 8, 8);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    recorder.stop();
    await done;
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
    return btoa(String.fromCharCode(...bytes));
  });
  return Buffer.from(base64, "base64");
}

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const PDF = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
%%EOF
`;

test("every kind of file is shown as the server keeps it, and can be downloaded", async ({ page, hart, model }) => {
  model.replies = [CONTENT_REVIEWER];
  const refused: string[] = [];
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) refused.push(message.text());
  });
  await open(page, hart);
  const clip = await webm(page);
  await handedOver(page, hart, {
    "notes.md": "# Notes\n\nSome **bold** words",
    "data.csv": 'name,value\n"a, b",1\n',
    "data.tsv": "x\ty\n1\t2\n",
    "code.py": "def f():\n    return 1\n",
    "page.html": "<h1>A page</h1>",
    "dot.png": PNG,
    "shape.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect width="20" height="20"/></svg>',
    "paper.pdf": PDF,
    "sound.wav": wav(),
    "clip.webm": clip,
    README: "plain words without an ending",
    "thing.bin": Buffer.from([0, 1, 2, 3]),
    "nice.skill": zip({
      "nice-words/SKILL.md": "---\nname: nice-words\ndescription: Finds nice words.\n---\nBe nice.\n",
    }),
  });
  const { panel, show } = panelOf(page);
  await show("notes.md");
  await expect(panel.locator("strong")).toHaveText("bold");
  await show("data.csv");
  await expect(panel.getByRole("cell", { name: "a, b" })).toBeVisible();
  await show("data.tsv");
  await expect(panel.getByRole("columnheader", { name: "y" })).toBeVisible();
  await show("code.py");
  await expect(panel.locator(".hljs-keyword").first()).toHaveText("def");
  await show("page.html");
  await expect(page.frameLocator("iframe.page-frame").getByText("A page")).toBeVisible();
  for (const picture of ["dot.png", "shape.svg"]) {
    await show(picture);
    const shown = panel.getByRole("img", { name: picture });
    await expect.poll(() => shown.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBeGreaterThan(0);
  }
  await show("paper.pdf");
  await expect(panel.locator("iframe[title='paper.pdf']")).toHaveAttribute("src", /^blob:/);
  await show("sound.wav");
  const length = (media: Element) => (media as HTMLMediaElement).duration;
  await expect.poll(() => panel.locator("audio").evaluate(length)).toBeCloseTo(0.1, 1);
  await show("clip.webm");
  await expect.poll(() => panel.locator("video").evaluate((video) => (video as HTMLVideoElement).videoWidth)).toBe(32);
  await show("README");
  await expect(panel.getByText("plain words without an ending")).toBeVisible();
  await show("nice.skill");
  await expect(panel.getByText("Be nice.")).toBeVisible();
  await panel.getByRole("button", { name: "Install this skill" }).click();
  await expect(page.getByText("nice-words is installed and on.")).toBeVisible();
  await show("thing.bin");
  await expect(panel.getByText("There is no preview")).toBeVisible();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    panel.getByRole("button", { name: "Download" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("thing.bin");
  expect([...(await readFile(await download.path()))]).toEqual([0, 1, 2, 3]);
  expect(refused).toEqual([]);
});

const SCRIPT = "window.__ran=1;parent.__ran=1;top.__ran=1;fetch('https://evil.example/x')";

test("no file that is shown runs anything or sends anything", async ({ page, hart, outside }) => {
  const hostile = `<script>${SCRIPT}</script><img src=x onerror="${SCRIPT}"><img src="https://evil.example/i">`;
  await open(page, hart);
  await handedOver(page, hart, {
    "a.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="${SCRIPT}"><script>${SCRIPT}</script><image href="https://evil.example/s"/><foreignObject>${hostile}</foreignObject></svg>`,
    "b.md": `${hostile}\n\n![x](https://evil.example/m)\n\n[x](javascript:${SCRIPT})`,
    "c.csv": `"${hostile.replaceAll('"', '""')}",=cmd\n`,
    "d.html": hostile,
    "e.txt": hostile,
    "f.png": hostile,
    "g.pdf": hostile,
    "h.wav": hostile,
    zz: hostile,
    "j.skill": zip({ "j/SKILL.md": hostile }),
    "<img src=x onerror=window.__ran=1>.md": "a name that would like to be more",
  });
  const { panel, show } = panelOf(page);
  for (const name of ["a.svg", "b.md", "c.csv", "d.html", "e.txt", "f.png", "g.pdf", "h.wav", "zz", "j.skill"]) {
    await show(name);
    await page.waitForTimeout(300);
  }
  await expect(panel).toBeVisible();
  expect(await page.evaluate(() => (window as { __ran?: number }).__ran)).toBeUndefined();
  expect(outside).toEqual([]);
});

test("an edit that another version overtook is compared before it is saved", async ({ page, hart }) => {
  await open(page, hart);
  const id = await handedOver(page, hart, { "plan.md": "one\ntwo\n" });
  const { panel, show } = panelOf(page);
  await show("plan.md");
  await panel.getByRole("button", { name: "Edit" }).click();
  const text = panel.getByRole("textbox", { name: "plan.md" });
  await text.fill("one\nmine\n");
  // Meanwhile the agent writes; the file is another one, and what was typed is still there.
  const steps = [
    ["read_file", { description: "Look", path: `${O}/plan.md` }],
    ["str_replace", { description: "Change", path: `${O}/plan.md`, old_str: "two", new_str: "theirs" }],
  ];
  await ask(page, `STEPS ${JSON.stringify(steps)}`);
  await expect(transcript(page).getByText("All done.")).toHaveCount(2);
  await settled(page);
  await expect(text).toHaveValue("one\nmine\n");
  await expect(panel.getByText("The agent has changed this file meanwhile.")).toBeVisible();
  await panel.getByRole("button", { name: "Save", exact: true }).click();
  await expect(panel.getByRole("alert")).toContainText("changed meanwhile");
  await expect(panel.locator(".diff-removed")).toContainText("theirs");
  await expect(panel.locator(".diff-added")).toContainText("mine");
  expect(await findings(page)).toEqual([]);
  const now = async () => (await page.request.get(`${hart.url}/api/threads/${id}/artifacts${O}/plan.md`)).text();
  expect(await now()).toBe("one\ntheirs\n");
  await panel.getByRole("button", { name: "Save mine over it" }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  expect(await now()).toBe("one\nmine\n");
  // While a run is at work nothing is saved, and nothing is lost.
  await text.fill("one\nmine\nmore\n");
  await ask(page, "SLOW 30 150");
  await expect(transcript(page).getByText(/tick2/)).toBeVisible();
  await panel.getByRole("button", { name: "Save", exact: true }).click();
  await expect(panel.getByRole("alert")).toContainText("A run is at work here");
  await settled(page);
  await expect(text).toHaveValue("one\nmine\nmore\n");
  await panel.getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(now).toBe("one\nmine\nmore\n");
});

test("what each run changed is shown as a difference, also after a reload", async ({ page, hart }) => {
  await open(page, hart);
  const path = `${O}/list.txt`;
  await ask(page, `STEPS ${JSON.stringify([["write_file", { description: "w", path, content: "alpha\nbeta\n" }]])}`);
  await expect(transcript(page).getByText("All done.")).toBeVisible();
  await settled(page);
  const change = { description: "c", path, old_str: "beta", new_str: "gamma" };
  await ask(page, `STEPS ${JSON.stringify([["str_replace", change]])}`);
  await expect(transcript(page).getByText("All done.")).toHaveCount(2);
  await settled(page);
  await page.reload();
  await expect(transcript(page).getByText("All done.").first()).toBeVisible();
  await page.getByRole("button", { name: "Files", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Files" });
  await panel.getByRole("tab", { name: "Changes" }).click();
  const file = panel.getByRole("region", { name: path });
  await expect(file).toContainText("changed");
  await expect(file).toContainText("+1 −1");
  await expect(file.locator(".diff-removed")).toContainText("beta");
  await expect(file.locator(".diff-added")).toContainText("gamma");
  expect(await findings(page)).toEqual([]);
  await panel.getByLabel("Run").selectOption({ index: 1 });
  await expect(file).toContainText("new");
  await expect(file.locator(".diff-added").first()).toContainText("alpha");
});
