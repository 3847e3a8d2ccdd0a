/* webgpu.h over navigator.gpu: the functions that gpu/api.h lists, for a module compiled to wasm32.
 *
 * A handle is an index into one table of objects. Structs given by value arrive as pointers, 64-bit
 * numbers as BigInts, a future leaves as 0n. Answers of promises wait in their instance's list and
 * call back when the module polls (InstanceProcessEvents), never in between; an instance that was
 * released calls nobody. Views are made anew for every access that may follow a growth of memory. */
import { SconceError } from './error.js';
import { layout as L, numbers as N } from './layout.js';

const FEATURES = { 'timestamp-query': N.WGPUFeatureName.TimestampQuery, 'shader-f16': N.WGPUFeatureName.ShaderF16, subgroups: N.WGPUFeatureName.Subgroups };
const LIMITS = Object.keys(L.WGPULimits).filter((name) => name !== 'sizeof');
const WIDE = new Set(['maxUniformBufferBindingSize', 'maxStorageBufferBindingSize', 'maxBufferSize']);
/* Of what compute needs a device is asked for all that the adapter has. */
const ASKED = LIMITS.filter((name) => /Compute|Buffer(Size|sPer|Binding|Offset)|BindingSize/.test(name) &&
  !/Vertex|Dynamic/.test(name));
const BINDINGS = {
  [N.WGPUBufferBindingType.Uniform]: 'uniform', [N.WGPUBufferBindingType.Storage]: 'storage',
  [N.WGPUBufferBindingType.ReadOnlyStorage]: 'read-only-storage',
};
const FILTERS = {
  [N.WGPUErrorFilter.Validation]: 'validation', [N.WGPUErrorFilter.OutOfMemory]: 'out-of-memory', [N.WGPUErrorFilter.Internal]: 'internal',
};
const POWER = { [N.WGPUPowerPreference.LowPower]: 'low-power', [N.WGPUPowerPreference.HighPerformance]: 'high-performance' };
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render|software/i;
const STRLEN = 0xffffffff;
const NUDGE_MS = 4;

export class Glue {
  /* gpu: navigator.gpu, or what a library gives in its place; undefined where there is none. */
  constructor(gpu) {
    this.gpu = gpu;
    this.objects = [null];
    this.free = [];
    this.decoder = new TextDecoder();
    this.encoder = new TextEncoder();
    this.wake = null;
    this.instances = new Set();
    this.devices = new Set(); /* with a queue that is used */
    this.nudging = false;
    this.nudges = /firefox/i.test(globalThis.navigator?.userAgent ?? '');
    this.stats = { dispatches: 0, submits: 0, promises: 0, writes: 0, written: 0 };
    this.onLost = null;
  }

  attach(exports) {
    this.exports = exports;
    this.memory = exports.memory;
    this.table = exports.__indirect_function_table;
  }
  /* Nothing of the module stays; answers that are still to come find no instance. */
  detach() {
    for (const device of this.devices) device.destroy();
    for (const instance of this.instances) instance.released = true;
    this.exports = this.memory = this.table = this.heap = this.all = this.half = this.onLost = null;
  }

  imports() {
    const functions = {};
    for (const name of Object.getOwnPropertyNames(Glue.prototype))
      if (name.startsWith('wgpu')) functions[name] = this[name].bind(this);
    return functions;
  }

  /* ---- memory ---- */

  get view() {
    if (this.heap?.buffer !== this.memory.buffer) this.heap = new DataView(this.memory.buffer);
    return this.heap;
  }
  get bytes() {
    if (this.all?.buffer !== this.memory.buffer) this.all = new Uint8Array(this.memory.buffer);
    return this.all;
  }
  get words() {
    if (this.half?.buffer !== this.memory.buffer) this.half = new Uint32Array(this.memory.buffer);
    return this.half;
  }
  u64(at) {
    return this.view.getUint32(at, true) + this.view.getUint32(at + 4, true) * 2 ** 32;
  }
  get32(at) {
    return this.view.getUint32(at, true);
  }
  set32(at, value) {
    this.view.setUint32(at, value, true);
  }
  zero(at) {
    let end = at;
    while (this.bytes[end]) end++;
    return this.decoder.decode(this.bytes.slice(at, end));
  }
  string(at) {
    const data = this.get32(at);
    const length = this.get32(at + 4);
    if (!data) return '';
    return length === STRLEN ? this.zero(data) : this.decoder.decode(this.bytes.slice(data, data + length));
  }
  allocate(size) {
    const at = this.exports.malloc(size || 1) >>> 0;
    if (!at) throw new SconceError('out of memory', `no memory for ${size} bytes`);
    return at;
  }
  /* A string view at `at` that owns its text. */
  put(at, text) {
    const bytes = this.encoder.encode(text ?? '');
    const data = this.allocate(bytes.length);
    this.bytes.set(bytes, data);
    this.set32(at, data);
    this.set32(at + 4, bytes.length);
  }

  /* ---- handles ---- */

  add(object) {
    const handle = this.free.pop() ?? this.objects.length;
    this.objects[handle] = object;
    return handle;
  }
  release(handle) {
    if (!handle || this.objects[handle] === undefined) return;
    this.objects[handle] = undefined;
    this.free.push(handle);
  }
  get alive() {
    return this.objects.length - 1 - this.free.length;
  }

  /* ---- answers ---- */

  /* `answer` is called from ProcessEvents with what the promise gave, or with null and why not. */
  later(instance, promise, answer) {
    this.stats.promises++;
    const arrive = (value, error) => {
      this.arrive(instance, () => answer(value, error));
    };
    promise.then((value) => arrive(value, null), (error) => arrive(null, error));
    return 0n;
  }
  arrive(instance, event) {
    if (!instance.released) instance.events.push(event);
    this.wake?.();
    this.wake = null;
  }
  /* Calls back into the module; a message lives as long as the call. */
  call(info, before, message) {
    const text = this.allocate(L.WGPUStringView.sizeof);
    this.put(text, message);
    this.table.get(info.callback)(...before, text, info.userdata1, info.userdata2);
    this.exports.free(this.get32(text));
    this.exports.free(text);
  }
  callback(at) {
    const S = L.WGPUBufferMapCallbackInfo;
    return {
      callback: this.get32(at + S.callback),
      userdata1: this.get32(at + S.userdata1),
      userdata2: this.get32(at + S.userdata2),
    };
  }
  get waiting() {
    for (const object of this.instances) if (object.events.length) return true;
    return false;
  }

  /* Until something has answered, or for `most` milliseconds. */
  async event(most = 50) {
    if (this.waiting) return;
    let timer;
    await new Promise((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, most);
      if (this.nudges) this.nudge();
    });
    clearTimeout(timer);
    this.wake = null;
  }
  /* Firefox looks for finished work every 100 ms, unless something is submitted. As long as somebody waits, and one at
   * a time: the browser's process has answered a nudge before the next is sent, or they would stand in front of the
   * next real submit. */
  async nudge() {
    if (this.nudging) return;
    this.nudging = true;
    while (this.wake) {
      const answers = [...this.devices].map(async (device) => {
        device.pushErrorScope('validation');
        device.queue.submit([]);
        await device.popErrorScope();
      });
      await Promise.allSettled([...answers, new Promise((resolve) => setTimeout(resolve, NUDGE_MS))]);
    }
    this.nudging = false;
  }
  /* Lets the page or the worker do something else. */
  breathe() {
    return new Promise((resolve) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        channel.port1.close();
        resolve();
      };
      channel.port2.postMessage(0);
    });
  }

  /* ---- instance and adapter ---- */

  wgpuCreateInstance() {
    const instance = { events: [], released: false };
    this.instances.add(instance);
    return this.add(instance);
  }
  wgpuInstanceProcessEvents(handle) {
    const { events } = this.objects[handle];
    for (let n = events.length; n > 0; n--) events.shift()();
  }
  wgpuInstanceRelease(handle) {
    const instance = this.objects[handle];
    instance.released = true;
    instance.events.length = 0;
    this.instances.delete(instance);
    this.release(handle);
  }

  wgpuInstanceRequestAdapter(handle, at, info) {
    const S = L.WGPURequestAdapterOptions;
    const options = {};
    const power = POWER[this.get32(at + S.powerPreference)];
    if (power) options.powerPreference = power;
    if (this.get32(at + S.forceFallbackAdapter)) options.forceFallbackAdapter = true;
    const instance = this.objects[handle];
    const to = this.callback(info);
    const { Success, Unavailable } = N.WGPURequestAdapterStatus;
    const asked = this.gpu ? this.gpu.requestAdapter(options) : Promise.resolve(null);
    return this.later(instance, asked, (adapter, error) => {
      const object = adapter && { adapter, instance };
      this.call(to, [object ? Success : Unavailable, object ? this.add(object) : 0], error?.message);
    });
  }
  wgpuAdapterGetFeatures(handle, at) {
    const S = L.WGPUSupportedFeatures;
    const { features } = this.objects[handle].adapter;
    const known = Object.keys(FEATURES).filter((name) => features?.has(name));
    const list = this.allocate(4 * known.length);
    known.forEach((name, i) => this.set32(list + 4 * i, FEATURES[name]));
    this.set32(at + S.featureCount, known.length);
    this.set32(at + S.features, list);
  }
  wgpuSupportedFeaturesFreeMembers(at) {
    this.exports.free(this.get32(at + L.WGPUSupportedFeatures.features));
  }
  wgpuAdapterGetInfo(handle, at) {
    const S = L.WGPUAdapterInfo;
    const { adapter } = this.objects[handle];
    const info = adapter.info ?? {};
    const text = ['vendor', 'architecture', 'device', 'description'].map((name) => info[name] ?? '');
    const [vendor, architecture, device, description] = text;
    this.put(at + S.vendor, vendor);
    this.put(at + S.architecture, architecture);
    this.put(at + S.device, device || description || [vendor, architecture].filter(Boolean).join(' ') || 'a GPU');
    this.put(at + S.description, description);
    const software = info.isFallbackAdapter || adapter.isFallbackAdapter || SOFTWARE.test(text.join(' '));
    this.set32(at + S.backendType, N.WGPUBackendType.WebGPU);
    this.set32(at + S.adapterType, software ? N.WGPUAdapterType.CPU : N.WGPUAdapterType.Unknown);
    let sum = 0; /* tells adapters apart */
    for (const c of text.join('|') + !!software) sum = (Math.imul(sum, 31) + c.charCodeAt(0)) >>> 0;
    this.set32(at + S.deviceID, sum);
    this.set32(at + S.subgroupMinSize, info.subgroupMinSize ?? 0);
    this.set32(at + S.subgroupMaxSize, info.subgroupMaxSize ?? 0);
    return N.WGPUStatus.Success;
  }
  wgpuAdapterInfoFreeMembers(at) {
    const S = L.WGPUAdapterInfo;
    for (const name of ['vendor', 'architecture', 'device', 'description']) this.exports.free(this.get32(at + S[name]));
  }
  wgpuAdapterGetLimits(handle, at) {
    const { limits } = this.objects[handle].adapter;
    for (const name of LIMITS) {
      const value = limits[name] ?? 0;
      this.set32(at + L.WGPULimits[name], value);
      if (WIDE.has(name)) this.set32(at + L.WGPULimits[name] + 4, Math.floor(value / 2 ** 32));
    }
    return N.WGPUStatus.Success;
  }
  wgpuAdapterRelease(handle) {
    this.release(handle);
  }

  /* ---- device ---- */

  wgpuAdapterRequestDevice(handle, at, info) {
    const S = L.WGPUDeviceDescriptor;
    const { adapter, instance } = this.objects[handle];
    const to = this.callback(info);
    const { Success, Error: Failed } = N.WGPURequestDeviceStatus;
    const wanted = [];
    const list = this.get32(at + S.requiredFeatures);
    for (let i = 0; i < this.get32(at + S.requiredFeatureCount); i++) wanted.push(this.get32(list + 4 * i));
    const limits = this.get32(at + S.requiredLimits);
    const requiredLimits = {};
    for (const name of ASKED)
      if (adapter.limits[name] !== undefined)
        requiredLimits[name] = (WIDE.has(name) ? this.u64(limits + L.WGPULimits[name]) : this.get32(limits + L.WGPULimits[name]));
    const asked = adapter.requestDevice({
      label: this.string(at + S.label),
      requiredFeatures: Object.keys(FEATURES).filter((name) => wanted.includes(FEATURES[name])),
      requiredLimits,
    });
    const lost = this.callback(at + S.deviceLostCallbackInfo);
    const U = L.WGPUUncapturedErrorCallbackInfo;
    const from = at + S.uncapturedErrorCallbackInfo;
    const uncaptured = {
      callback: this.get32(from + U.callback),
      userdata1: this.get32(from + U.userdata1),
      userdata2: this.get32(from + U.userdata2),
    };
    return this.later(instance, asked, (device, error) => {
      if (device) this.watch(instance, device, lost, uncaptured);
      this.call(to, [device ? Success : Failed, device ? this.add({ device, instance }) : 0], error?.message);
    });
  }
  watch(instance, device, lost, uncaptured) {
    device.lost?.then((info) => {
      this.devices.delete(device);
      const { Unknown, Destroyed } = N.WGPUDeviceLostReason;
      const reason = info.reason === 'destroyed' ? Destroyed : Unknown;
      if (!instance.released && reason !== Destroyed) this.onLost?.(info.message);
      this.arrive(instance, () => this.call(lost, [0, reason], info.message));
    });
    device.addEventListener?.('uncapturederror', (event) => {
      event.preventDefault?.();
      this.arrive(instance, () => this.call(uncaptured, [0, kindOf(event.error)], event.error.message));
    });
  }
  wgpuDeviceGetQueue(handle) {
    const { device, instance } = this.objects[handle];
    this.devices.add(device);
    return this.add({ queue: device.queue, instance });
  }
  wgpuDeviceDestroy(handle) {
    const { device } = this.objects[handle];
    this.devices.delete(device);
    device.destroy();
  }
  wgpuDeviceRelease(handle) {
    this.release(handle);
  }
  wgpuDevicePushErrorScope(handle, filter) {
    this.objects[handle].device.pushErrorScope(FILTERS[filter]);
  }
  wgpuDevicePopErrorScope(handle, info) {
    const { device, instance } = this.objects[handle];
    const to = this.callback(info);
    const { Success, Error: Failed } = N.WGPUPopErrorScopeStatus;
    return this.later(instance, device.popErrorScope(), (found, failed) =>
      this.call(to, [failed ? Failed : Success, kindOf(found)], (failed ?? found)?.message));
  }

  /* ---- what a device makes ---- */

  wgpuDeviceCreateBuffer(handle, at) {
    const S = L.WGPUBufferDescriptor;
    const { device, instance } = this.objects[handle];
    const descriptor = { label: this.string(at + S.label), usage: this.get32(at + S.usage), size: this.u64(at + S.size) };
    try {
      return this.add({ buffer: device.createBuffer(descriptor), instance, shadow: 0 });
    } catch {
      return 0; /* a size beyond everything throws instead of telling a scope */
    }
  }
  wgpuDeviceCreateBindGroupLayout(handle, at) {
    const S = L.WGPUBindGroupLayoutDescriptor;
    const E = L.WGPUBindGroupLayoutEntry;
    const B = L.WGPUBufferBindingLayout;
    const entries = this.list(at + S.entryCount, at + S.entries, E.sizeof, (e) => ({
      binding: this.get32(e + E.binding),
      visibility: this.get32(e + E.visibility),
      buffer: {
        type: BINDINGS[this.get32(e + E.buffer + B.type)],
        hasDynamicOffset: !!this.get32(e + E.buffer + B.hasDynamicOffset),
        minBindingSize: this.u64(e + E.buffer + B.minBindingSize),
      },
    }));
    const label = this.string(at + S.label);
    return this.add(this.objects[handle].device.createBindGroupLayout({ label, entries }));
  }
  wgpuDeviceCreateBindGroup(handle, at) {
    const S = L.WGPUBindGroupDescriptor;
    const E = L.WGPUBindGroupEntry;
    const entries = this.list(at + S.entryCount, at + S.entries, E.sizeof, (e) => {
      const resource = { buffer: this.objects[this.get32(e + E.buffer)].buffer, offset: this.u64(e + E.offset) };
      const size = this.u64(e + E.size);
      if (size < 2 ** 53) resource.size = size; /* else the rest of it */
      return { binding: this.get32(e + E.binding), resource };
    });
    const layout = this.objects[this.get32(at + S.layout)];
    return this.add(this.objects[handle].device.createBindGroup({ label: this.string(at + S.label), layout, entries }));
  }
  wgpuDeviceCreatePipelineLayout(handle, at) {
    const S = L.WGPUPipelineLayoutDescriptor;
    const bindGroupLayouts = this.list(at + S.bindGroupLayoutCount, at + S.bindGroupLayouts, 4,
      (e) => this.objects[this.get32(e)]);
    return this.add(this.objects[handle].device.createPipelineLayout({ label: this.string(at + S.label), bindGroupLayouts }));
  }
  wgpuDeviceCreateShaderModule(handle, at) {
    const S = L.WGPUShaderModuleDescriptor;
    const code = this.string(this.get32(at + S.nextInChain) + L.WGPUShaderSourceWGSL.code);
    return this.add(this.objects[handle].device.createShaderModule({ label: this.string(at + S.label), code }));
  }
  pipeline(at) {
    const S = L.WGPUComputePipelineDescriptor;
    const C = L.WGPUComputeState;
    return {
      label: this.string(at + S.label),
      layout: this.objects[this.get32(at + S.layout)],
      compute: {
        module: this.objects[this.get32(at + S.compute + C.module)],
        entryPoint: this.string(at + S.compute + C.entryPoint),
      },
    };
  }
  wgpuDeviceCreateComputePipeline(handle, at) {
    return this.add(this.objects[handle].device.createComputePipeline(this.pipeline(at)));
  }
  wgpuDeviceCreateComputePipelineAsync(handle, at, info) {
    const { device, instance } = this.objects[handle];
    const to = this.callback(info);
    const { Success, InternalError, ValidationError } = N.WGPUCreatePipelineAsyncStatus;
    return this.later(instance, device.createComputePipelineAsync(this.pipeline(at)), (pipeline, error) => {
      const status = pipeline ? Success : error.reason === 'internal' ? InternalError : ValidationError;
      this.call(to, [status, pipeline ? this.add(pipeline) : 0], error?.message);
    });
  }
  wgpuDeviceCreateQuerySet(handle, at) {
    const S = L.WGPUQuerySetDescriptor;
    return this.add(this.objects[handle].device.createQuerySet({ type: 'timestamp', count: this.get32(at + S.count) }));
  }
  wgpuDeviceCreateCommandEncoder(handle) {
    return this.add(this.objects[handle].device.createCommandEncoder());
  }
  list(count, first, stride, each) {
    const out = [];
    const at = this.get32(first);
    for (let i = 0, n = this.get32(count); i < n; i++) out.push(each(at + i * stride));
    return out;
  }

  /* ---- buffers ---- */

  wgpuBufferMapAsync(handle, mode, offset, size, info) {
    const { buffer, instance } = this.objects[handle];
    const to = this.callback(info);
    const { Success, Aborted, Error: Failed } = N.WGPUMapAsyncStatus;
    return this.later(instance, buffer.mapAsync(Number(mode), offset >>> 0, size >>> 0), (_, error) =>
      this.call(to, [!error ? Success : error.name === 'AbortError' ? Aborted : Failed], error?.message));
  }
  /* The module cannot see the range itself: it gets a copy. */
  wgpuBufferGetConstMappedRange(handle, offset, size) {
    const object = this.objects[handle];
    try {
      const range = new Uint8Array(object.buffer.getMappedRange(offset >>> 0, size >>> 0));
      this.unshadow(object);
      object.shadow = this.allocate(range.length);
      this.bytes.set(range, object.shadow);
      return object.shadow;
    } catch {
      return 0;
    }
  }
  unshadow(object) {
    if (object?.shadow) this.exports.free(object.shadow);
    if (object) object.shadow = 0;
  }
  wgpuBufferUnmap(handle) {
    this.unshadow(this.objects[handle]);
    this.objects[handle].buffer.unmap();
  }
  wgpuBufferDestroy(handle) {
    this.unshadow(this.objects[handle]);
    this.objects[handle].buffer.destroy();
  }
  wgpuBufferRelease(handle) {
    this.unshadow(this.objects[handle]);
    this.release(handle);
  }

  /* ---- queue and commands ---- */

  wgpuQueueWriteBuffer(queue, buffer, offset, data, size) {
    this.stats.writes++;
    this.stats.written += size >>> 0;
    this.objects[queue].queue.writeBuffer(this.objects[buffer].buffer, Number(offset), this.memory.buffer, data >>> 0, size >>> 0);
  }
  wgpuQueueSubmit(handle, count, at) {
    this.stats.submits++;
    const commands = [];
    for (let i = 0; i < count; i++) commands.push(this.objects[this.get32(at + 4 * i)]);
    this.objects[handle].queue.submit(commands);
  }
  wgpuQueueOnSubmittedWorkDone(handle, info) {
    const { queue, instance } = this.objects[handle];
    const to = this.callback(info);
    const { Success, Error: Failed } = N.WGPUQueueWorkDoneStatus;
    return this.later(instance, queue.onSubmittedWorkDone(), (_, error) => this.call(to, [error ? Failed : Success], error?.message));
  }
  wgpuCommandEncoderBeginComputePass(handle, at) {
    const T = L.WGPUPassTimestampWrites;
    const times = at && this.get32(at + L.WGPUComputePassDescriptor.timestampWrites);
    if (!times) return this.add(this.objects[handle].beginComputePass());
    const timestampWrites = { querySet: this.objects[this.get32(times + T.querySet)] };
    for (const name of ['beginningOfPassWriteIndex', 'endOfPassWriteIndex']) {
      const index = this.get32(times + T[name]);
      if (index !== STRLEN) timestampWrites[name] = index;
    }
    return this.add(this.objects[handle].beginComputePass({ timestampWrites }));
  }
  wgpuCommandEncoderClearBuffer(handle, buffer, offset, size) {
    const length = size < 2n ** 53n ? Number(size) : undefined;
    this.objects[handle].clearBuffer(this.objects[buffer].buffer, Number(offset), length);
  }
  wgpuCommandEncoderCopyBufferToBuffer(handle, from, fromOffset, to, toOffset, size) {
    this.objects[handle].copyBufferToBuffer(this.objects[from].buffer, Number(fromOffset), this.objects[to].buffer,
      Number(toOffset), Number(size));
  }
  wgpuCommandEncoderResolveQuerySet(handle, set, first, count, to, offset) {
    this.objects[handle].resolveQuerySet(this.objects[set], first, count, this.objects[to].buffer, Number(offset));
  }
  wgpuCommandEncoderFinish(handle) {
    return this.add(this.objects[handle].finish());
  }
  wgpuComputePassEncoderSetPipeline(pass, pipeline) {
    this.objects[pass].setPipeline(this.objects[pipeline]);
  }
  wgpuComputePassEncoderSetBindGroup(pass, index, group, count, offsets) {
    if (count) this.objects[pass].setBindGroup(index, this.objects[group], this.words, offsets >>> 2, count);
    else this.objects[pass].setBindGroup(index, this.objects[group]);
  }
  wgpuComputePassEncoderDispatchWorkgroups(pass, x, y, z) {
    this.stats.dispatches++;
    this.objects[pass].dispatchWorkgroups(x, y, z);
  }
  wgpuComputePassEncoderEnd(pass) {
    this.objects[pass].end();
  }
}

for (const kind of ['Queue', 'BindGroup', 'BindGroupLayout', 'PipelineLayout', 'ComputePipeline', 'ShaderModule', 'QuerySet',
  'CommandBuffer', 'CommandEncoder', 'ComputePassEncoder'])
  Glue.prototype[`wgpu${kind}Release`] = function (handle) {
    this.release(handle);
  };

/* WGPUErrorType of a GPUError; names differ in Node, where the classes may not be global. */
function kindOf(error) {
  const { NoError, Validation, OutOfMemory, Internal } = N.WGPUErrorType;
  const name = error?.constructor?.name ?? '';
  if (!error) return NoError;
  if (/OutOfMemory/.test(name)) return OutOfMemory;
  return /Internal/.test(name) ? Internal : Validation;
}
