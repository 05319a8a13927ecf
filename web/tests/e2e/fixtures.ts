/** What every browser test has: one server per worker, and a place where everything that leaves would arrive. */
import { createServer, type AddressInfo } from "node:net";
import { test as base, expect, type Page } from "@playwright/test";
import { type Hart, startHart } from "./hart";
import { type ScriptedModel, startModel } from "./model";

interface Worker {
  model: ScriptedModel;
  hart: Hart;
  sink: Sink;
}

interface Fixtures {
  /** What reached `evil.example`, which is where every payload tries to send something. */
  outside: string[];
}

/** A server that only notes who comes. */
interface Sink {
  port: number;
  heard: string[];
}

const CONFIG = `
interrupt_on:
  delete: true
`;

export const test = base.extend<Fixtures, Worker>({
  model: [
    async ({}, use) => {
      const model = await startModel();
      await use(model);
      await model.close();
    },
    { scope: "worker" },
  ],
  hart: [
    async ({ model }, use) => {
      const hart = await startHart(model.url, CONFIG);
      await use(hart);
      await hart.stop();
    },
    { scope: "worker" },
  ],
  sink: [
    async ({}, use) => {
      const heard: string[] = [];
      const server = createServer((socket) => {
        heard.push("a connection");
        socket.on("data", (data) => heard.push(data.toString("latin1").slice(0, 200)));
        socket.on("error", () => socket.destroy());
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      await use({ port: (server.address() as AddressInfo).port, heard });
      server.close();
    },
    { scope: "worker" },
  ],
  launchOptions: [
    async ({ launchOptions, sink }, use) => {
      const rule = `--host-resolver-rules=MAP evil.example 127.0.0.1:${sink.port}`;
      await use({ ...launchOptions, args: [...(launchOptions.args ?? []), rule] });
    },
    { scope: "worker" },
  ],
  outside: async ({ sink }, use) => {
    sink.heard.length = 0;
    await use(sink.heard);
  },
});

export { expect };

export function field(page: Page) {
  return page.getByRole("textbox", { name: "Message", exact: true });
}

export async function ask(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press("Enter");
}

export function transcript(page: Page) {
  return page.getByRole("log");
}

/** Until the run is over. */
export async function settled(page: Page): Promise<void> {
  await expect(transcript(page)).toHaveAttribute("aria-busy", "false");
}

export async function open(page: Page, hart: Hart): Promise<void> {
  await page.goto(hart.url);
  await expect(field(page)).toBeVisible();
}
