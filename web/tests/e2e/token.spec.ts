import { ask, expect, field, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

test("a server with a token is asked with it, and never in an address", async ({ page, model }) => {
  const hart = await startHart(model.url, "server:\n  token: open-sesame\n");
  const addresses: string[] = [];
  page.on("request", (request) => addresses.push(request.url()));
  try {
    await page.goto(hart.url);
    const dialog = page.getByRole("dialog", { name: "Settings" });
    await dialog.getByLabel("Access token").fill("wrong");
    await dialog.getByRole("button", { name: "Test" }).click();
    await expect(dialog.getByRole("status")).toHaveText("not reachable");
    await dialog.getByLabel("Access token").fill("open-sesame");
    await dialog.getByRole("button", { name: "Test" }).click();
    await expect(dialog.getByRole("status")).toHaveText("reachable");
    await page.keyboard.press("Escape");
    await expect(field(page)).toBeVisible();
    await ask(page, "SAY let in");
    await expect(transcript(page).getByText("let in", { exact: true })).toBeVisible();
    await settled(page);
    expect(addresses.filter((address) => address.includes("sesame"))).toEqual([]);
  } finally {
    await hart.stop();
  }
});
