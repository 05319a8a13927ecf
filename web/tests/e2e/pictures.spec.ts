/** The pictures in the documentation: `PICTURES=../docs/images npm run e2e -- pictures`. */
import type { Page } from "@playwright/test";
import { ask, expect, open, settled, test, transcript } from "./fixtures";

const folder = process.env.PICTURES;
test.skip(!folder, "only when asked for, with PICTURES=folder");

const O = "/mnt/user-data/outputs";

const REPORT = [
  "## Result",
  "The wettest month was **November** with 118 mm; spring was dry.",
  "| Month | Rain (mm) | Share |\n|---|---:|---:|\n| September | 64 | 24 % |\n| October | 87 | 32 % |\n| November | 118 | 44 % |",
  "The mean is $\\bar{x} = \\frac{1}{n}\\sum_{i=1}^{n} x_i \\approx 89.7$ mm. The script:",
  '```python\nimport csv\n\nwith open("rain.csv") as file:\n    rows = list(csv.DictReader(file))\nprint(max(rows, key=lambda row: int(row["mm"])))\n```',
].join("\n\n");

const todos = (states: string[]) => ({
  todos: ["Read the table", "Compute the means", "Write the report"].map((content, index) => ({
    content,
    status: states[index] ?? "pending",
  })),
});

async function scene(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  await page.waitForTimeout(400);
  await page.screenshot({ path: `${folder}/${name}.png` });
}

test("pictures", async ({ page, hart, model }) => {
  const steps = [
    ["write_todos", todos(["completed", "in_progress"])],
    [
      "write_file",
      { description: "Write the script", path: `${O}/rain.py`, content: "import csv\n\nrows = 3\nprint(rows)\n" },
    ],
    ["bash", { description: "Run it", command: "seq 3 | tr '\\n' ' '; echo rows" }],
    ["write_todos", todos(["completed", "completed", "completed"])],
    ["write_file", { description: "Write the report", path: `${O}/report.md`, content: REPORT }],
    ["present_files", { filepaths: [`${O}/report.md`] }],
  ];
  model.meaning.set("Which autumn month was the wettest? Give me a short report.", `STEPS ${JSON.stringify(steps)}`);
  model.meaning.set("Show me the result here, too.", `SAY64 ${Buffer.from(REPORT).toString("base64")}`);
  const remove = ["delete", { description: "Remove the old draft", path: `${O}/rain.py` }];
  model.meaning.set("Tidy up the outputs.", `STEPS ${JSON.stringify([remove])}`);
  await page.route("**/api/threads/*/artifacts/**", (route) =>
    route.fulfill({ contentType: "application/octet-stream", body: REPORT }),
  );
  await open(page, hart);
  await scene(page, "web-welcome");
  await ask(page, "Which autumn month was the wettest? Give me a short report.");
  await expect(transcript(page).getByText("All done.").first()).toBeVisible();
  await settled(page);
  await ask(page, "Show me the result here, too.");
  await expect(page.locator("math").first()).toBeVisible();
  await settled(page);
  await scene(page, "web-conversation");
  await transcript(page).evaluate((element) => (element.scrollTop = 0));
  await page.getByRole("button", { name: /Write the script/ }).click();
  await page.getByRole("button", { name: "report.md", exact: true }).click();
  await expect(page.getByRole("complementary").getByText("The wettest month")).toBeVisible();
  await scene(page, "web-files");
  await page.getByRole("complementary").getByRole("button", { name: "Close" }).click();
  await ask(page, "Tidy up the outputs.");
  await expect(page.getByRole("region", { name: "May it do this?" })).toBeVisible();
  await scene(page, "web-approval");
  await page.getByRole("button", { name: "Approve" }).click();
  await settled(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.getByRole("button", { name: "Run inspector" }).click();
  await expect(
    page
      .getByRole("complementary")
      .getByText(/Step \d/)
      .first(),
  ).toBeVisible();
  await scene(page, "web-inspector-dark");
  await page.getByRole("complementary").getByRole("button", { name: "Close" }).click();
  await page.setViewportSize({ width: 390, height: 780 });
  await scene(page, "web-phone-dark");
});
