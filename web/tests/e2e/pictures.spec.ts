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
  const check = "Add up the three months again and compare with the table.";
  const steps = [
    [
      "write_todos",
      todos(["completed", "in_progress"]),
      "I read the table, compute with a script, have the sums checked and write it up.",
    ],
    [
      "write_file",
      { description: "Write the script", path: `${O}/rain.py`, content: "import csv\n\nrows = 3\nprint(rows)\n" },
      "",
    ],
    ["bash", { description: "Run it", command: "seq 3 | tr '\\n' ' '; echo rows" }, ""],
    ["task", { description: "Check the sums", prompt: check, subagent_type: "general-purpose" }, ""],
    ["write_todos", todos(["completed", "completed", "completed"]), ""],
    ["write_file", { description: "Write the report", path: `${O}/report.md`, content: REPORT }, ""],
    ["present_files", { filepaths: [`${O}/report.md`] }, ""],
    "**November** was the wettest month, with 118 mm of 269 mm in all. The report has the table, the mean and the script.",
  ];
  model.meaning.set("Which autumn month was the wettest? Give me a short report.", `STEPS ${JSON.stringify(steps)}`);
  model.meaning.set(check, "SAY The sums agree: 64 + 87 + 118 = 269 mm.");
  model.meaning.set("Show me the result here, too.", `SAY64 ${Buffer.from(REPORT).toString("base64")}`);
  const remove = ["delete", { description: "Remove the old draft", path: `${O}/rain.py` }, "One file is left over."];
  model.meaning.set("Tidy up the outputs.", `STEPS ${JSON.stringify([remove, "The outputs hold the report alone."])}`);
  const next = JSON.stringify(["How does that compare with last year?", "Draw it as a chart."]);
  model.replies = [{ to: "Suggest 3 short questions", say: next }];
  await page.route("**/api/threads/*/artifacts/**", (route) =>
    route.fulfill({ contentType: "application/octet-stream", body: REPORT }),
  );
  await open(page, hart);
  await page.getByRole("button", { name: /^Mode:/ }).click();
  await page.getByRole("menuitemradio", { name: /^Ultra/ }).click();
  await page.setViewportSize({ width: 1280, height: 1040 });
  await ask(page, "Which autumn month was the wettest? Give me a short report.");
  await expect(transcript(page).getByText("was the wettest month").first()).toBeVisible();
  await settled(page);
  await page.getByRole("button", { name: /Write the script/ }).click();
  await transcript(page).evaluate((element) => (element.scrollTop = 0));
  await scene(page, "web-conversation");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("button", { name: "Jump to the newest message" }).click();
  await page.getByRole("button", { name: "report.md", exact: true }).last().click();
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
  await ask(page, "Show me the result here, too.");
  await expect(page.locator("math").first()).toBeVisible();
  await settled(page);
  await page.setViewportSize({ width: 390, height: 780 });
  await scene(page, "web-phone-dark");
  model.replies = [];
});
