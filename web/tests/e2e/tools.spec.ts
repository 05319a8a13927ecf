import { ask, expect, open, settled, test, transcript } from "./fixtures";

const W = "/mnt/user-data/workspace";
const O = "/mnt/user-data/outputs";

test("commands show what they print; files show as differences", async ({ page, hart }) => {
  await open(page, hart);
  const steps = [
    ["bash", { description: "Look around", command: "echo out; echo err >&2; exit 3" }],
    ["write_file", { description: "Write it", path: `${W}/a.txt`, content: "one\ntwo\n" }],
    ["str_replace", { description: "Mend it", path: `${W}/a.txt`, old_str: "two", new_str: "three" }],
  ];
  await ask(page, `STEPS ${JSON.stringify(steps)}`);
  await expect(transcript(page).getByText("All done.")).toBeVisible();
  await settled(page);
  await transcript(page)
    .getByRole("button", { name: /Look around/ })
    .click();
  const command = page.getByRole("region", { name: /^Run echo out/ });
  await expect(command.getByText("exit code 3")).toBeVisible();
  await expect(command).toHaveClass(/tool-failed/);
  await expect(command.locator(".tool-text-bad")).toContainText("err");
  await transcript(page)
    .getByRole("button", { name: /Mend it/ })
    .click();
  const edit = page.getByRole("region", { name: /^Edit/ });
  await expect(edit.locator(".diff-removed")).toContainText("two");
  await expect(edit.locator(".diff-added")).toContainText("three");
});

test("the output of a command comes while it runs", async ({ page, hart }) => {
  await open(page, hart);
  await ask(page, `CALL bash ${JSON.stringify({ command: "echo early; sleep 4; echo late" })}`);
  const card = page.getByRole("region", { name: /^Run/ });
  await expect(card.getByText("early", { exact: true })).toBeVisible();
  await expect(transcript(page)).toHaveAttribute("aria-busy", "true");
  await expect(transcript(page).getByText(/Tool said: early/)).toBeVisible();
});

test("what was found among files is a list that opens them", async ({ page, hart }) => {
  await open(page, hart);
  const steps = [
    ["write_file", { path: `${W}/poem.txt`, content: "rain\nsun\nrain again\n" }],
    ["grep", { description: "Look for rain", pattern: "rain", path: W }],
  ];
  await ask(page, `STEPS ${JSON.stringify(steps)}`);
  await expect(transcript(page).getByText("All done.")).toBeVisible();
  await settled(page);
  await transcript(page)
    .getByRole("button", { name: /Look for rain/ })
    .click();
  const found = page.getByRole("region", { name: /^Look/ }).or(page.locator(".tool", { hasText: "Look for rain" }));
  await expect(found.getByRole("listitem")).toHaveText([/workspace\/poem\.txt.*1.*rain/, /3.*rain again/]);
  await found.getByRole("button", { name: "workspace/poem.txt" }).first().click();
  await expect(page.getByRole("complementary", { name: "Files" })).toContainText("rain again");
});

test("the plan is pinned and ticks", async ({ page, hart }) => {
  await open(page, hart);
  const todos = (a: string, b: string) => ({
    todos: [
      { content: "Find the data", status: a },
      { content: "Draw the chart", status: b },
    ],
  });
  const steps = [
    ["write_todos", todos("in_progress", "pending")],
    ["write_todos", todos("completed", "in_progress")],
  ];
  await ask(page, `STEPS ${JSON.stringify(steps)}`);
  await settled(page);
  const plan = page.getByRole("region", { name: "Plan", exact: true });
  await expect(plan).toContainText("1 of 2 done");
  await expect(plan).toContainText("Draw the chart");
  await plan.getByRole("button").click();
  await expect(plan.getByText("Find the data")).toBeVisible();
  // Done is done: it stays where it was made, and the room above the field is free again.
  await ask(page, `CALL write_todos ${JSON.stringify(todos("completed", "completed"))}`);
  await settled(page);
  await expect(plan).toHaveCount(0);
  await page
    .getByRole("button", { name: /^Update the plan/ })
    .last()
    .click();
  await expect(transcript(page).getByText("Draw the chart", { exact: true })).toBeVisible();
});

test("files that are handed over open in the panel", async ({ page, hart }) => {
  await open(page, hart);
  const steps = [
    ["write_file", { path: `${O}/report.md`, content: "# Report\n" }],
    ["present_files", { filepaths: [`${O}/report.md`] }],
  ];
  await ask(page, `STEPS ${JSON.stringify(steps)}`);
  await expect(transcript(page).getByText("All done.")).toBeVisible();
  await settled(page);
  await page.getByRole("button", { name: "report.md", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Files" });
  await expect(panel.getByRole("heading", { name: "report.md" })).toBeVisible();
  await panel.getByRole("button", { name: "Back to the list" }).click();
  await expect(panel.getByRole("button", { name: /report.md.*Handed over/ })).toBeVisible();
});

test("a question becomes buttons, and the answer stays with it", async ({ page, hart }) => {
  await open(page, hart);
  const question = { question: "Which colour?", clarification_type: "approach_choice", options: ["Red", "Blue"] };
  await ask(page, `CALL ask_clarification ${JSON.stringify(question)}`);
  const card = page.getByRole("region", { name: "A question for you" });
  await expect(card.getByText("Which colour?")).toBeVisible();
  await settled(page);
  await card.getByRole("button", { name: "Blue" }).click();
  await settled(page);
  await expect(card).toContainText("You answered: Blue");
  await page.reload();
  await expect(card).toContainText("You answered: Blue");
  await expect(card.getByRole("button", { name: "Red" })).toHaveCount(0);
});

test("a question for several values becomes a form that insists on what it needs", async ({ page, hart }) => {
  await open(page, hart);
  const fields = [
    { name: "city", label: "City", type: "text", required: true },
    { name: "size", label: "Size", type: "select", options: ["Small", "Large"] },
    { name: "sure", label: "Really", type: "checkbox" },
  ];
  await ask(page, `CALL ask_clarification ${JSON.stringify({ question: "Where and how?", fields })}`);
  const card = page.getByRole("region", { name: "A question for you" });
  await settled(page);
  await card.getByRole("button", { name: "Answer" }).click();
  await expect(card.getByRole("alert")).toBeVisible();
  await card.getByRole("textbox", { name: "City" }).fill("Lyon");
  await card.getByRole("combobox", { name: "Size" }).selectOption("Large");
  await card.getByRole("checkbox", { name: "Really" }).check();
  await card.getByRole("button", { name: "Answer" }).click();
  await expect(card).toContainText("City: Lyon");
  await expect(card).toContainText("Really: yes");
});

test("a tool that needs consent waits for it: approve, edit, reject, answer instead", async ({ page, hart }) => {
  await open(page, hart);
  const remove = (name: string) => ["delete", { description: "Tidy up", path: `${W}/${name}` }];
  const write = (name: string) => ["write_file", { path: `${W}/${name}`, content: "x" }];
  const approval = page.getByRole("region", { name: "May it do this?" });

  await ask(page, `STEPS ${JSON.stringify([write("a"), remove("a")])}`);
  await expect(approval.getByText(`${W}/a`).first()).toBeVisible();
  await page.reload();
  await expect(approval.getByText(`${W}/a`).first()).toBeVisible();
  // What still waits is no answer that one could rate.
  await expect(page.getByRole("button", { name: "Good answer" })).toHaveCount(0);
  await approval.getByRole("button", { name: "Approve" }).click();
  await expect(transcript(page).getByText("All done.")).toHaveCount(1);
  await settled(page);
  await expect(page.getByRole("button", { name: "Good answer" })).toHaveCount(1);

  await ask(page, `STEPS ${JSON.stringify([write("b"), remove("b")])}`);
  await approval.getByRole("button", { name: "Reject" }).click();
  await approval.getByRole("textbox").fill("keep it");
  await approval.getByRole("button", { name: "Answer" }).click();
  await expect(transcript(page).getByText("All done.")).toHaveCount(2);
  await settled(page);
  await expect(transcript(page).locator(".tool-failed")).toHaveCount(1);

  await ask(page, `STEPS ${JSON.stringify([write("c"), remove("nothing")])}`);
  await approval.getByRole("button", { name: "Edit", exact: true }).click();
  await approval.getByRole("textbox").fill("{ not json");
  await approval.getByRole("button", { name: "Approve" }).click();
  await expect(approval.getByRole("alert")).toContainText("not valid JSON");
  await approval.getByRole("textbox").fill(JSON.stringify({ path: `${W}/c` }));
  await approval.getByRole("button", { name: "Approve" }).click();
  await expect(transcript(page).getByText("All done.")).toHaveCount(3);
});
