/** A real `hart serve` for the tests: its own home, its own port, the scripted model. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { type AddressInfo, createServer } from "node:net";
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

/** The server of one's own from the examples: it has subagents whose every word can be watched. */
export async function startExample(modelUrl: string): Promise<Hart> {
  const binary = process.env.EXAMPLE_BIN ?? "conformance_server";
  const home = await mkdtemp(join(tmpdir(), "hart-web-"));
  const port = String(await freePort());
  const env = { PATH: process.env.PATH ?? "", HART_HOME: home };
  const child = spawn(binary, ["--port", port, "--model-base-url", modelUrl], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the example ended with ${code}`)));
    createInterface({ input: child.stdout }).on("line", resolve);
  });
  const stop = async () => {
    await end(child, "SIGKILL");
    await rm(home, { recursive: true, force: true });
  };
  return { url, home, stop, kill: () => end(child, "SIGKILL"), start: async () => undefined };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function end(child: ChildProcess | null, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill(signal);
  await ended;
}
