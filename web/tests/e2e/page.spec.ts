import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { ask, expect, field, open, settled, test, transcript } from "./fixtures";

const AXE = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; any: { message: string }[] }[];
}

/** The rules of WCAG 2.2 A and AA. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } }).axe;
    const result = await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
    return result.violations;
  });
  return found.map(
    (one) =>
      `${one.impact} ${one.id}: ${one.nodes.map((node) => `${node.html.slice(0, 90)} ${node.any[0]?.message}`).join(" | ")}`,
  );
}

const RICH = [
  "# Heading",
  "Some *text* with `code`, a [link](https://example.com) and a list:",
  "- one\n- two",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  '```python\ndef f(x):\n    return "x"  # note\n```',
  "$$\\int_0^1 x^2\\,dx = \\frac13$$",
].join("\n\n");
const rich = `SAY64 ${Buffer.from(RICH).toString("base64")}`;

for (const theme of ["light", "dark"] as const) {
  test(`everything can be perceived and operated, ${theme}`, async ({ page, hart }) => {
    await page.emulateMedia({ colorScheme: theme });
    await open(page, hart);
    expect(await violations(page)).toEqual([]);
    await ask(page, rich);
    await settled(page);
    await expect(page.locator("math[display=block]")).toBeVisible();
    const command = { description: "Count", command: "seq 3; false" };
    await ask(page, `CALL bash ${JSON.stringify(command)}`);
    await settled(page);
    await transcript(page).getByRole("button", { name: /Count/ }).click();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Run inspector" }).click();
    await expect(
      page
        .getByRole("complementary")
        .getByText(/Step \d/)
        .first(),
    ).toBeVisible();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Settings" }).click();
    expect(await violations(page)).toEqual([]);
  });
}

test("without a mouse: ask, open the palette, switch, change settings", async ({ page, hart }) => {
  await open(page, hart);
  await page.keyboard.press("Shift+Escape");
  await expect(field(page)).toBeFocused();
  await page.keyboard.type("SAY typed by hand");
  await page.keyboard.press("Enter");
  await expect(transcript(page).getByText("typed by hand", { exact: true })).toBeVisible();
  await settled(page);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("new chat");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "What shall we get done?" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("typed by hand");
  await page.keyboard.press("Enter");
  await expect(transcript(page).getByText("typed by hand", { exact: true })).toBeVisible();
  await page.keyboard.press("Shift+Escape");
  await page.keyboard.type("/sett");
  await expect(page.getByRole("option", { name: /settings/i })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Settings" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(field(page)).toBeFocused();
  await page.keyboard.type("SLOW 100 100");
  await page.keyboard.press("Enter");
  await expect(transcript(page).getByText(/tick2/)).toBeVisible();
  await page.keyboard.press("Escape");
  await settled(page);
});

test("settings: dark, Chinese, and both are kept", async ({ page, hart }) => {
  await open(page, hart);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("radio", { name: "Dark" }).check();
  await page.getByRole("radio", { name: "中文" }).check();
  await expect(page.getByRole("dialog", { name: "设置" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "想完成什么？" })).toBeVisible();
  await expect(page.getByRole("button", { name: /做一个网页.*乘法表/ })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.lang)).toBe("zh");
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(paper).toBe("rgb(23, 24, 22)");
});

test("on a phone nothing is cut off and the list is a drawer", async ({ page, hart }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await open(page, hart);
  await ask(page, rich);
  await settled(page);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow).toBeLessThanOrEqual(0);
  await expect(page.getByRole("navigation")).toBeHidden();
  await page.getByRole("button", { name: "Show conversations" }).click();
  await expect(page.getByRole("navigation")).toBeVisible();
  await page.getByRole("navigation").getByRole("button", { name: "New chat" }).click();
  await expect(page.getByRole("navigation")).toBeHidden();
  expect(await violations(page)).toEqual([]);
});

test("words from right to left, and a message of a megabyte", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, "SAY مرحبا بالعالم");
  const said = transcript(page).locator(".markdown").first();
  await expect(said).toContainText("مرحبا");
  expect(await said.evaluate((element) => getComputedStyle(element).direction)).toBe("rtl");
  await settled(page);
  await ask(page, `SAY ok ${"x".repeat(1 << 20)}`);
  await settled(page);
  await expect(page.getByRole("button", { name: "Show all" }).first()).toBeVisible();
});

test("a server that is slow, fails or speaks nonsense has a designed state", async ({ page, hart }) => {
  await page.route("**/runs/stream", (route) =>
    route.fulfill({ status: 500, contentType: "application/json", body: '{"detail":"boom"}' }),
  );
  await open(page, hart);
  await ask(page, "SAY hello");
  await expect(page.getByRole("alert")).toContainText("The run failed");
  await page.unroute("**/runs/stream");
  await page.route("**/runs/stream", (route) =>
    route.fulfill({ status: 413, contentType: "application/json", body: '{"detail":"too much"}' }),
  );
  await ask(page, "SAY again");
  await expect(page.getByRole("alert")).toContainText("This is too large");
});
