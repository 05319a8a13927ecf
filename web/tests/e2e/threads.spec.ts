import { readFile } from "node:fs/promises";
import { ask, expect, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

test("old conversations are found and pinned, and a conversation is exported", async ({ page, model }) => {
  const hart = await startHart(model.url);
  try {
    await page.goto(hart.url);
    await expect(page.getByText("No conversations yet.")).toBeVisible();
    await ask(page, "SAY buried treasure");
    await expect(transcript(page).getByText("buried treasure", { exact: true })).toBeVisible();
    await settled(page);
    // Many later ones push it out of what the list loads.
    for (let index = 0; index < 70; index++) {
      await page.request.post(`${hart.url}/api/threads`, { data: { metadata: { title: `Filler ${index}` } } });
    }
    await page.goto(hart.url);
    const list = page.getByRole("navigation");
    await expect(list.getByText("Filler 69", { exact: true })).toBeVisible();
    await expect(list.getByText(/buried treasure/)).toHaveCount(0);
    await list.getByRole("searchbox").fill("treasure");
    await expect(list.getByText(/buried treasure/)).toBeVisible();
    await expect(list.getByText(/Filler/)).toHaveCount(0);
    await list.getByRole("button", { name: /More: .*buried treasure/ }).click();
    await page.getByRole("menuitem", { name: "Pin" }).click();
    await list.getByRole("searchbox").fill("no such thing");
    await expect(list.getByText("Nothing found.")).toBeVisible();
    await page.reload();
    await expect(list.getByRole("region", { name: "Pinned" }).getByText(/buried treasure/)).toBeVisible();
    await list.getByRole("button", { name: /More: .*buried treasure/ }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "Export as Markdown" }).click(),
    ]);
    expect(await readFile(await download.path(), "utf8")).toContain("## hart\n\nburied treasure");
  } finally {
    await hart.stop();
  }
});
