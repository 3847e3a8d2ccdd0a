/* What this page or this process is at: a runner that waits sees that it goes on, and where it stands still. */
export function at(step) {
  globalThis.step = step;
  globalThis.steps = (globalThis.steps ?? 0) + 1;
  return step;
}
