import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { findings } from "./axe";
import { ask, expect, open, settled, test, transcript } from "./fixtures";
import { CONTENT_REVIEWER } from "./model";
import type { Hart } from "./hart";
import { zip } from "./zip";

async function openTab(page: Page, name: string): Promise<Locator> {
  await page.getByRole("button", { name: "Settings" }).click();
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await dialog.getByRole("tab", { name }).click();
  return dialog;
}

async function get(page: Page, hart: Hart, path: string) {
  return (await page.request.get(`${hart.url}${path}`)).json();
}

test("an agent of one's own is made, chosen for a conversation, changed and deleted", async ({ page, hart }) => {
  await open(page, hart);
  const dialog = await openTab(page, "Agents");
  await expect(dialog.getByText("None yet.")).toBeVisible();
  await dialog.getByRole("button", { name: "New agent" }).click();
  const form = dialog.getByRole("form", { name: "New agent" });
  await form.getByLabel("Name").fill("Poet");
  await form.getByLabel("What it is for").fill("Rhymes");
  await form.getByLabel("Character and instructions").fill("You rhyme always.");
  await form.getByRole("group", { name: "Tools" }).getByRole("radio", { name: "Only these" }).check();
  await form.getByRole("checkbox", { name: "Read files" }).check();
  expect(await findings(page)).toEqual([]);
  await form.getByRole("button", { name: "Create" }).click();
  await expect(dialog.getByRole("button", { name: "Edit poet" })).toBeVisible();
  expect(await get(page, hart, "/api/agents/poet")).toMatchObject({
    description: "Rhymes",
    soul: "You rhyme always.",
    tool_groups: ["file:read"],
  });

  // Refused with the server's reason, and nothing of the form is lost.
  await dialog.getByRole("button", { name: "New agent" }).click();
  await form.getByLabel("Name").fill("poet");
  await form.getByLabel("What it is for").fill("The same again");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(form.getByRole("alert")).toContainText("already exists");
  await expect(form.getByLabel("What it is for")).toHaveValue("The same again");
  await form.getByRole("button", { name: "Cancel" }).click();

  await dialog.getByRole("button", { name: "Edit poet" }).click();
  const edit = dialog.getByRole("form", { name: "Edit poet" });
  await edit.getByLabel("What it is for").fill("Rhymes about rain");
  await edit.getByRole("button", { name: "Save" }).click();
  await expect(dialog.getByText("Rhymes about rain").first()).toBeVisible();
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: /^Agent: / }).click();
  await page.getByRole("menuitemradio", { name: /poet/ }).click();
  await ask(page, "SAY rain again");
  await expect(transcript(page).getByText("rain again", { exact: true })).toBeVisible();
  await settled(page);
  const poet = (await page.request.post(`${hart.url}/api/assistants/search`, { data: { graph_id: "poet" } })).json();
  const [run] = await get(page, hart, "/api/runs?limit=1");
  expect(run.assistant_id).toBe((await poet)[0].assistant_id);
  // The conversation keeps its agent; another one has another.
  const address = page.url();
  await page.getByRole("navigation").getByRole("button", { name: "New chat" }).click();
  await page.getByRole("button", { name: /^Agent: / }).click();
  await page.getByRole("menuitemradio", { name: /^hart/ }).click();
  await expect(page.getByRole("button", { name: "Agent: hart" })).toBeVisible();
  await page.goto(address);
  await expect(page.getByRole("button", { name: "Agent: poet" })).toBeVisible();

  await openTab(page, "Agents");
  await dialog.getByRole("button", { name: "Delete: poet" }).click();
  await page.getByRole("dialog", { name: "Delete" }).getByRole("button", { name: "Delete" }).click();
  await expect(dialog.getByText("None yet.")).toBeVisible();
  await page.keyboard.press("Escape");
  // It can still be read, and goes on with another.
  await expect(transcript(page).getByText("rain again", { exact: true })).toBeVisible();
  await ask(page, "SAY without the poet");
  await expect(transcript(page).getByText("without the poet", { exact: true })).toBeVisible();
});

const SKILL = "---\nname: haiku-weather\ndescription: Writes haiku about the weather.\n---\n\nCount the syllables.\n";

test("a skill is dropped, checked, shown, switched off; a bad one says why", async ({ page, hart, model }) => {
  model.replies = [CONTENT_REVIEWER];
  await open(page, hart);
  const dialog = await openTab(page, "Skills");
  const threads = await (await page.request.post(`${hart.url}/api/threads/search`, { data: {} })).json();
  const bytes = [...zip({ "haiku-weather/SKILL.md": SKILL })];
  await dialog.locator(".drop").evaluate((element, bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "haiku.skill"));
    element.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }, bytes);
  await expect(page.getByText("haiku-weather is installed and on.")).toBeVisible();
  const box = dialog.getByRole("checkbox", { name: /haiku-weather/ });
  await expect(box).toBeChecked();
  await dialog.getByRole("button", { name: "Show: haiku-weather" }).click();
  await expect(dialog.getByText("Count the syllables.")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await box.uncheck();
  await expect.poll(async () => (await get(page, hart, "/api/skills/haiku-weather")).enabled).toBe(false);
  await dialog.getByLabel("Find a skill").fill("haiku");
  await expect(dialog.getByRole("checkbox")).toHaveCount(1);
  // The thread that it passed through is gone.
  const after = await (await page.request.post(`${hart.url}/api/threads/search`, { data: {} })).json();
  expect(after.length).toBe(threads.length);

  const picker = dialog.locator("input[type=file]");
  await picker.setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("x") });
  await expect(dialog.getByRole("alert")).toContainText("ends in .skill");
  await picker.setInputFiles({ name: "bad.skill", mimeType: "x/y", buffer: Buffer.from("no archive") });
  await expect(dialog.getByRole("alert")).toContainText("was not installed");
  await picker.setInputFiles({ name: "again.skill", mimeType: "x/y", buffer: Buffer.from(bytes) });
  await expect(dialog.getByRole("alert")).toContainText("there already");
});

test("a skill of one's own is deleted, after a question; what came with hart stays", async ({ page, hart }) => {
  const folder = join(hart.home, ".hart/users/default/skills/own-notes");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "SKILL.md"), SKILL.replace("haiku-weather", "own-notes"));
  await open(page, hart);
  const dialog = await openTab(page, "Skills");
  const box = dialog.getByRole("checkbox", { name: /own-notes/ });
  await expect(box).toBeVisible();
  await expect(dialog.getByRole("checkbox", { name: /^chart-making/ })).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Delete: chart-making" })).toHaveCount(0);
  const confirm = page.getByRole("dialog", { name: "Delete" });
  await dialog.getByRole("button", { name: "Delete: own-notes" }).click();
  await confirm.getByRole("button", { name: "Cancel" }).click();
  await expect(box).toBeVisible();
  await dialog.getByRole("button", { name: "Delete: own-notes" }).click();
  await confirm.getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText("own-notes is deleted.")).toBeVisible();
  await expect(box).toHaveCount(0);
  expect((await page.request.get(`${hart.url}/api/skills/own-notes`)).status()).toBe(404);
});

test("models say what they can do, and a choice is kept", async ({ page, hart }) => {
  await open(page, hart);
  const dialog = await openTab(page, "Models");
  const scripted = dialog.getByRole("radio", { name: /scripted/ });
  await scripted.check();
  await expect(dialog.getByText("default", { exact: true })).toBeVisible();
  await dialog.getByText("Connect a model").first().click();
  await expect(
    dialog.getByRole("region", { name: "Connect a model" }).getByLabel("Provider", { exact: true }),
  ).toBeVisible();
  await page.reload();
  await openTab(page, "Models");
  await expect(scripted).toBeChecked();
});

test("every subject of the settings can be perceived and operated, in both languages, also on a phone", async ({
  page,
  hart,
}) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await open(page, hart);
  const dialog = await openTab(page, "Appearance");
  for (const language of ["English", "中文"]) {
    await dialog
      .or(page.getByRole("dialog", { name: "设置" }))
      .getByRole("tab")
      .first()
      .click();
    await page.getByRole("radio", { name: language }).check();
    for (const tab of await page.getByRole("dialog").getByRole("tab").all()) {
      await tab.click();
      await page.waitForTimeout(200);
      expect(await findings(page), `${language}: ${await tab.textContent()}`).toEqual([]);
    }
  }
  await page.setViewportSize({ width: 360, height: 740 });
  for (const tab of await page.getByRole("dialog").getByRole("tab").all()) {
    await tab.click();
    const wide = await page.locator(".dialog-body").evaluate((body) => body.scrollWidth - body.clientWidth);
    expect(wide, (await tab.textContent()) ?? "").toBeLessThanOrEqual(0);
  }
  // Arrows go through the tabs.
  await page.getByRole("dialog").getByRole("tab").first().click();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("dialog").getByRole("tab").nth(1)).toHaveAttribute("aria-selected", "true");
});
