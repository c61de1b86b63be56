/** Why the kernel did not start; the page words it. */
export type KernelTrouble = "no_wasm" | "csp" | "timeout" | "network" | "failed";

export class KernelError extends Error {
  constructor(
    readonly trouble: KernelTrouble,
    detail: string,
  ) {
    super(detail);
    this.name = "KernelError";
  }
}
