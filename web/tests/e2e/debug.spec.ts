import { ask, open, test } from "./fixtures";
test("debug", async ({ page, hart }) => {
  page.on("console", (m) => console.log("console:", m.text().slice(0, 400)));
  page.on("pageerror", (e) => console.log("pageerror:", String(e).slice(0, 600)));
  page.on("response", async (r) => console.log(r.status(), r.request().method(), r.url().slice(0, 120), r.status() >= 400 ? (await r.text().catch(() => "")).slice(0, 200) : ""));
  await open(page, hart);
  await ask(page, "SAY one");
  await page.waitForTimeout(4000);
  await page.screenshot({ path: "/tmp/shot.png" });
});
