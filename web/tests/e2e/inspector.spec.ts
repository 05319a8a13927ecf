import { findings } from "./axe";
import { ask, expect, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

/** A model with a price, so that there is something to pay. */
const priced = (url: string) => `
models:
  - name: priced
    use: openai-compatible
    model: scripted
    base_url: ${url}
    api_key: none
    pricing: {currency: USD, input_per_million: 100000, output_per_million: 0}
`;

test("a run shows time, tokens and cost, its states, and is replayed without a model", async ({ page, model }) => {
  const hart = await startHart(null, priced(model.url));
  try {
    await page.goto(hart.url);
    const steps = [
      ["bash", { description: "Count", command: "seq 3" }],
      ["bash", { description: "Count on", command: "seq 4 6" }],
    ];
    await ask(page, `STEPS ${JSON.stringify(steps)}`);
    await expect(transcript(page).getByText("All done.")).toBeVisible();
    await settled(page);
    await page.getByRole("button", { name: "Run inspector" }).click();
    const panel = page.getByRole("complementary", { name: "Run inspector" });
    // Three answers at ten tokens in, a dollar each.
    await expect(panel.getByRole("region", { name: "Run" }).first()).toContainText("done");
    await expect(panel.getByRole("region", { name: "Run" }).first()).toContainText("45 tokens");
    await expect(panel.getByRole("region", { name: "Run" }).first()).toContainText("3.00");
    await expect(panel.getByText("15 tokens · Cost $1.00").first()).toBeVisible();
    await panel.getByRole("button", { name: "State", exact: true }).first().click();
    await expect(panel.locator("pre.tool-text").first()).toContainText('"messages"');

    const asked = model.requests;
    await panel.getByRole("button", { name: "Replay this run" }).first().click();
    const log = panel.locator(".replay-log");
    await panel.getByRole("button", { name: "Pause" }).click();
    await panel.getByRole("slider").fill("0");
    await expect(log.getByRole("listitem")).toHaveCount(0);
    await panel.getByRole("button", { name: "Step forward" }).click();
    await expect(log.getByRole("listitem")).toHaveCount(1);
    await panel.getByRole("button", { name: "Step forward" }).click();
    await expect(log).toContainText("calls bash");
    expect(await findings(page)).toEqual([]);
    await panel.getByLabel("Speed").selectOption("8");
    await panel.getByRole("button", { name: "Play" }).click();
    await expect(log).toContainText("All done.");
    await expect(panel.getByRole("button", { name: "Play" })).toBeVisible();
    await expect(panel.getByRole("status")).toContainText("45 tokens");
    expect(model.requests).toBe(asked);
    await panel.getByRole("button", { name: "Step back" }).click();
    await expect(log).not.toContainText("All done.");
    const before = page.url();
    await panel.getByRole("button", { name: "Continue from here" }).click();
    await expect(page).not.toHaveURL(before);
    await expect(page.getByRole("article", { name: "You" }).getByText(/STEPS/)).toBeVisible();
    await expect(transcript(page).getByText("All done.")).toHaveCount(0);
  } finally {
    await hart.stop();
  }
});

test("usage: tokens and money by day, model and conversation, as a chart and as a table", async ({ page, model }) => {
  const hart = await startHart(null, priced(model.url));
  try {
    await page.goto(hart.url);
    await page.getByRole("button", { name: "Settings" }).click();
    const dialog = page.getByRole("dialog", { name: "Settings" });
    await dialog.getByRole("tab", { name: "Usage" }).click();
    await expect(dialog.getByText("Nothing was used in this time.")).toBeVisible();
    await page.keyboard.press("Escape");
    await ask(page, "SAY costly words");
    await expect(transcript(page).getByText("costly words", { exact: true })).toBeVisible();
    await settled(page);
    await page.getByRole("button", { name: "Settings" }).click();
    await dialog.getByRole("tab", { name: "Usage" }).click();
    await expect(dialog.getByRole("img", { name: "Per day: Tokens" })).toBeVisible();
    await expect(dialog.locator(".usage-total")).toContainText("$1.00");
    const row = dialog.getByRole("table", { name: "By model" }).getByRole("row", { name: /priced/ });
    await expect(row).toContainText("15");
    await expect(row).toContainText("$1.00");
    await dialog.getByText("Show as a table").click();
    await expect(dialog.getByRole("table", { name: "Per day" }).getByRole("row")).toHaveCount(2);
    await dialog.getByLabel("Show", { exact: true }).selectOption("cost");
    await expect(dialog.getByRole("img", { name: "Per day: Cost" })).toBeVisible();
    await expect(dialog.locator("rect.chart-part")).toHaveCount(30);
    expect(await findings(page)).toEqual([]);
    await dialog.getByLabel("Period").selectOption("7");
    await expect(dialog.locator("rect.chart-part")).toHaveCount(7);
    await dialog
      .getByRole("table", { name: "By conversation" })
      .getByRole("link", { name: /costly words/ })
      .click();
    await expect(dialog).toHaveCount(0);
    await expect(page).toHaveURL(/\/chat\//);
  } finally {
    await hart.stop();
  }
});
