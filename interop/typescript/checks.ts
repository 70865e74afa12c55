// Runs checks one after another, and prints one JSON object with their results.

export type Check = () => Promise<void>;

const CHECK_TIMEOUT_MS = 20_000;

export function equal(found: unknown, wanted: unknown, what: string): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

export async function fails<E extends Error>(
  cls: abstract new (...parts: never[]) => E,
  run: () => Promise<unknown>,
): Promise<E> {
  try {
    await run();
  } catch (error) {
    if (error instanceof cls) return error;
    throw error;
  }
  throw new Error(`no ${cls.name} was thrown`);
}

async function result(check: Check): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("took too long")), CHECK_TIMEOUT_MS);
  });
  try {
    await Promise.race([check(), limit]);
    return "ok";
  } catch (error) {
    return String(error instanceof Error ? error.message : error);
  } finally {
    clearTimeout(timer);
  }
}

export async function main(peer: string, checks: Record<string, Check>): Promise<never> {
  const results: Record<string, string> = {};
  for (const [name, check] of Object.entries(checks)) results[`${peer}-${name}`] = await result(check);
  console.log(JSON.stringify({ peer, role: "client", checks: results }));
  process.exit(Object.values(results).every((each) => each === "ok") ? 0 : 1);
}
