/** A real `hart serve` for the tests: its own home, its own port, the scripted model. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Hart {
  url: string;
  home: string;
  /** As a crash would. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const BINARY = process.env.HART_BIN ?? "hart";

export async function startHart(modelUrl: string | null, config = ""): Promise<Hart> {
  const home = await mkdtemp(join(tmpdir(), "hart-web-"));
  const model = modelUrl
    ? `models:\n  - name: scripted\n    use: openai-compatible\n    model: scripted\n    base_url: ${modelUrl}\n    api_key: none\n`
    : "";
  await writeFile(join(home, "config.yaml"), `${model}${config}`);
  let child: ChildProcess | null = null;
  const hart: Hart = {
    url: "",
    home,
    async start() {
      // The same port after a restart: the page still knows the old one.
      const port = hart.url ? new URL(hart.url).port : "0";
      const args = ["serve", "--port", port, "--config", join(home, "config.yaml")];
      const env = { PATH: process.env.PATH ?? "", HOME: home, HART_HOME: join(home, ".hart"), RUST_LOG: "warn" };
      const started = spawn(BINARY, args, { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
      child = started;
      let said = "";
      started.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
      hart.url = await new Promise<string>((resolve, reject) => {
        started.once("exit", (code) => reject(new Error(`hart ended with ${code}: ${said}`)));
        createInterface({ input: started.stdout }).on("line", (line) => {
          const ready = /https?:\/\/\S+/.exec(line);
          if (ready) resolve(ready[0]);
        });
      });
    },
    async kill() {
      await end(child, "SIGKILL");
    },
    async stop() {
      await end(child, "SIGKILL");
      await rm(home, { recursive: true, force: true });
    },
  };
  await hart.start();
  return hart;
}

async function end(child: ChildProcess | null, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill(signal);
  await ended;
}
