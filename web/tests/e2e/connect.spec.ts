import { stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { findings } from "./axe";
import { ask, expect, settled, test, transcript } from "./fixtures";
import { startHart } from "./hart";

const KEY = "a-key-that-nobody-may-see-4711";

/** A door before the scripted model that only one key opens. */
async function startDoor(behind: string): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${KEY}`) {
      response.writeHead(401, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `wrong key: ${request.headers.authorization}` } }));
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const path = (request.url ?? "").replace(/^\/v1/, "");
      const body = request.method === "POST" ? { body: Buffer.concat(chunks) } : {};
      const asked = { method: request.method ?? "GET", headers: { "content-type": "application/json" }, ...body };
      fetch(`${behind}${path}`, asked).then(
        async (answer) => {
          response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
          response.end(Buffer.from(await answer.arrayBuffer()));
        },
        () => response.destroy(),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, server };
}

test("the first visit connects a model: refused, tried, kept, used, and there after a restart", async ({
  page,
  model,
}) => {
  const hart = await startHart(null);
  const door = await startDoor(model.url);
  const heard: string[] = [];
  page.on("request", (request) => heard.push(request.url()));
  page.on("response", (response) => {
    if (response.url().includes("/api/"))
      void response.text().then(
        (text) => heard.push(text),
        () => undefined,
      );
  });
  try {
    await page.goto(hart.url);
    await expect(page.getByText("you can play the recorded demo tasks")).toBeVisible();
    const form = page.getByRole("region", { name: "Connect a model" });
    await expect(form.getByLabel("Provider", { exact: true })).toHaveValue("anthropic");
    expect(await findings(page)).toEqual([]);
    await form.getByRole("radio", { name: "On this machine" }).check();
    await expect(form.getByLabel("Address")).toHaveValue("http://127.0.0.1:11434");
    await form.getByRole("radio", { name: "Elsewhere" }).check();
    await form.getByLabel("Address").fill("http://127.0.0.1:1/v1");
    await form.getByRole("button", { name: "Test" }).click();
    await expect(form.getByRole("alert")).toContainText("Nothing answers there");
    await form.getByLabel("Address").fill(door.url);
    await form.getByLabel(/API key/).fill("wrong-key-0815");
    await form.getByRole("button", { name: "Connect", exact: true }).click();
    await expect(form.getByRole("alert")).toContainText("The key was refused");
    // What was typed is still there.
    await expect(form.getByLabel("Address")).toHaveValue(door.url);
    await form.getByLabel(/API key/).fill(KEY);
    await form.getByRole("button", { name: "Test" }).click();
    await expect(form.getByRole("status")).toContainText(/scripted answers, after \d+ ms/);
    await form.getByRole("button", { name: "Connect", exact: true }).click();
    await expect(page.getByText("Connected: scripted.")).toBeVisible();
    await expect(form).toHaveCount(0);
    await ask(page, "SAY connected at last");
    await expect(transcript(page).getByText("connected at last", { exact: true })).toBeVisible();
    await settled(page);
    const file = await stat(join(hart.home, ".hart", "connections.json"));
    expect((file.mode & 0o777).toString(8)).toBe("600");

    await hart.kill();
    await hart.start();
    await page.goto(hart.url);
    await ask(page, "SAY still connected");
    await expect(transcript(page).getByText("still connected", { exact: true })).toBeVisible();
    await settled(page);
    await page.getByRole("button", { name: "Settings" }).click();
    const dialog = page.getByRole("dialog", { name: "Settings" });
    await dialog.getByRole("tab", { name: "Models" }).click();
    await expect(dialog.getByText("connected, in")).toBeVisible();
    await dialog.getByRole("button", { name: "Disconnect" }).click();
    await page.getByRole("dialog", { name: "Disconnect" }).getByRole("button", { name: "Disconnect" }).click();
    await expect(dialog.getByRole("region", { name: "Connect a model" })).toBeVisible();
    expect(heard.filter((text) => text.includes(KEY) || text.includes("wrong-key"))).toEqual([]);
  } finally {
    await hart.stop();
    door.server.closeAllConnections();
    door.server.close();
  }
});
