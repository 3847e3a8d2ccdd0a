/** Where a file comes from. A URL is read by range requests and kept in the origin's private file system; in Node a
 * string without a scheme, or a file: URL, is a file on disk. */
export type FileSource = string | URL | Blob | ArrayBuffer | ArrayBufferView | FileSystemFileHandle;

export type Dtype = 'uint8' | 'int8' | 'int16' | 'int32' | 'int64' | 'float16' | 'float32' | 'float64' | 'bool';
export type TypedArray = Uint8Array | Int8Array | Int16Array | Uint16Array | Int32Array | BigInt64Array | Float32Array | Float64Array;

export type Status =
  | 'bad argument' | 'bad file' | 'bad graph' | 'unsupported' | 'out of memory' | 'out of GPU memory' | 'no device'
  | 'GPU error' | 'device lost' | 'I/O error' | 'cancelled' | 'wrong result' | 'internal error';

export class SconceError extends Error {
  readonly status: Status;
  /** What a user can do about it; may be empty. */
  readonly advice: string;
}

export interface Progress {
  /** Bytes of weights on the device, and in all. */
  loaded: number;
  total: number;
  kernels: number;
  allKernels: number;
}

export interface LoadOptions {
  /** .ptd files, in any order. */
  data?: FileSource[];
  /** tokenizer.json, a SentencePiece or tiktoken .model, or a llama2.c .bin. */
  tokenizer?: FileSource;
  /** tokenizer_config.json, which has the chat template. */
  tokenizerConfig?: FileSource;
  /** The method that is opened at once, and that generates; default "forward". */
  method?: string;
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
  /** A sentence for the user that is no error, such as a full disk. */
  onNotice?(text: string): void;
  onLog?(line: { level: number; text: string }): void;
  /** false: nothing of a URL is kept. */
  cache?: boolean;
  /** false: on this thread; or a worker that runs the package's worker.js. */
  worker?: boolean | Worker;
  /** In Node: what npm's webgpu gives. It implies worker: false. */
  gpu?: unknown;
  /** Where sconce.wasm is, if not beside the package's files. */
  wasm?: string | URL | ArrayBuffer | WebAssembly.Module;
  /** Part of an adapter's name; features not to use ("f16,subgroups"); caps ("default"). */
  adapter?: string;
  disable?: string;
  limits?: string;
}

export interface GenerateOptions {
  /** At most so many new tokens; default: until the end, or the context is full. */
  maxNew?: number;
  /** 0 (default): the likeliest token. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  seed?: number | bigint;
  /** The text ends before any of these. */
  stop?: string | string[];
  ignoreEnd?: boolean;
  /** Put the begin token first; default: as the tokenizer says. */
  bos?: boolean;
  signal?: AbortSignal;
  onPrompt?(progress: { done: number; all: number }): void;
}

export interface ChatOptions extends GenerateOptions {
  tools?: unknown[];
  think?: boolean;
  /** A Jinja template instead of the model's own. */
  template?: string;
}

export interface Part {
  text: string;
  /** -1: text that was held back earlier. Without a tokenizer the text is empty. */
  id: number;
}

export interface GenerationResult {
  stop: 'end' | 'text' | 'count' | 'context' | 'caller';
  promptTokens: number;
  reusedTokens: number;
  newTokens: number;
  promptSeconds: number;
  seconds: number;
  /** Of `seconds`: spent in the module and in WebGPU's calls, not waiting for the device. */
  busySeconds: number;
}

/** Text as it comes. Leaving the loop, or the signal, stops the generation. */
export interface Generation extends AsyncIterable<Part> {
  /** Once it has ended. */
  readonly result?: GenerationResult;
  /** All of it. */
  text(): Promise<string>;
}

export interface Tensor {
  dtype: Dtype;
  dims: number[];
  data: TypedArray;
}
/** dims may be left out where only one shape is possible. */
export type Input = TypedArray | number | bigint | boolean | number[] | { data: TypedArray | number[]; dims: number[] };

export interface Message {
  role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
  content: string;
}

export interface MethodInfo {
  inputs: { dtype: Dtype; dims: number[]; dynamic: boolean }[];
  outputs: { dtype: Dtype; dims: number[] }[];
  language: boolean;
}

export interface SavedConversation {
  version: 2;
  /** The fingerprint of the model, in hexadecimal digits. */
  model: string;
  ids: number[];
}

export interface Stats {
  heapBytes?: number;
  weightBytes?: number;
  stateBytes?: number;
  transientBytes?: number;
  stagingBytes?: number;
  parameterBytes?: number;
  buffers?: number;
  bindGroups?: number;
  kernels?: number;
  objectsMade?: number;
  dispatches?: number;
  generation?: GenerationResult | null;
}

export interface DeviceInfo {
  software: boolean;
  f16: boolean;
  subgroups: boolean;
  timestamps: boolean;
  subgroupMin: number;
  subgroupMax: number;
  maxBuffer: number;
  maxStorageBinding: number;
  maxStorageBuffers: number;
  maxWorkgroupBytes: number;
  maxWorkgroupInvocations: number;
}

export class Model {
  private constructor();
  readonly about: { methods: Record<string, MethodInfo | null>; device: DeviceInfo; tokenizer: object | null; size: number };
  readonly methods: Record<string, MethodInfo | null>;
  readonly device: DeviceInfo;
  /** As of the last call. */
  readonly stats: Stats;
  /** Fulfilled when the GPU goes away. */
  readonly lost: Promise<{ message: string }>;
  generate(prompt: string | Iterable<number>, options?: GenerateOptions): Generation;
  /** What it shares with the last call's beginning is not computed again. */
  chat(messages: Message[], options?: ChatOptions): Generation;
  /** Inputs in the method's order, or by number: {x0, x1}; {x} where there is one. */
  run(inputs: Input[] | { x: Input } | { [name: `x${number}`]: Input }, options?: { method?: string; signal?: AbortSignal }): Promise<Tensor[]>;
  open(method: string, options?: { signal?: AbortSignal; onProgress?(progress: Progress): void }): Promise<MethodInfo>;
  tokenize(text: string, options?: { bos?: boolean; special?: boolean }): Promise<number[]>;
  detokenize(ids: Iterable<number>): Promise<string>;
  save(): Promise<SavedConversation>;
  restore(saved: SavedConversation, options?: { signal?: AbortSignal }): Promise<void>;
  /** Forgets the conversation and puts every method's state back. */
  reset(): Promise<void>;
  dispose(): Promise<void>;
}

export type Check =
  | { ok: true; adapter: Record<string, string>; features: string[]; limits: Record<string, number> }
  | { ok: false; reason: string; advice: string };

export const Sconce: {
  load(program: FileSource, options?: LoadOptions): Promise<Model>;
  check(options?: { gpu?: unknown }): Promise<Check>;
  kept(): Promise<{ url: string; size: number; kept: number }[]>;
  forget(url?: string): Promise<void>;
};
export default Sconce;
