/** The pictures of what is around the conversation: `PICTURES=../docs/images npm run e2e -- pictures-around`. */
import type { Page } from "@playwright/test";
import { ask, expect, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

const folder = process.env.PICTURES;
test.skip(!folder, "only when asked for, with PICTURES=folder");

async function scene(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  await page.waitForTimeout(400);
  await page.screenshot({ path: `${folder}/${name}.png` });
}

test("connecting a model", async ({ page, model }) => {
  const hart = await startHart(null);
  try {
    await page.goto(hart.url);
    const form = page.getByRole("region", { name: "Connect a model" });
    await form.getByRole("radio", { name: "Elsewhere" }).check();
    await form.getByLabel("Address").fill(model.url);
    await form.getByRole("button", { name: "Test" }).click();
    await expect(form.getByRole("status")).toContainText("answers");
    await scene(page, "web-connect");
  } finally {
    await hart.stop();
  }
});

test("usage and replay", async ({ page, model }) => {
  const entry = (name: string, input: number) =>
    `  - {name: ${name}, use: openai-compatible, model: ${name}, base_url: "${model.url}", api_key: none, pricing: {currency: USD, input_per_million: ${input}, output_per_million: 900}}\n`;
  const hart = await startHart(null, `models:\n${entry("large", 4000)}${entry("small", 400)}`);
  const asked = ["Compare the three offers", "Plan a week in the mountains", "Tidy up the table of addresses"];
  const steps = [
    ["bash", { description: "Count", command: "seq 3" }],
    ["bash", { description: "Add up", command: "echo $((1+2+3))" }],
  ];
  for (const words of asked) model.meaning.set(words, `STEPS ${JSON.stringify(steps)}`);
  try {
    for (const [index, words] of asked.entries()) {
      await page.goto(hart.url);
      await page.evaluate(
        (name) => localStorage.setItem("hart:settings", JSON.stringify({ model: name })),
        index === 1 ? "small" : "large",
      );
      await page.reload();
      await ask(page, words);
      await expect(transcript(page).getByText("All done.")).toBeVisible();
      await settled(page);
    }
    await page.getByRole("button", { name: "Run inspector" }).click();
    const panel = page.getByRole("complementary", { name: "Run inspector" });
    await panel.getByRole("button", { name: "Replay this run" }).click();
    await panel.getByRole("button", { name: "Pause" }).click();
    await panel.getByRole("slider").fill("3");
    await scene(page, "web-replay");
    await page.getByRole("button", { name: "Settings" }).click();
    const dialog = page.getByRole("dialog", { name: "Settings" });
    await dialog.getByRole("tab", { name: "Usage" }).click();
    await dialog.getByLabel("Period").selectOption("7");
    await expect(dialog.getByRole("table", { name: "By model" })).toBeVisible();
    await scene(page, "web-usage");
  } finally {
    await hart.stop();
  }
});
