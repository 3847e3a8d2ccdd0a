/* Errors with a status that a program can act on. */

/* What a user can do about it. */
const ADVICE = {
  'bad file': 'Choose a .pte file that ExecuTorch exported with the Vulkan partitioner, and the tokenizer that belongs to it.',
  'out of memory': 'Close other tabs, or take a smaller model.',
  'out of GPU memory': 'Close other tabs that use the GPU, or take a smaller model or a shorter context.',
  'device lost': 'The GPU was reset or taken away. Load the model again.',
  'internal error': 'Load the model again. If it comes again, it is an error of the library.',
  'I/O error': 'Check the connection, and load again: what has arrived is kept.',
};

export class SconceError extends Error {
  constructor(status, message, options) {
    super(message, options);
    this.name = 'SconceError';
    this.status = status;
    this.advice = options?.advice ?? ADVICE[status] ?? '';
  }
}

export const badArgument = (message, options) => new SconceError('bad argument', message, options);

/* Aborts are what the platform says they are. */
export function aborted(signal) {
  return signal?.reason ?? new DOMException('The operation was aborted.', 'AbortError');
}

export function pack(error) {
  if (error instanceof SconceError)
    return { kind: 'sconce', status: error.status, message: error.message, advice: error.advice };
  return { kind: error?.name === 'AbortError' ? 'abort' : 'other', name: error?.name, message: error?.message ?? String(error) };
}

export function unpack(packed, signal) {
  if (packed.kind === 'sconce') return new SconceError(packed.status, packed.message, { advice: packed.advice });
  if (packed.kind === 'abort') return aborted(signal);
  const error = new Error(packed.message);
  if (packed.name) error.name = packed.name;
  return error;
}
