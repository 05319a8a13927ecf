import { expect, field, test } from "./fixtures";

test("a first visit loads no more than 350 KB", async ({ page, hart }) => {
  const files: Promise<[string, number]>[] = [];
  page.on("requestfinished", (request) => {
    const path = new URL(request.url()).pathname;
    if (path.startsWith("/api/")) return;
    files.push(request.sizes().then(({ responseBodySize }) => [path, responseBodySize]));
  });
  await page.goto(hart.url);
  await expect(field(page)).toBeVisible();
  await page.waitForLoadState("networkidle");
  const sizes = await Promise.all(files);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  expect(sizes.length).toBeGreaterThan(2);
  expect(total, JSON.stringify(sizes)).toBeLessThanOrEqual(350 * 1024);
});
